"""The Dagster code location: assets, sensors, checks and schedules over `memory_core`."""
