-- Dagster keeps its own tables here, apart from ours, in the same database and the same backup.
CREATE SCHEMA IF NOT EXISTS dagster;
