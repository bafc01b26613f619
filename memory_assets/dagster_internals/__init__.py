"""Everything that touches private parts of Dagster, and nothing else.

Each module says what it changes in Dagster and why.
"""
