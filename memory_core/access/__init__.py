"""Access: API keys, OAuth tokens, scopes and rate limits."""
