"""Materialisations, written to Dagster's log in batches.

Writing one event to Dagster's log opens two connections and takes milliseconds, five times per
revision. Dagster writes events of one kind in one batch when they are marked as a batch and a batch
size is set (`storage` sets it). It does the same for outputs that span partitions.
"""

import queue
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.events import DagsterEvent, DagsterEventBatchMetadata

from memory_assets.metadata import materialisation
from memory_assets.specs import code_versions, stages_made
from memory_core.kernel.settings import Settings
from memory_core.processing.extraction import Extraction, Observer
from memory_core.processing.stages import STAGES

# How long an event may wait for others. Only the web page shows it later.
_LINGER_SECONDS = 0.3

_Ended = tuple[str, Extraction]


@contextmanager
def materialisations(context: dg.AssetExecutionContext, settings: Settings) -> Iterator[Observer]:
    """Log each selected stage when it ends, from a separate thread, so that documents in work do
    not wait for Dagster's log."""
    made = stages_made(key.to_user_string() for key in context.selected_asset_keys)
    ended: queue.SimpleQueue[_Ended | None] = queue.SimpleQueue()
    faults: list[Exception] = []

    def write() -> None:
        open_ = True
        while open_:
            items, open_ = _drain(ended)
            try:
                _log(context, items, settings)
            except Exception as error:
                faults.append(error)

    def observe(stage: str, extraction: Extraction) -> None:
        if stage in made:
            ended.put((stage, extraction))

    writer = threading.Thread(target=write, name="materialisations")
    writer.start()
    try:
        yield observe
    finally:
        ended.put(None)
        writer.join()
    if faults:
        raise faults[0]


def _drain(ended: "queue.SimpleQueue[_Ended | None]") -> tuple[list[_Ended], bool]:
    """The stages that ended within a moment, and whether more may come."""
    items: list[_Ended] = []
    item = ended.get()
    deadline = time.monotonic() + _LINGER_SECONDS
    while item is not None:
        items.append(item)
        try:
            item = ended.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return items, True
    return items, False


def _log(context: dg.AssetExecutionContext, items: list[_Ended], settings: Settings) -> None:
    """Write one batch per stage: Dagster updates an asset's own row from the last event of a
    batch."""
    step = context.get_step_execution_context()
    prices = settings.prices
    made_with = {extraction.extract_version for _, extraction in items}
    versions = {version: code_versions(settings, version) for version in made_with}
    for stage in STAGES:
        of_stage = [extraction for ended, extraction in items if ended == stage]
        batch = str(uuid.uuid4())
        for left, extraction in zip(range(len(of_stage) - 1, -1, -1), of_stage, strict=True):
            DagsterEvent.asset_materialization(
                step,
                materialisation(stage, extraction, versions[extraction.extract_version], prices),
                DagsterEventBatchMetadata(batch, is_end=left == 0),
            )
