"""Numbered migrations and named queries, as package data."""
