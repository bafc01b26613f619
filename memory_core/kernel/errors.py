"""Errors that a caller can act on: each has a code, a message for people, and details.

Code that understands a failure raises one of these. The edges (MCP tools, CLI, assets) turn them
into their own form in one place each.
"""

import errno
from enum import StrEnum
from typing import Any

# The error numbers of a full disk or quota.
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})


class ErrorCode(StrEnum):
    VALIDATION_ERROR = "VALIDATION_ERROR"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMITED = "RATE_LIMITED"
    CONFIGURATION_ERROR = "CONFIGURATION_ERROR"
    EMBEDDING_MISMATCH = "EMBEDDING_MISMATCH"
    STACK_ERROR = "STACK_ERROR"
    OPENAI_RATE_LIMIT = "OPENAI_RATE_LIMIT"
    OPENAI_TIMEOUT = "OPENAI_TIMEOUT"
    OPENAI_CONNECTION_ERROR = "OPENAI_CONNECTION_ERROR"
    OPENAI_INVALID_MODEL = "OPENAI_INVALID_MODEL"
    OPENAI_AUTH_ERROR = "OPENAI_AUTH_ERROR"
    OPENAI_ERROR = "OPENAI_ERROR"
    INVALID_JSON_SCHEMA = "INVALID_JSON_SCHEMA"
    CHROMA_CONNECTION_ERROR = "CHROMA_CONNECTION_ERROR"
    POSTGRES_CONNECTION_ERROR = "POSTGRES_CONNECTION_ERROR"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
    MAX_ATTEMPTS_EXCEEDED = "MAX_ATTEMPTS_EXCEEDED"
    INTERNAL_ERROR = "INTERNAL_ERROR"


# Not the caller's fault: another service, or a change of settings, has to help first.
OUTAGES = frozenset(
    {
        ErrorCode.CONFIGURATION_ERROR,
        ErrorCode.EMBEDDING_MISMATCH,
        ErrorCode.OPENAI_RATE_LIMIT,
        ErrorCode.OPENAI_TIMEOUT,
        ErrorCode.OPENAI_CONNECTION_ERROR,
        ErrorCode.OPENAI_INVALID_MODEL,
        ErrorCode.OPENAI_AUTH_ERROR,
        ErrorCode.CHROMA_CONNECTION_ERROR,
        ErrorCode.POSTGRES_CONNECTION_ERROR,
    }
)


class MemoryFault(Exception):
    """Base of every error that is meant for a person to read."""

    code: ErrorCode = ErrorCode.INTERNAL_ERROR

    def __init__(
        self, message: str, *, code: ErrorCode | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details = details or {}


class InvalidInput(MemoryFault):
    code = ErrorCode.VALIDATION_ERROR


class NotFound(MemoryFault):
    code = ErrorCode.NOT_FOUND


class Conflict(MemoryFault):
    code = ErrorCode.CONFLICT


class ConfigurationFault(MemoryFault):
    code = ErrorCode.CONFIGURATION_ERROR


class StackFault(MemoryFault):
    """The embedded stack could not be started, found or stopped."""

    code = ErrorCode.STACK_ERROR


class PostgresUnavailable(MemoryFault):
    code = ErrorCode.POSTGRES_CONNECTION_ERROR


class ChromaUnavailable(MemoryFault):
    code = ErrorCode.CHROMA_CONNECTION_ERROR


class EmbeddingMismatch(MemoryFault):
    """A collection was made with another model or dimension than the one configured."""

    code = ErrorCode.EMBEDDING_MISMATCH


class ForeignCollection(MemoryFault):
    """A collection has one of our names and was not made by us."""

    code = ErrorCode.CONFIGURATION_ERROR


class ProviderFault(MemoryFault):
    """The model provider failed. `retry_after` is the wait that it requested, in seconds."""

    code = ErrorCode.OPENAI_ERROR

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        retry_after: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.retry_after = retry_after


# Without these there is no search by meaning; search by words still works.
MEANING_AWAY = (ChromaUnavailable, EmbeddingMismatch, ProviderFault)
