"""Reading what version 2 kept in Chroma alone: memories, conversations and documents."""
