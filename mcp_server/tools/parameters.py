"""Parameters that several tools share, with their limits and descriptions."""

from typing import Annotated

from pydantic import Field

from mcp_server.arguments import AN_ID
from memory_core.artifacts.document import ArtifactType
from memory_core.extraction.model import Category
from memory_core.queue.request_columns import HIGHEST, LOWEST

INDEXED = "false: found by its words now, by its meaning soon."

Priority = Annotated[
    int,
    Field(
        ge=LOWEST, le=HIGHEST, description="Higher is sooner; a point is worth a minute of waiting."
    ),
]
Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description='Plain words; "quotes", OR, -word.',
    ),
]
ArtifactUid = Annotated[str, Field(min_length=1, description="uid_… of the document."), AN_ID]
OptionalArtifactUid = Annotated[str | None, Field(description="uid_… of one document."), AN_ID]
OptionalArtifactId = Annotated[str | None, Field(description="art_… of one revision."), AN_ID]
OptionalRevisionId = Annotated[str | None, Field(description="rev_…; default: the latest."), AN_ID]
FromRevision = Annotated[
    str | None,
    Field(description="rev_…; default: the one before to_revision."),
    AN_ID,
]
OptionalArtifactType = ArtifactType | None
OptionalSourceSystem = Annotated[str | None, Field(max_length=200, description="E.g. gmail.")]
TimeFrom = Annotated[
    str | None,
    Field(max_length=64, description="Written then or later, ISO 8601."),
]
TimeTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Written then or earlier; a date means to its end.",
    ),
]
EventTimeFrom = Annotated[
    str | None,
    Field(
        max_length=64,
        description="ISO 8601: happened or due. Events without a date drop out.",
    ),
]
EventTimeTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="A date means to its end. Events without a date drop out.",
    ),
]
DueFrom = Annotated[
    str | None,
    Field(
        max_length=64,
        description="ISO 8601. Promises without a date drop out.",
    ),
]
DueTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="A date means to its end. Promises without a date drop out.",
    ),
]
AsOf = Annotated[
    str | None,
    Field(max_length=64, description="Revisions as they were then, ISO 8601."),
]
OptionalQuery = Annotated[
    str | None,
    Field(
        max_length=500,
        description='Plain words; "quotes", OR, -word.',
    ),
]
OptionalCategory = Category | None
OptionalActor = Annotated[
    str | None,
    Field(
        max_length=300,
        description="Full name of who took part; for several of that name see actor_candidates.",
    ),
]
OptionalSubject = Annotated[
    str | None,
    Field(
        max_length=300,
        description="Project, thing or person it is about.",
    ),
]
FullChunks = Annotated[bool, Field(description="Whole chunks, not only the part that answers.")]
