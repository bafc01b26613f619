"""Everything Dagster is told about the memory."""

import dagster as dg

from memory_assets.inventory import revision_inventory

defs = dg.Definitions(
    assets=[revision_inventory],
    executor=dg.in_process_executor,
)
