"""Whom HTTP clients trust."""

import ssl

# Trusts no authority, and so loads no certificates: that takes longer than a request to a server
# of ours does.
_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def verify(url: str) -> ssl.SSLContext | bool:
    """For httpx: the usual authorities, or none where the address is one without TLS."""
    return True if url.startswith("https://") else _NOBODY
