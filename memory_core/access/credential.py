"""Credentials: what a bearer token proves."""

from dataclasses import dataclass
from typing import Protocol

from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class Credential:
    principal: Principal
    # The key or client of the token: a session belongs to the one that opened it.
    client: str
    issuer: str | None = None


class Verifier(Protocol):
    async def verify(self, token: str, address: str) -> Credential | None:
        """The credential, or None for an invalid token, whatever the reason. `address`: the
        client's."""

    async def close(self) -> None: ...


class Forbidden(MemoryFault):
    """The principal is authenticated but lacks a scope."""

    code = ErrorCode.FORBIDDEN


class RateLimited(MemoryFault):
    code = ErrorCode.RATE_LIMITED

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message, details={"retry_after": retry_after})
        self.retry_after = retry_after


def require(principal: Principal, scope: str, what: str) -> None:
    """Raise Forbidden unless the principal has the scope."""
    if scope not in principal.scopes:
        raise Forbidden(
            f"{what} needs the scope {scope!r}, which this key or token does not have. Ask the "
            "operator for one that has it.",
            details={"scope": scope},
        )
