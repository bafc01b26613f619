"""The queue of extraction jobs, and what waits in it."""
