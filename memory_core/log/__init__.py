"""The log: what happened to the memory, in order, and the machinery of projections."""
