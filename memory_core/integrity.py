"""What must hold at all times, asked of the stores themselves; and mending what can be mended.

Each check names its offenders. They run as asset checks in production, each on its own schedule,
and in `mcp-memory doctor`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from memory_core import jobs, reindex
from memory_core.database import Row
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName

OFFENDERS_SHOWN = 20
SAMPLE = 50


@dataclass(frozen=True, slots=True)
class Finding:
    passed: bool
    offenders: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    description: str
    remedy: str
    cron: str  # when it runs in production
    examine: Callable[[Runtime], Awaitable[Finding]]
    repair: Callable[[Runtime], Awaitable[int]]


async def _rows(runtime: Runtime, query: str, **parameters: object) -> list[Row]:
    async with runtime.database.session() as session:
        return await session.all(query, **parameters)


def _finding(rows: list[Row], *columns: str) -> Finding:
    return Finding(not rows, [" ".join(str(row[column]) for column in columns) for row in rows])


async def _quotes(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_broken_evidence", limit=OFFENDERS_SHOWN)
    return _finding(rows, "event_id", "artifact_uid", "revision_id")


async def _evidence(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_events_without_evidence", limit=OFFENDERS_SHOWN)
    return _finding(rows, "event_id", "artifact_uid", "revision_id")


async def _latest(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_artifacts_without_latest", limit=OFFENDERS_SHOWN)
    return _finding(rows, "artifact_uid")


async def _leases(runtime: Runtime) -> Finding:
    rows = await _rows(
        runtime, "find_abandoned_jobs", lease=jobs.LEASE_SECONDS * 3, limit=OFFENDERS_SHOWN
    )
    return _finding(rows, "job_id", "locked_by")


async def _index(runtime: Runtime) -> Finding:
    """Counts of both sides, and a random sample of Postgres' rows looked up in Chroma."""
    counts, offenders = {}, []
    for collection, (count_query, sample_query) in _INDEXED.items():
        [expected] = await _rows(runtime, count_query)
        counts[f"postgres_{collection.value}"] = expected["expected"]
        counts[f"chroma_{collection.value}"] = await runtime.vectors.count(collection)
        sample = await _rows(runtime, sample_query, limit=SAMPLE)
        wanted = [str(row["id"]) for row in sample]
        found = await runtime.vectors.vectors(collection, wanted) if wanted else {}
        offenders += [f"{collection.value}: {id_} is missing" for id_ in wanted if id_ not in found]
        if counts[f"chroma_{collection.value}"] < counts[f"postgres_{collection.value}"]:
            offenders.append(f"{collection.value}: fewer entries than Postgres has rows")
    return Finding(not offenders, offenders[:OFFENDERS_SHOWN], counts)


_INDEXED = {
    CollectionName.ARTIFACTS: ("count_artifacts_in_index", "sample_artifacts_in_index"),
    CollectionName.CHUNKS: ("count_chunks_in_index", "sample_chunks_in_index"),
    CollectionName.EVENTS: ("count_events_in_index", "sample_events_in_index"),
    CollectionName.MEMORY: ("count_memories_in_index", "sample_memories_in_index"),
}


async def _extract_again(runtime: Runtime) -> int:
    """Revisions whose events are not proved are extracted anew; that replaces the broken rows."""
    async with runtime.database.transaction() as session:
        return await session.run("reenqueue_unproved_revisions", requested_by="repair")


async def _newest_is_latest(runtime: Runtime) -> int:
    async with runtime.database.transaction() as session:
        return await session.run("make_newest_latest")


async def _release(runtime: Runtime) -> int:
    async with runtime.database.transaction() as session:
        return await session.run("release_abandoned_jobs", lease=jobs.LEASE_SECONDS * 3)


async def _reindex(runtime: Runtime) -> int:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count

    await reindex.rebuild_text(runtime, advance)
    await reindex.rebuild_memories(runtime, advance)
    await reindex.rebuild_events(runtime, advance)
    return done


CHECKS = (
    Check(
        "every_quote_is_exact",
        "Every stored quote equals the text at its offsets and has at most 25 words.",
        "The revisions are extracted again.",
        "0 3 * * *",
        _quotes,
        _extract_again,
    ),
    Check(
        "every_event_has_evidence",
        "No event is without evidence.",
        "The revisions are extracted again.",
        "15 3 * * *",
        _evidence,
        _extract_again,
    ),
    Check(
        "one_latest_revision",
        "Every artifact has exactly one latest revision.",
        "The newest revision becomes the latest.",
        "30 3 * * *",
        _latest,
        _newest_is_latest,
    ),
    Check(
        "no_abandoned_jobs",
        "No job is PROCESSING without a live lease.",
        "Their jobs become PENDING again.",
        "*/10 * * * *",
        _leases,
        _release,
    ),
    Check(
        "index_agrees",
        "Chroma has an entry for everything that Postgres says is indexed.",
        "The index is rebuilt from Postgres.",
        "45 3 * * *",
        _index,
        _reindex,
    ),
)
