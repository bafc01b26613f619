"""Upkeep: checks, figures and housekeeping of the memory."""
