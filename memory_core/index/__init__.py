"""The index: vectors in Chroma for search by meaning, derived from Postgres.

The only code that knows Chroma. `expected.py` says what should stand there, `writing.py` makes it
so for the owners that a change names, `projection.py` follows the log, `filling.py` makes a new
generation, `comparing.py` checks, `store.py` answers searches.
"""
