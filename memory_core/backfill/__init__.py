"""Backfills: extracting events again after a prompt has changed. Plan, trial, and a run within a
token budget."""
