"""What must hold at all times, asked of the stores themselves; and mending what can be mended.

Each check names its offenders. They run as asset checks in production, each on its own schedule,
and in `mcp-memory doctor`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from memory_core import agreement, indexed, jobs
from memory_core.database import Row
from memory_core.runtime import Runtime

OFFENDERS_SHOWN = 20
SAMPLE = 50
# One lease, and the time until somebody takes the job over: the sensor looks every few seconds, and
# its run takes a few more to start.
ABANDONED_SECONDS = jobs.LEASE_SECONDS + 30


@dataclass(frozen=True, slots=True)
class Finding:
    total: int = 0  # of offenders
    offenders: list[str] = field(default_factory=list)  # the first of them
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.total


@dataclass(frozen=True, slots=True)
class Repair:
    mended: int = 0
    awaited: int = 0  # revisions whose events are right once they are extracted again
    beyond: list[str] = field(default_factory=list)  # what only a person can put right, and how


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    description: str
    remedy: str
    cron: str  # when it runs in production
    examine: Callable[[Runtime], Awaitable[Finding]]
    repair: Callable[[Runtime], Awaitable[Repair]]


async def _rows(runtime: Runtime, query: str, **parameters: object) -> list[Row]:
    async with runtime.database.session() as session:
        return await session.all(query, **parameters)


def _finding(rows: list[Row], *columns: str) -> Finding:
    return Finding(
        rows[0]["total"] if rows else 0,
        [" ".join(str(row[column]) for column in columns) for row in rows],
    )


async def _quotes(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_broken_evidence", limit=OFFENDERS_SHOWN)
    return _finding(rows, "event_id", "artifact_uid", "revision_id")


async def _evidence(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_events_without_evidence", limit=OFFENDERS_SHOWN)
    return _finding(rows, "event_id", "artifact_uid", "revision_id")


async def _latest(runtime: Runtime) -> Finding:
    rows = await _rows(runtime, "find_artifacts_without_one_latest", limit=OFFENDERS_SHOWN)
    return _finding(rows, "artifact_uid")


async def _steps(runtime: Runtime) -> Finding:
    events = _finding(
        await _rows(runtime, "find_events_out_of_step", limit=OFFENDERS_SHOWN),
        *("event_id", "artifact_uid", "revision_id"),
    )
    chunks = _finding(
        await _rows(runtime, "find_chunks_out_of_step", limit=OFFENDERS_SHOWN),
        *("chunk_id", "artifact_uid", "revision_id"),
    )
    offenders = [*events.offenders, *chunks.offenders][:OFFENDERS_SHOWN]
    return Finding(events.total + chunks.total, offenders)


async def _words(runtime: Runtime) -> Finding:
    """The indexes of words read other tables: a parallel restore may have made them before these
    were there."""
    async with runtime.database.transaction() as session:
        await session.one("ask_indexes")
        chunks = _finding(await session.all("find_chunks_not_found", sample=SAMPLE), "id")
        events = _finding(await session.all("find_events_not_found", sample=SAMPLE), "id")
    offenders = [*chunks.offenders, *events.offenders][:OFFENDERS_SHOWN]
    return Finding(chunks.total + events.total, offenders)


async def _leases(runtime: Runtime) -> Finding:
    rows = await _rows(
        runtime, "find_abandoned_jobs", lease=ABANDONED_SECONDS, limit=OFFENDERS_SHOWN
    )
    return _finding(rows, "job_id", "locked_by")


async def _index(runtime: Runtime) -> Finding:
    counts: dict[str, int] = {}
    offenders: list[str] = []
    for shelf in indexed.SHELVES:
        name = shelf.collection.value
        found = await agreement.look(runtime, shelf, SAMPLE)
        counts |= {f"postgres_{name}": found.postgres, f"chroma_{name}": found.chroma}
        offenders += [f"{name}: {told}" for told in found.difference.told()]
    return Finding(len(offenders), offenders[:OFFENDERS_SHOWN], counts)


async def _extract_again(runtime: Runtime) -> Repair:
    """Revisions whose events are not proved are extracted anew; that replaces the broken rows."""
    async with runtime.database.transaction() as session:
        rows = await session.all("find_broken_evidence", limit=None)
        rows += await session.all("find_events_without_evidence", limit=None)
        broken = dict.fromkeys((row["artifact_uid"], row["revision_id"]) for row in rows)
        lost = await session.all("revisions_without_text", **_named(broken))
        for row in lost:
            broken.pop((row["artifact_uid"], row["revision_id"]), None)
        await session.run(
            "ensure_jobs_of_revisions",
            **_named(broken),
            max_attempts=runtime.settings.event_max_attempts,
            requested_by="repair",
        )
        await session.run("reenqueue_revisions", **_named(broken), requested_by="repair")
    return Repair(
        awaited=len(broken),
        beyond=[
            f"the text of {row['artifact_uid']} {row['revision_id']} is gone: delete the artifact "
            "and ingest it again"
            for row in lost
        ],
    )


def _named(revisions: dict[tuple[str, str], None]) -> dict[str, list[str]]:
    return {
        "uids": [uid for uid, _ in revisions],
        "revisions": [revision for _, revision in revisions],
    }


async def _newest_is_latest(runtime: Runtime) -> Repair:
    rows = await _rows(runtime, "find_artifacts_without_one_latest", limit=None)
    uids = [row["artifact_uid"] for row in rows]
    async with runtime.database.transaction() as session:
        await session.run("lock_artifacts", uids=uids)
        # First down, then up: at no time are there two.
        await session.run("supersede_all_but_newest", uids=uids)
        await session.run("make_newest_latest", uids=uids)
    for uid in uids:
        await agreement.mend_artifact(runtime, uid)
    return Repair(len(uids))


async def _into_step(runtime: Runtime) -> Repair:
    async with runtime.database.transaction() as session:
        names = ("bring_events_into_step", "drop_superseded_chunks", "enter_missing_chunks")
        return Repair(sum([await session.run(name) for name in names]))


async def _reindex_words(runtime: Runtime) -> Repair:
    found = await _words(runtime)
    if not found.passed:
        async with runtime.database.session() as session:
            await session.run("reindex_chunk_entries")
            await session.run("reindex_event_entries")
    return Repair(found.total)


async def _release(runtime: Runtime) -> Repair:
    async with runtime.database.transaction() as session:
        return Repair(await session.run("release_abandoned_jobs", lease=ABANDONED_SECONDS))


async def _mend_index(runtime: Runtime) -> Repair:
    return Repair(sum([await agreement.mend(runtime, shelf) for shelf in indexed.SHELVES]))


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
        "events_follow_their_revision",
        "Searches go through events and chunks as those of a latest revision exactly when their "
        "revision is one.",
        "They are marked as their revisions are.",
        "40 3 * * *",
        _steps,
        _into_step,
    ),
    Check(
        "words_lead_to_texts",
        "Searches by words find what has them: a random sample of chunks and events.",
        "The indexes of words are built anew.",
        "45 3 * * *",
        _words,
        _reindex_words,
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
        "Chroma has an entry for everything that Postgres says is indexed, with its text, and no "
        "others: counts, and a random sample of either side.",
        "What is missing is added, what differs is written again, what nobody knows is deleted.",
        "50 3 * * *",
        _index,
        _mend_index,
    ),
)
