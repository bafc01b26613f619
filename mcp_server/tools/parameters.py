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
    str | None, Field(max_length=64, description="Only documents of this time or earlier.")
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
    Field(max_length=300, description="Who took part: a full name, or one a document equates."),
]
OptionalSubject = Annotated[
    str | None, Field(max_length=300, description="What the event is about.")
]
