"""Processing: a revision becomes stored events. Chunks are extracted, quotes proved, repeated
events merged, and the result stored in one transaction."""
