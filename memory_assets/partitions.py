"""One dynamic partition per revision, named so that a person recognises the document."""

import dagster as dg

REVISIONS = dg.DynamicPartitionsDefinition(name="revisions")
