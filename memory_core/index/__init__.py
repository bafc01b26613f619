"""The index: vectors in Chroma for search by meaning, derived from Postgres.

This is the only code that knows Chroma. `expected.py` says which entries there should be,
`writer.py` writes those of the owners that a change names, `index_projection.py` follows the log,
`new_generation.py` fills a new generation, `consistency.py` checks, `store.py` answers searches.
"""
