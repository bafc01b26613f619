"""Searching passages, memories and events: by words and by meaning."""
