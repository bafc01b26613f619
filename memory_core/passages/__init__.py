"""Text searches: passages of latest revisions, and memories, by words and by meaning."""
