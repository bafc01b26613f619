"""Domain and stores of the memory. Knows nothing of Dagster or MCP."""
