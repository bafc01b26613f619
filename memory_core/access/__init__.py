"""Who may ask: keys, tokens of an OAuth issuer, scopes and rates."""
