"""The certificate authorities that HTTP clients trust."""

import ssl

# Trusts no authority, and so loads no certificates: loading them takes longer than a request to one
# of our servers.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def verify(url: str) -> ssl.SSLContext | bool:
    """For httpx: the usual authorities, or none for an address without TLS."""
    return True if url.startswith("https://") else _NO_AUTHORITIES
