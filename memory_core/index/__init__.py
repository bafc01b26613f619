"""The index: vectors in Chroma for search by meaning, derived from Postgres.

This is the only code that knows Chroma. `expected.py` says which entries there should be,
`writing.py` writes those of the owners that a change names, `projection.py` follows the log,
`filling.py` fills a new generation, `comparing.py` checks, `store.py` answers searches.
"""
