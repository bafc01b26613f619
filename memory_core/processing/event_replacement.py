"""Replace on success: the events of a revision change in one transaction, or not at all."""

from dataclasses import asdict, replace
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.artifacts.locks import lock
from memory_core.events.event_ids import event_id
from memory_core.extraction.engine import Engine
from memory_core.extraction.ledger import taken, write
from memory_core.kernel.database import Database, Session
from memory_core.log.change import ChangeType, NewChange, of_artifact
from memory_core.log.log_writer import append
from memory_core.log.origin import ChangeOrigin, current
from memory_core.processing.extraction import Extraction
from memory_core.queue import jobs


async def replace_events(database: Database, engine: Engine, extraction: Extraction) -> list[UUID]:
    """Check the lease, delete the old events, insert the new ones, mark the job DONE. The old
    events stay readable until the commit."""
    job = extraction.job
    with taken([extraction.ledger]) as calls:
        async with database.transaction() as session:
            # A transaction that supersedes, restores or deletes the document must run before or
            # after this one: it would not see these events. This lock comes first, so that no
            # transaction that holds a lock needed here can wait for this one.
            await lock(session, job.artifact_uid)
            await jobs.hold(session, job)
            old = await session.values(UUID, "delete_events_of_revision", **_revision(extraction))
            ids = await _insert_events(session, extraction)
            await _insert_evidence(session, extraction, ids)
            await _replace_entities(session, extraction)
            await _record(session, engine, extraction)
            await write(session, calls)
            await jobs.complete(session, job)
            change = _replaced(extraction, set(old), set(ids))
            [extraction.position] = await append(session, [change], by=_origin(extraction))
    return ids


def _origin(extraction: Extraction) -> ChangeOrigin:
    job = extraction.job
    return replace(current(), source=f"run {job.run_id}", correlation_id=str(job.job_id))


def _replaced(extraction: Extraction, old: set[UUID], new: set[UUID]) -> NewChange:
    return of_artifact(
        ChangeType.EVENTS_REPLACED,
        extraction.job.artifact_uid,
        revision_id=extraction.job.revision_id,
        added=sorted(map(str, new - old)),
        removed=sorted(map(str, old - new)),
        kept=sorted(map(str, old & new)),
    )


def _revision(extraction: Extraction) -> dict[str, str]:
    return {"uid": extraction.job.artifact_uid, "revision": extraction.job.revision_id}


async def _insert_events(session: Session, extraction: Extraction) -> list[UUID]:
    job, events = extraction.job, extraction.events
    ids = [event_id(job.artifact_uid, job.revision_id, event) for event in events]
    dues = [event.due for event in events]
    await session.run(
        "insert_events",
        **_revision(extraction),
        job_id=job.job_id,
        title=extraction.revision.title or "",
        ids=ids,
        categories=[event.category.value for event in events],
        times=[event.event_time for event in events],
        dues=[due.time if due else None for due in dues],
        due_quotes=[due.quote if due else None for due in dues],
        due_starts=[due.start_char if due and due.quote else None for due in dues],
        due_ends=[due.end_char if due and due.quote else None for due in dues],
        narratives=[event.narrative for event in events],
        subjects=[Jsonb(asdict(event.subject)) for event in events],
        actors=[Jsonb([asdict(actor) for actor in event.actors]) for event in events],
        confidences=[event.confidence for event in events],
        quotes=["\n".join(evidence.quote for evidence in event.evidence) for event in events],
    )
    return ids


async def _insert_evidence(session: Session, extraction: Extraction, ids: list[UUID]) -> None:
    rows = [
        (id_, evidence)
        for id_, event in zip(ids, extraction.events, strict=True)
        for evidence in event.evidence
    ]
    await session.run(
        "insert_evidence",
        **_revision(extraction),
        ids=[id_ for id_, _ in rows],
        chunk_ids=[evidence.chunk_id for _, evidence in rows],
        starts=[evidence.start_char for _, evidence in rows],
        ends=[evidence.end_char for _, evidence in rows],
        quotes=[evidence.quote for _, evidence in rows],
        kinds=[evidence.match_kind for _, evidence in rows],
    )


async def _replace_entities(session: Session, extraction: Extraction) -> None:
    merged: dict[tuple[str, str], dict[str, None]] = {}
    for entity in extraction.entities:
        aliases = merged.setdefault((entity.type.value, entity.name), {})
        aliases.update(dict.fromkeys(name for name in entity.aliases if name != entity.name))
    await session.run("delete_entities_of_revision", **_revision(extraction))
    await session.run(
        "insert_entities",
        **_revision(extraction),
        types=[kind for kind, _ in merged],
        names=[name for _, name in merged],
        aliases=[Jsonb(list(aliases)) for aliases in merged.values()],
    )


async def _record(session: Session, engine: Engine, extraction: Extraction) -> None:
    job = extraction.job
    await session.run(
        "record_extraction",
        **_revision(extraction),
        job_id=job.job_id,
        generation=job.generation,
        run_id=job.run_id,
        requested_by=job.origin,
        extractor=engine.extractor.name,
        model=extraction.model,
        extract_version=extraction.extract_version,
        merge_version=engine.merge_version,
        chunks=len(extraction.chunks),
        cache_hits=extraction.cache_hits,
        events=len(extraction.events),
        unasked_merges=extraction.ledger.unasked_merges,
        rejections=Jsonb([asdict(item) for item in extraction.rejections]),
        refusals=Jsonb(extraction.refusals),
        seconds=Jsonb(extraction.seconds),
    )
