"""Words of others (a provider's message, a model's refusal) made fit to be stored and shown."""


def printable(text: str, limit: int) -> str:
    """Without U+0000 and lone surrogates, which Postgres refuses, and not longer than that."""
    return text[:limit].encode(errors="replace").decode().replace("\x00", "�")
