"""One structured question to a chat model: JSON by schema, with all its failure modes.

- A server that does not support schemas is asked for plain JSON from then on.
- An answer that is not JSON is asked for once more; then the attempt has failed.
- A truncated answer and a refusal are outcomes that the caller handles.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from memory_core.extraction.ledger import Ledger, ModelCall
from memory_core.extraction.slots import Slot
from memory_core.kernel import trace
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.kernel.provider import as_fault, build_client, with_retries
from memory_core.kernel.settings import Settings
from memory_core.kernel.trace import SpanContext
from memory_core.telemetry.spans import span
from memory_core.text.printable import printable
from memory_core.text.tokens import count_tokens

_TRIES_FOR_JSON = 2
_REFUSAL_LIMIT = 2_000
_FENCE = "```"
# The largest value of the integer columns.
_MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Reply:
    outcome: Literal["ok", "refusal", "truncated"]
    data: Any = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    kind: Literal["extract", "merge"]
    schema_name: str
    schema: dict[str, Any]
    system: str
    messages: tuple[str, ...]
    accepts: Callable[[dict[str, Any]], bool] = lambda _: True


class ChatModel:
    """Shared by all documents of a run. At most EXTRACT_CONCURRENCY of its calls are in flight;
    with `slot`, that limit holds over all runs."""

    def __init__(self, settings: Settings, slot: Slot | None = None) -> None:
        self.model = settings.openai_event_model
        self._client = build_client(settings)
        self._retries = settings.openai_max_retries
        self._timeout = settings.openai_timeout
        own = asyncio.Semaphore(settings.extract_concurrency)
        self._slot: Slot = slot or (lambda: own)
        self._knows_schemas = True

    async def ask(self, question: Question, ledger: Ledger) -> Reply:
        for _ in range(_TRIES_FOR_JSON):
            completion = await self._complete(question, ledger)
            reply = _read(completion, question)
            ledger(_record(question, self.model, completion, reply))
            if reply is not None:
                return reply
        raise ProviderFault(
            f"The model {self.model} answered twice with something that is not the JSON it was "
            "asked for.",
            code=ErrorCode.INVALID_JSON_SCHEMA,
        )

    async def close(self) -> None:
        await self._client.close()

    async def _complete(self, question: Question, ledger: Ledger) -> "_Timed":
        # Another task may change `_knows_schemas` during the call; what matters is how this call
        # was made.
        by_schema = self._knows_schemas
        try:
            return await with_retries(lambda: self._call(question, ledger), retries=self._retries)
        except ProviderFault as fault:
            if not (by_schema and _is_about_schema(fault)):
                raise
            self._knows_schemas = False
            return await with_retries(lambda: self._call(question, ledger), retries=self._retries)

    async def _call(self, question: Question, ledger: Ledger) -> "_Timed":
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.model}
        async with self._slot():
            with span(f"model {question.kind}", attributes=attributes) as work:
                begun = time.perf_counter()
                try:
                    completion = await self._post(question)
                    choice = completion.choices[0]
                    _ = choice.message.content
                except (openai.OpenAIError, TimeoutError) as error:
                    fault = as_fault(error)
                    work.fail(fault.code.value)
                    ledger(self._failed(question, fault, begun))
                    raise
                except (ValueError, TypeError, LookupError, AttributeError) as error:
                    fault = _unreadable()
                    work.fail(fault.code.value)
                    ledger(self._failed(question, fault, begun))
                    raise fault from error
                timed = _Timed(
                    completion, choice, (time.perf_counter() - begun) * 1000, work.context
                )
                work.attributes["gen_ai.usage.input_tokens"] = timed.prompt_tokens
                work.attributes["gen_ai.usage.output_tokens"] = timed.completion_tokens
                return timed

    async def _post(self, question: Question) -> ChatCompletion:
        """Post the request directly: `chat.completions.create` traverses the schema again for each
        call, which takes longer than everything that we do with the answer."""
        # The client's own time-out applies to each read, so a server that sends slowly would never
        # exceed it.
        async with asyncio.timeout(self._timeout):
            return await self._client.post(
                "/chat/completions",
                cast_to=ChatCompletion,
                body={
                    "model": self.model,
                    "temperature": 0,
                    "messages": self._messages(question),
                    "response_format": self._format(question),
                },
                options={"headers": trace.headers()},
            )

    def _failed(self, question: Question, fault: ProviderFault, begun: float) -> ModelCall:
        latency = (time.perf_counter() - begun) * 1000
        return ModelCall(question.kind, self.model, fault.code.value, latency)

    def _messages(self, question: Question) -> list[dict[str, str]]:
        system = question.system
        if not self._knows_schemas:
            system += "\n\nThe JSON schema of the answer:\n" + json.dumps(question.schema)
        return [
            {"role": "system", "content": system},
            *({"role": "user", "content": text} for text in question.messages),
        ]

    def _format(self, question: Question) -> dict[str, Any]:
        if not self._knows_schemas:
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {
                "name": question.schema_name,
                "strict": True,
                "schema": question.schema,
            },
        }


@dataclass(frozen=True, slots=True)
class _Timed:
    completion: ChatCompletion
    choice: Choice
    latency_ms: float
    span: SpanContext

    @property
    def prompt_tokens(self) -> int:
        return _count(self.completion.usage, "prompt_tokens")

    @property
    def completion_tokens(self) -> int:
        return _count(self.completion.usage, "completion_tokens")


def _read(timed: _Timed, question: Question) -> Reply | None:
    """The reply; None if it is not the requested JSON."""
    choice = timed.choice
    if choice.finish_reason == "length":
        return Reply("truncated")
    if choice.message.refusal or choice.finish_reason == "content_filter":
        reason = choice.message.refusal or "stopped by a content filter"
        return Reply("refusal", refusal=printable(str(reason), _REFUSAL_LIMIT))
    content = str(choice.message.content or "")
    try:
        data = json.loads(_unfenced(content))
    except (ValueError, RecursionError):
        return None
    return Reply("ok", data=data) if isinstance(data, dict) and question.accepts(data) else None


def _unfenced(content: str) -> str:
    """The content without the code fence that some models put around JSON."""
    content = content.strip()
    if not (content.startswith(_FENCE) and content.endswith(_FENCE)):
        return content
    return content.removeprefix(_FENCE).removeprefix("json").removesuffix(_FENCE)


def _record(question: Question, model: str, timed: _Timed, reply: Reply | None) -> ModelCall:
    details = getattr(timed.completion.usage, "prompt_tokens_details", None)
    return ModelCall(
        kind=question.kind,
        model=model,
        outcome=reply.outcome if reply else "invalid_json",
        latency_ms=timed.latency_ms,
        prompt_tokens=timed.prompt_tokens,
        completion_tokens=timed.completion_tokens,
        cached_tokens=_count(details, "cached_tokens"),
        counted_tokens=count_question(question.system, question.messages),
        span=timed.span,
    )


def count_question(system: str, messages: Iterable[str]) -> int:
    """Tokens of a question's messages by our own count: without schema and framing, which each
    provider counts differently."""
    return _count_once(system) + sum(count_tokens(text) for text in messages)


# Thousands of questions share the same instructions.
_count_once = lru_cache(maxsize=16)(count_tokens)


def _count(usage: object, name: str) -> int:
    """A number of the usage report; 0 where a server does not count."""
    value = getattr(usage, name, None)
    return min(max(value, 0), _MOST_TOKENS) if type(value) is int else 0


def _unreadable() -> ProviderFault:
    return ProviderFault(
        "The model provider's answer cannot be read. Is OPENAI_BASE_URL right?",
        code=ErrorCode.OPENAI_ERROR,
    )


def _is_about_schema(fault: ProviderFault) -> bool:
    """How servers without structured output reject it: a 400 or 422 that names the parameter."""
    words = fault.message.lower()
    return fault.details.get("status") in {400, 422} and any(
        word in words for word in ("response_format", "json_schema", "schema")
    )
