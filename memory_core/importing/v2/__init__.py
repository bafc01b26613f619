"""Importing from version 2, which kept everything in Chroma: memories, conversations and
documents."""
