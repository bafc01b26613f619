"""Which addresses webhooks may be sent to: none inside the network of this machine.

A URL is untrusted input. Its name is resolved once per connection, every address is checked, and
the connection uses a checked address: resolving the name again could give another one.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

import httpx

from memory_core.kernel.errors import InvalidInput

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]

_MAX_URL = 2_000
# Below 1024 are services other than HTTP, and some of them would run a POST as commands.
_WEB_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1024
# It looks public, but answers with secrets of the machine (Azure's wire server).
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SITE_LOCAL = ipaddress.ip_network("fec0::/10")


class AddressRefused(Exception):
    """The receiver's address is not allowed."""


class NameUnknown(Exception):
    """The receiver's name has no address."""


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name, from the system's resolver."""
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NameUnknown("the receiver's name cannot be resolved") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in answers))


async def checked(host: str, port: int, resolver: Resolver, *, allow_private: bool) -> list[str]:
    """The addresses to connect to. One forbidden address makes the whole name forbidden."""
    addresses = await resolver(host, port)
    if not addresses:
        raise NameUnknown("the receiver's name has no address")
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise AddressRefused(
                    "the receiver's address is private, local or reserved; "
                    "WEBHOOK_ALLOW_PRIVATE=true allows such"
                )
    return addresses


def is_public(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return all(_is_public(one) for one in (address, *_embedded_ipv4(address)))


def _is_public(address: IPAddress) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not (address.is_reserved and address not in _NAT64)
        and address not in _METADATA
        and address not in _SITE_LOCAL
    )


def _embedded_ipv4(address: IPAddress) -> list[IPAddress]:
    """The IPv4 addresses that are embedded in an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    carried: list[IPAddress] = [
        inner for inner in (address.ipv4_mapped, address.sixtofour) if inner is not None
    ]
    if address.teredo is not None:
        carried += address.teredo
    if address in _NAT64:
        carried.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return carried


def parse_url(text: str, *, allow_private: bool) -> httpx.URL:
    """Parse a receiver's URL. The InvalidInput that it raises does not repeat the URL, which may
    contain a secret."""
    if len(text) > _MAX_URL or any(not char.isprintable() or char.isspace() for char in text):
        raise InvalidInput(f"A URL has at most {_MAX_URL} characters, none of them a space.")
    try:
        url = httpx.URL(text)
        host = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, TypeError, ValueError):
        raise InvalidInput("That is no URL: give one like https://hooks.example/memory.") from None
    if url.scheme != "https" and not (url.scheme == "http" and allow_private):
        raise InvalidInput(
            "The URL must begin with https://. (With WEBHOOK_ALLOW_PRIVATE=true, http:// will do.)"
        )
    if not host or url.userinfo or url.fragment:
        raise InvalidInput("The URL needs a host, and must have no user, no password and no #part.")
    port = url.port or (443 if url.scheme == "https" else 80)
    if port not in _WEB_PORTS and not _FIRST_FREE_PORT <= port <= 65535 and not allow_private:
        raise InvalidInput(f"Port {port} is none of a web server: use 443, 80 or one above 1023.")
    return url
