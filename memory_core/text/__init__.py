"""Text utilities of the core: tokens, chunks, excerpts and turns, with exact offsets."""
