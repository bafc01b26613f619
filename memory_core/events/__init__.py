"""Semantic events: reading them, and the questions about them (diff, commitments, people,
timeline)."""
