"""The interfaces of the memory: MCP tools for assistants, a command line for people."""
