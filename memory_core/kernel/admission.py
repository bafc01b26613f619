"""Which requests may reach a server that has no passwords.

A web page can make its visitor's browser send requests to this machine. With a domain name that
resolves to 127.0.0.1 it can also read the answers. Both are recognised by headers that a page
cannot forge: Host, Origin and Sec-Fetch-Site.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# These mean every address of the machine, so they name none.
_EVERY_ADDRESS = ("", "0.0.0.0", "::", "[::]")
_AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
_SHOWN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class Authority:
    """`name` or `name:port`, as in the Host header."""

    name: str
    port: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Authority | None":
        match = _AUTHORITY.fullmatch(text.strip().lower())
        return cls(match["name"].rstrip("."), match["port"]) if match else None

    @property
    def patterns(self) -> list[str]:
        return [self.name, f"{self.name}:*"] if self.port is None else [f"{self.name}:{self.port}"]

    def covers(self, other: "Authority") -> bool:
        """Without a port, it covers every port of that name."""
        return self.name == other.name and self.port in (None, other.port)


@dataclass(frozen=True, slots=True)
class Admission:
    hosts: tuple[Authority, ...]
    origins: frozenset[str]
    # Whether pages of other servers on this machine may send requests. They have their visitor's
    # rights.
    local_pages: bool = False

    @classmethod
    def of(
        cls,
        bound_to: str,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        local_pages: bool = False,
    ) -> "Admission":
        """Loopback names, the address that the server listens on, and what the settings add."""
        named = [*LOOPBACK_NAMES, *hosts]
        if bound_to not in _EVERY_ADDRESS:
            named.append(f"[{bound_to}]" if ":" in bound_to.strip("[]") else bound_to)
        authorities = (Authority.parse(name) for name in named)
        return cls(
            tuple(authority for authority in authorities if authority is not None),
            frozenset(origin.lower().rstrip("/") for origin in origins),
            local_pages,
        )

    @property
    def host_patterns(self) -> list[str]:
        """The hosts in the notation of other libraries: `name`, `name:port`, `name:*`."""
        return [pattern for host in self.hosts for pattern in host.patterns]

    @property
    def origin_patterns(self) -> list[str]:
        """At least as wide as `refusal`: every page of a known host, and the known origins."""
        schemes = ("http", "https")
        ours = [f"{scheme}://{host}" for scheme in schemes for host in self.host_patterns]
        return [*ours, *sorted(self.origins)]

    def refusal(self, method: str, headers: Mapping[str, list[str]]) -> Refusal | None:
        """Why this request is refused, or None. `headers`: names in lower case."""
        host = headers.get("host", [])
        authority = Authority.parse(host[0]) if len(host) == 1 else None
        if authority is None or not any(ours.covers(authority) for ours in self.hosts):
            return Refusal(421, f"Host {_shown(host)} is not known here. See ALLOWED_HOSTS.")
        origin = headers.get("origin", [])
        if origin:
            if len(origin) == 1 and self._is_known_origin(origin[0], authority):
                return None
            return Refusal(403, f"Pages of {_shown(origin)} may not ask. See ALLOWED_ORIGINS.")
        if _is_of_another_page(headers) and not _opens_a_page(method, headers):
            return Refusal(403, "Pages of other servers may not ask. See ALLOWED_ORIGINS.")
        return None

    def _is_known_origin(self, origin: str, host: Authority) -> bool:
        if origin.lower() in self.origins:
            return True
        parts = urlsplit(origin)
        page = Authority.parse(parts.netloc)
        if parts.scheme not in ("http", "https") or page is None:
            return False
        # Host is already known to be ours. A proxy may have changed the scheme, so it is ignored.
        return page == host or (self.local_pages and page.name in LOOPBACK_NAMES)


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _is_of_another_page(headers: Mapping[str, list[str]]) -> bool:
    """Browsers say so where they send no Origin: for images, scripts, frames and links."""
    return any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", []))


def _opens_a_page(method: str, headers: Mapping[str, list[str]]) -> bool:
    """A link that a person followed: it shows a page, and the other page learns nothing."""
    return (
        method in ("GET", "HEAD")
        and headers.get("sec-fetch-mode") == ["navigate"]
        and headers.get("sec-fetch-dest") == ["document"]
    )


def _shown(values: list[str]) -> str:
    return repr(", ".join(values)[:_SHOWN_CHARS]) if values else "(none)"
