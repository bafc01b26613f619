"""Semantic events in their stores: Postgres, which decides, and the Chroma index beside it."""
