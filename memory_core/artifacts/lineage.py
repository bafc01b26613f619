"""What Dagster remembers of a document: partitions named after it, and previews of its events.

It lies in the same database, so that deleting a document takes it along in the same transaction.
"""

import json

from memory_core.database import Session

# As Dagster writes asset keys.
_ASSETS = [
    json.dumps([name])
    for name in (
        "chunk_text",
        "chunk_extractions",
        "canonical_events",
        "stored_events",
        "event_index",
    )
]


async def forget(session: Session, artifact_uid: str) -> int:
    """Before the revisions are deleted. Returns how many entries of the event log are gone."""
    tables = await session.one("lineage_tables_exist")
    found = await session.one("partitions_of_artifact", uid=artifact_uid)
    assert tables is not None
    assert found is not None
    keys = found["keys"]
    if not tables["exists"] or not keys:
        return 0
    # A trial's page tells of many documents, each by its uid.
    await session.run("delete_trial_pages", asset=json.dumps(["prompt_trial"]), uid=artifact_uid)
    await session.run("delete_lineage_previews", keys=keys)
    await session.run("delete_lineage_tags", assets=_ASSETS, keys=keys)
    await session.run("delete_lineage_partitions", keys=keys)
    return await session.run("delete_lineage_events", assets=_ASSETS, keys=keys)
