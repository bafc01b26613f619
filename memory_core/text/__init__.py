"""Text as the rest of the core sees it: tokens and chunks, with exact offsets."""
