"""One dynamic partition per revision. A person recognises the document by the key."""

import dagster as dg

REVISIONS = dg.DynamicPartitionsDefinition(name="revisions")
