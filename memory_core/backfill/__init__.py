"""Renewing events after a change of prompt: plan, trial, and a backfill that minds its budget."""
