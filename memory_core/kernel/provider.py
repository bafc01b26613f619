"""The model provider: one client, and the one place where its failures become ours.

Any OpenAI-compatible server works (OPENAI_BASE_URL). Retries are ours, not the client's, so that a
provider's Retry-After is respected and every attempt is counted.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import openai

from memory_core.kernel import tls
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.kernel.settings import Settings
from memory_core.kernel.times import as_utc

T = TypeVar("T")
BACKOFF_FIRST_SECONDS = 0.5
_BACKOFF_LIMIT_SECONDS = 8.0
# The longest wait for a provider within one call. Longer waits are left to the job queue.
_RETRY_AFTER_LIMIT_SECONDS = 20.0
RETRYABLE = frozenset(
    {ErrorCode.OPENAI_RATE_LIMIT, ErrorCode.OPENAI_TIMEOUT, ErrorCode.OPENAI_CONNECTION_ERROR}
)


def build_client(settings: Settings) -> openai.AsyncOpenAI:
    key = settings.openai_api_key
    address, login = _without_login(settings.openai_base_url)
    trusted = tls.verify(address or "https://")
    is_usual = trusted is True and login is None
    return openai.AsyncOpenAI(
        api_key=key.get_secret_value() if key else "none",
        base_url=address,
        timeout=settings.openai_timeout,
        max_retries=0,
        http_client=None
        if is_usual
        else openai.DefaultAsyncHttpxClient(verify=trusted, auth=login),
    )


def _without_login(url: str | None) -> tuple[str | None, tuple[str, str] | None]:
    """The address, and its user and password separately: clients log addresses."""
    parts = urlsplit(url or "")
    if url is None or parts.username is None:
        return url, None
    host = parts.netloc.rpartition("@")[2]
    login = unquote(parts.username), unquote(parts.password or "")
    return urlunsplit(parts._replace(netloc=host)), login


async def with_retries(call: Callable[[], Awaitable[T]], *, retries: int) -> T:
    """Call; after a transient fault wait as long as the provider asks (or back off), and call
    again."""
    attempt = 0
    while True:
        try:
            return await call()
        except (openai.OpenAIError, TimeoutError) as error:
            fault = as_fault(error)
            wait = _pause(fault, attempt)
            if attempt >= retries or wait is None:
                raise fault from error
        attempt += 1
        await asyncio.sleep(wait)


def as_fault(error: openai.OpenAIError | TimeoutError) -> ProviderFault:
    """The fault with its code. It shows only the status and the provider's message, never the
    key."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return ProviderFault(
            "The model provider did not answer in time.", code=ErrorCode.OPENAI_TIMEOUT
        )
    if isinstance(error, openai.APIConnectionError):
        return ProviderFault(
            "The model provider cannot be reached. Is OPENAI_BASE_URL right?",
            code=ErrorCode.OPENAI_CONNECTION_ERROR,
        )
    if isinstance(error, openai.APIStatusError):
        return ProviderFault(
            f"The model provider answered {error.status_code}: {_message(error)}",
            code=_code(error),
            retry_after=_retry_after(error),
            details={"status": error.status_code},
        )
    return ProviderFault(
        f"The model provider failed: {type(error).__name__}", code=ErrorCode.OPENAI_ERROR
    )


def _code(error: openai.APIStatusError) -> ErrorCode:
    match error.status_code:
        case 401 | 403:
            return ErrorCode.OPENAI_AUTH_ERROR
        case 404:
            return ErrorCode.OPENAI_INVALID_MODEL
        case 408 | 504:
            return ErrorCode.OPENAI_TIMEOUT
        case 429:
            return ErrorCode.OPENAI_RATE_LIMIT
        case status if status >= 500:
            return ErrorCode.OPENAI_CONNECTION_ERROR
        case _:
            return ErrorCode.OPENAI_ERROR


def _message(error: openai.APIStatusError) -> str:
    # Some providers repeat a part of the key in their error message.
    if error.status_code in {401, 403}:
        return "the key was refused. Check OPENAI_API_KEY."
    body = error.body
    text = body
    if isinstance(body, dict):
        text = body.get("message") or body.get("error") or body.get("detail")
    return str(text)[:300] if text else "no further explanation"


def _retry_after(error: openai.APIStatusError) -> float | None:
    """In seconds; a provider may also give a point in time."""
    asked = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(asked)
    except ValueError:
        return None
    return max(0.0, (as_utc(until) - datetime.now(UTC)).total_seconds())


def _pause(fault: ProviderFault, attempt: int) -> float | None:
    """Seconds to wait before the next try; None if another try is pointless."""
    if fault.code not in RETRYABLE:
        return None
    if fault.retry_after is not None:
        return fault.retry_after if fault.retry_after <= _RETRY_AFTER_LIMIT_SECONDS else None
    backoff = min(BACKOFF_FIRST_SECONDS * 2.0**attempt, _BACKOFF_LIMIT_SECONDS)
    return backoff * random.uniform(0.75, 1.25)
