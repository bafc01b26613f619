"""Integrity checks: what must always hold, computed from the stores; and the repairs.

Each check names the rows that break it. The checks run as asset checks in production, each on its
own schedule, and in `mcp-memory doctor`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memory_core.artifacts.columns import key_columns
from memory_core.artifacts.locks import lock
from memory_core.events.broken_evidence import BrokenEvidence, unproved_quotes
from memory_core.index import consistency
from memory_core.kernel.database import Session
from memory_core.log.change import ChangeType, of_artifact
from memory_core.log.lag import read_lags
from memory_core.log.log_writer import append
from memory_core.queue import jobs, requests
from memory_core.queue.request_columns import new_job_columns
from memory_core.runtime import Runtime

OFFENDERS_SHOWN = 20
SAMPLE = 50
# One lease, plus the time until another run claims the job: the sensor looks every few seconds, and
# its run takes a few more to start.
ABANDONED_SECONDS = jobs.LEASE_SECONDS + 30


@dataclass(frozen=True, slots=True)
class CheckResult:
    total: int = 0  # number of offenders
    offenders: list[str] = field(default_factory=list)  # the first of them
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.total


@dataclass(frozen=True, slots=True)
class Offender:
    """A row that breaks a rule."""

    total: int  # number of such rows


@dataclass(frozen=True, slots=True)
class NamedOffender(Offender):
    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class PartOfRevision(Offender):
    """An event or a chunk."""

    id: str
    artifact_uid: str
    revision_id: str

    def __str__(self) -> str:
        return f"{self.id} {self.artifact_uid} {self.revision_id}"


@dataclass(frozen=True, slots=True)
class AbandonedJob(Offender):
    job_id: UUID
    locked_by: str | None

    def __str__(self) -> str:
        return f"{self.job_id} {self.locked_by}"


@dataclass(frozen=True, slots=True)
class LostText(Offender):
    """A revision whose text, or a chunk of it, is not in Postgres."""

    artifact_uid: str
    revision_id: str
    source_system: str
    source_id: str

    def __str__(self) -> str:
        return f"{self.artifact_uid} {self.revision_id}"


@dataclass(frozen=True, slots=True)
class Repair:
    repaired: int = 0
    awaited: int = 0  # revisions that are being extracted again, which will repair them
    beyond: list[str] = field(default_factory=list)  # what only a person can repair, and how


@dataclass(frozen=True, slots=True)
class IntegrityCheck:
    name: str
    description: str
    remedy: str
    cron: str  # its schedule in production
    examine: Callable[[Runtime], Awaitable[CheckResult]]
    repair: Callable[[Runtime], Awaitable[Repair]]


def _finding(offenders: Sequence[Offender | BrokenEvidence]) -> CheckResult:
    return CheckResult(offenders[0].total if offenders else 0, [str(one) for one in offenders])


def _both(one: CheckResult, other: CheckResult) -> CheckResult:
    offenders = [*one.offenders, *other.offenders][:OFFENDERS_SHOWN]
    return CheckResult(one.total + other.total, offenders)


def _check(
    find: Callable[[Session], Awaitable[Sequence[Offender | BrokenEvidence]]],
) -> Callable[[Runtime], Awaitable[CheckResult]]:
    """A check that is one query for the offenders."""

    async def examine(runtime: Runtime) -> CheckResult:
        async with runtime.database.session() as session:
            return _finding(await find(session))

    return examine


_texts = _check(
    lambda session: session.rows(LostText, "find_revisions_without_text", limit=OFFENDERS_SHOWN)
)
_quotes = _check(lambda session: unproved_quotes(session, OFFENDERS_SHOWN))
_evidence = _check(
    lambda session: session.rows(
        PartOfRevision, "find_events_without_evidence", limit=OFFENDERS_SHOWN
    )
)
_latest = _check(
    lambda session: session.rows(
        NamedOffender, "find_artifacts_without_one_latest", limit=OFFENDERS_SHOWN
    )
)
_leases = _check(
    lambda session: session.rows(
        AbandonedJob, "find_abandoned_jobs", lease=ABANDONED_SECONDS, limit=OFFENDERS_SHOWN
    )
)


async def _steps(runtime: Runtime) -> CheckResult:
    async with runtime.database.session() as session:
        events = _finding(
            await session.rows(PartOfRevision, "find_events_out_of_step", limit=OFFENDERS_SHOWN)
        )
        chunks = _finding(
            await session.rows(PartOfRevision, "find_chunks_out_of_step", limit=OFFENDERS_SHOWN)
        )
    return _both(events, chunks)


async def _words(runtime: Runtime) -> CheckResult:
    """The word indexes read other tables. A parallel restore of an old dump may have built them
    before those tables were filled."""
    async with runtime.database.transaction() as session:
        await session.run("ask_indexes")
        chunks = _finding(await session.rows(NamedOffender, "find_chunks_not_found", sample=SAMPLE))
        events = _finding(await session.rows(NamedOffender, "find_events_not_found", sample=SAMPLE))
    return _both(chunks, events)


async def _index(runtime: Runtime) -> CheckResult:
    comparison = await consistency.compare(runtime, sample=SAMPLE)
    counts = {f"postgres_{name}": number for name, number in comparison.postgres.items()}
    counts |= {f"chroma_{name}": number for name, number in comparison.chroma.items()}
    offenders = list(comparison.differences())
    return CheckResult(len(offenders), offenders[:OFFENDERS_SHOWN], counts)


async def _extract_again(runtime: Runtime) -> Repair:
    """Extract revisions with unproved events again; that replaces the broken rows."""
    async with runtime.database.transaction() as session:
        unproved = await unproved_quotes(session)
        without = await session.rows(PartOfRevision, "find_events_without_evidence", limit=None)
        offenders: list[BrokenEvidence | PartOfRevision] = [*unproved, *without]
        broken = dict.fromkeys((one.artifact_uid, one.revision_id) for one in offenders)
        lost = await session.rows(LostText, "revisions_without_text", **key_columns(broken))
        for text in lost:
            broken.pop((text.artifact_uid, text.revision_id), None)
        request = new_job_columns(runtime.settings, "repair")
        await requests.start_ended_over(session, key_columns(broken), request)
        await append(
            session,
            [
                of_artifact(ChangeType.JOB_REQUESTED, uid, revision_id=revision)
                for uid, revision in broken
            ],
        )
    return Repair(
        awaited=len(broken),
        beyond=[_lost_text(text) for text in lost],
    )


async def _name_lost_texts(runtime: Runtime) -> Repair:
    async with runtime.database.session() as session:
        lost = await session.rows(LostText, "find_revisions_without_text", limit=None)
    return Repair(beyond=[_lost_text(text) for text in lost])


def _lost_text(text: LostText) -> str:
    source = " ".join(filter(None, (text.source_system, text.source_id)))
    return (
        f"the text of {text} ({source}) is gone: ingest the "
        "same content from the same source again, or restore a backup of Postgres"
    )


async def _newest_is_latest(runtime: Runtime) -> Repair:
    async with runtime.database.session() as session:
        wrong = await session.rows(NamedOffender, "find_artifacts_without_one_latest", limit=None)
    uids = [artifact.id for artifact in wrong]
    async with runtime.database.transaction() as session:
        await lock(session, *uids)
        # First clear, then set, so that there are never two latest revisions.
        await session.run("supersede_all_but_newest", uids=uids)
        await session.run("make_newest_latest", uids=uids)
        await _append_repairs(session, uids)
    return Repair(len(uids))


async def _into_step(runtime: Runtime) -> Repair:
    async with runtime.database.transaction() as session:
        uids = await session.values(str, "bring_events_into_step")
        names = ("drop_superseded_chunks", "enter_missing_chunks")
        repaired = len(uids) + sum([await session.run(name) for name in names])
        await _append_repairs(session, sorted(set(uids)))
    return Repair(repaired)


async def _append_repairs(session: Session, uids: list[str]) -> None:
    await append(session, [of_artifact(ChangeType.ARTIFACT_REPAIRED, uid) for uid in uids])


async def _reindex_words(runtime: Runtime) -> Repair:
    finding = await _words(runtime)
    if not finding.passed:
        async with runtime.database.session() as session:
            await session.run("reindex_chunk_entries")
            await session.run("reindex_event_entries")
    return Repair(finding.total)


async def _release(runtime: Runtime) -> Repair:
    async with runtime.database.transaction() as session:
        return Repair(await jobs.release_abandoned(session, ABANDONED_SECONDS))


async def _repair_index(runtime: Runtime) -> Repair:
    return Repair(await consistency.repair(runtime))


async def _projections(runtime: Runtime) -> CheckResult:
    lags = await read_lags(runtime.database)
    late = [
        f"{lag.point.name} is {lag.changes} changes and {lag.seconds:.0f} s behind: "
        f"{lag.reason or 'it is at work'}"
        for lag in lags
        if lag.is_late
    ]
    letters = [
        f"{lag.point.name} has {lag.dead_letters} dead letters" for lag in lags if lag.dead_letters
    ]
    counts = {f"lag_{lag.point.name}": lag.changes for lag in lags}
    return CheckResult(len(late) + len(letters), [*late, *letters][:OFFENDERS_SHOWN], counts)


async def _left_to_people(runtime: Runtime) -> Repair:
    finding = await _projections(runtime)
    advice = "`mcp-memory projections status` and `mcp-memory deadletters list` say more"
    return Repair(beyond=[f"{offender}; {advice}" for offender in finding.offenders])


CHECKS = (
    IntegrityCheck(
        "every_revision_has_its_text",
        "The text and the chunks of every revision are in Postgres.",
        "Only the source has the text: ingest the same content again, which also extracts its "
        "events again, or restore a backup of Postgres.",
        "55 2 * * *",
        _texts,
        _name_lost_texts,
    ),
    IntegrityCheck(
        "every_quote_is_exact",
        "Every quote is exactly the document's text at its place, and has at most 25 words.",
        "The revisions are extracted again.",
        "0 3 * * *",
        _quotes,
        _extract_again,
    ),
    IntegrityCheck(
        "every_event_has_evidence",
        "Every event has at least one quote as its evidence.",
        "The revisions are extracted again.",
        "15 3 * * *",
        _evidence,
        _extract_again,
    ),
    IntegrityCheck(
        "one_latest_revision",
        "Every document has exactly one latest revision.",
        "The newest revision becomes the latest.",
        "30 3 * * *",
        _latest,
        _newest_is_latest,
    ),
    IntegrityCheck(
        "events_follow_their_revision",
        "Searches see the events and chunks of latest revisions, and no others.",
        "Events and chunks are marked again as latest or superseded.",
        "40 3 * * *",
        _steps,
        _into_step,
    ),
    IntegrityCheck(
        "words_lead_to_texts",
        "Chunks and events are found by their own words (a random sample).",
        "The word indexes are rebuilt.",
        "45 3 * * *",
        _words,
        _reindex_words,
    ),
    IntegrityCheck(
        "no_abandoned_jobs",
        "No job is PROCESSING after its run has died.",
        "The jobs become PENDING again.",
        "*/10 * * * *",
        _leases,
        _release,
    ),
    IntegrityCheck(
        "projections_keep_up",
        "What is derived from the log is at most a minute behind it, and no change was set aside.",
        "Start a worker, or retry the dead letters.",
        "2-59/10 * * * *",
        _projections,
        _left_to_people,
    ),
    IntegrityCheck(
        "index_agrees",
        "Chroma holds what Postgres says it should hold (all counts, and a random sample).",
        "Missing entries are added, different ones written again, unknown ones deleted.",
        "50 3 * * *",
        _index,
        _repair_index,
    ),
)
