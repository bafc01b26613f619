"""The stack that a user runs: embedded Postgres and Chroma, Dagster, the MCP server.

`supervisor` owns the processes; `connection` finds or starts what a command needs. The stack knows
the programs by their command lines only, never by their code.
"""
