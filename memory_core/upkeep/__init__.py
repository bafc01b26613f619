"""Checks, figures and housekeeping of the memory."""
