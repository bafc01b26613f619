"""The log: what happened to the memory, in order, and everything that is derived from it."""
