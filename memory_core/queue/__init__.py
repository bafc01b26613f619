"""The queue of extraction jobs."""
