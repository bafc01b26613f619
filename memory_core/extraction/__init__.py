"""From the text of a revision to proposed, proved and merged semantic events."""
