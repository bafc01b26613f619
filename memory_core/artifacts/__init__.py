"""Artifacts: documents kept as immutable revisions. Ingest, reading, search, deletion."""
