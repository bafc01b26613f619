"""hybrid_search: passages and memories, by words and by meaning."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mcp_server.tool import read_tool
from mcp_server.tools.parameters import (
    FullChunks,
    OptionalArtifactType,
    OptionalArtifactUid,
    OptionalSourceSystem,
    Query,
    TimeFrom,
    TimeTo,
)
from memory_core.kernel.times import parse_time, parse_until
from memory_core.runtime import Runtime
from memory_core.search.passage import Passage
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search as search_passages
from memory_core.search.passages import note_on


class Neighbor(BaseModel):
    chunk_id: str | None
    start_char: int
    end_char: int
    text: str


class Highlight(BaseModel):
    start_char: int
    end_char: int


def hit_fields(passage: Passage) -> dict[str, Any]:
    """The fields of a passage, as the answers of searches show them."""
    highlight = None
    if passage.highlight is not None:
        start, end = passage.highlight
        highlight = Highlight(start_char=start, end_char=end)
    return {**asdict(passage), "score": round(passage.score, 6), "highlight": highlight}


class HybridHit(BaseModel):
    kind: Literal["artifact", "chunk", "memory"]
    score: float
    sources: list[str]
    text: str
    artifact_uid: str | None
    artifact_id: str | None
    revision_id: str | None
    chunk_id: str | None
    start_char: int | None
    end_char: int | None
    highlight: Highlight | None
    title: str | None
    artifact_type: str | None
    source_system: str | None
    source_ts: datetime | None
    memory_id: str | None
    memory_type: str | None
    neighbors: list[Neighbor]


class HybridFound(BaseModel):
    results: list[HybridHit]
    note: str = ""


async def hybrid_search(
    runtime: Runtime,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    include_memory: Annotated[
        bool, Field(description="Also memories, when nothing filters.")
    ] = True,
    expand_neighbors: Annotated[
        bool, Field(description="With the chunks around each hit.")
    ] = False,
    full_chunks: FullChunks = False,
    artifact_uid: OptionalArtifactUid = None,
    artifact_type: OptionalArtifactType = None,
    source_system: OptionalSourceSystem = None,
    time_from: TimeFrom = None,
    time_to: TimeTo = None,
) -> HybridFound:
    """Find passages of documents, and memories, by words and meaning. The first choice for
    "what do we know about …"; artifact_uid searches inside one document. For a list of
    documents use artifact_search; for decisions, promises and changes the event tools.
    Example: hybrid_search(query="why did we drop SMS codes?")
    """
    await runtime.open()
    filters = Filters(
        artifact_uid=artifact_uid,
        artifact_type=artifact_type,
        source_system=source_system,
        time_from=parse_time("time_from", time_from),
        time_to=parse_until("time_to", time_to),
    )
    passages = await search_passages(
        runtime,
        query,
        filters,
        limit=limit,
        include_memory=include_memory,
        expand_neighbors=expand_neighbors,
        full_chunks=full_chunks,
    )
    return HybridFound(
        results=[HybridHit(**hit_fields(passage)) for passage in passages], note=note_on(passages)
    )


TOOLS = (read_tool("Search passages and memories", hybrid_search),)
