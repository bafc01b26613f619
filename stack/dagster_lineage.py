"""Dagster's records of a document: partitions named after it, and previews of its events.

They are in the same database, so that deleting a document removes them in the same transaction.
"""

import json

from memory_core.kernel.database import Database, Session
from memory_core.processing.stages import STAGES

# Asset keys as Dagster stores them.
_ASSETS = [json.dumps([stage]) for stage in STAGES]

# All event types that Dagster logs for an asset and a partition.
EVENT_TYPES = [
    "ASSET_MATERIALIZATION_PLANNED",
    "ASSET_MATERIALIZATION",
    "ASSET_FAILED_TO_MATERIALIZE",
    "ASSET_OBSERVATION",
    "ASSET_CHECK_EVALUATION_PLANNED",
    "ASSET_CHECK_EVALUATION",
    "FRESHNESS_STATE_CHANGE",
]


# How many keys of deleted documents are removed at once.
_LEFT_BEHIND = 500


async def forget(session: Session, artifact_uid: str) -> int:
    """Call it before the revisions are deleted. Returns the number of deleted entries of the event
    log."""
    keys = await session.values(str, "partitions_of_artifact", uid=artifact_uid)
    if not keys or not await _tables_exist(session):
        return 0
    # A trial's page contains many documents, each with its uid.
    await session.run("delete_trial_pages", asset=json.dumps(["prompt_trial"]), uid=artifact_uid)
    titles = await session.values(str, "titles_of_artifact", uid=artifact_uid)
    deleted = await _forget(session, artifact_uid, keys, titles)
    await session.run("forget_title_tags", uid=artifact_uid)
    return deleted


async def forget_left_behind(database: Database) -> int:
    """Remove the records that runs wrote of documents that were deleted during the run. Returns the
    number of removed partition keys."""
    forgotten = 0
    async with database.session() as session:
        if not await _tables_exist(session):
            return 0
        while True:
            keys = await session.values(
                str,
                "partitions_of_nothing",
                assets=_ASSETS,
                types=EVENT_TYPES,
                limit=_LEFT_BEHIND,
            )
            if not keys:
                return forgotten
            async with session.connection.transaction():
                await _forget(session, "", keys, [])
            forgotten += len(keys)


async def _tables_exist(session: Session) -> bool:
    return await session.value(bool, "lineage_tables_exist")


async def _forget(session: Session, uid: str, keys: list[str], titles: list[str]) -> int:
    await session.run("delete_lineage_previews", keys=keys)
    entries = {"assets": _ASSETS, "types": EVENT_TYPES, "keys": keys}
    runs = await session.values(str, "runs_of_document", uid=uid, **entries)
    await session.run("delete_lineage_tags", **entries)
    await session.run("delete_lineage_partitions", keys=keys)
    deleted = await session.run("delete_lineage_events", **entries)
    await _forget_names(session, keys, titles, runs)
    return deleted


async def _forget_names(
    session: Session, keys: list[str], titles: list[str], runs: list[str]
) -> None:
    """Runs, ticks and backfills stay, without the titles in partition keys and tags."""
    names = {key: f"deleted:{key.rpartition(':')[2]}" for key in keys}
    # JSON may escape a letter beyond ASCII; a title is a whole value there.
    names |= {_escaped(key): name for key, name in names.items()}
    for title in titles:
        names |= {f'"{title}"': '"deleted"', f'"{_escaped(title)}"': '"deleted"'}
    renames = {"names": list(names), "instead": list(names.values())}
    for query in ("forget_in_run_tags", "forget_in_runs", "forget_in_events_of_runs"):
        await session.run(query, runs=runs, **renames)
    for query in ("forget_in_ticks", "forget_in_sensors", "forget_in_backfills"):
        await session.run(query, **renames)
    await session.run("forget_cached_partitions", names=renames["names"])


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]
