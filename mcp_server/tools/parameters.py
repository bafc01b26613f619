"""Parameters that several tools share, with their limits and descriptions."""

from typing import Annotated

from pydantic import Field

from memory_core.artifacts.document import ArtifactType
from memory_core.extraction.model import Category

Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description='What to look for, in plain words. "quotes", OR and -word are understood.',
    ),
]
ArtifactUid = Annotated[
    str, Field(min_length=1, max_length=200, description="The document: uid_… as tools return it.")
]
OptionalArtifactUid = Annotated[
    str | None,
    Field(max_length=200, description="Only this document (uid_…), its latest revision."),
]
OptionalArtifactId = Annotated[
    str | None, Field(max_length=200, description="One revision of a document: art_… .")
]
OptionalRevisionId = Annotated[
    str | None, Field(max_length=200, description="A revision: rev_… . Default: the latest.")
]
FromRevision = Annotated[
    str | None,
    Field(
        max_length=200,
        description="The older revision: rev_… . Default: the one before to_revision.",
    ),
]
ToRevision = Annotated[
    str | None,
    Field(max_length=200, description="The newer revision: rev_… . Default: the latest."),
]
OptionalArtifactType = Annotated[
    ArtifactType | None, Field(description="Only documents of this type.")
]
OptionalSourceSystem = Annotated[
    str | None, Field(max_length=200, description="Only documents from this source, e.g. gmail.")
]
TimeFrom = Annotated[
    str | None,
    Field(max_length=64, description="Only documents of this time or later (ISO 8601)."),
]
TimeTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Only documents of this time or earlier; a date means to its end.",
    ),
]
EventTimeFrom = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Only events of this time or later (ISO 8601): when it happened, or is due. "
        "Events without a date drop out.",
    ),
]
EventTimeTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Only events of this time or earlier (ISO 8601; a date means to its end). "
        "Events without a date drop out.",
    ),
]
DueFrom = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Only what is due then or later (ISO 8601). Promises without a due date drop "
        "out.",
    ),
]
DueTo = Annotated[
    str | None,
    Field(
        max_length=64,
        description="Only what is due then or earlier (ISO 8601; a date means to its end: Q1 is "
        '"2026-03-31"). Promises without a due date drop out.',
    ),
]
OptionalQuery = Annotated[
    str | None,
    Field(
        max_length=500,
        description='What to look for, in plain words. "quotes", OR and -word are understood.',
    ),
]
OptionalCategory = Annotated[Category | None, Field(description="Only events of this kind.")]
OptionalActor = Annotated[
    str | None,
    Field(
        max_length=300,
        description="Who took part: a full name, or one that a document equates with it. Several "
        "people with that name: actor_candidates says how to ask for each.",
    ),
]
OptionalSubject = Annotated[
    str | None,
    Field(
        max_length=300,
        description="Only events about this: the name of a project, thing or person. The event's "
        "subject is called so, or it has all these words.",
    ),
]
