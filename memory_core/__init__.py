"""Domain and stores of the memory. Knows nothing of Dagster or MCP."""

__version__ = "0.1.0"
