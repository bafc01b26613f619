"""One structured question to a chat model: JSON by schema, with every way it can go wrong.

- A server that does not know schemas is asked for plain JSON from then on.
- An answer that is no JSON is asked for once more, then it is a failed attempt.
- A truncated answer and a refusal are outcomes, for the caller to act on.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Literal, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from memory_core.errors import ErrorCode, ProviderFault
from memory_core.extraction.model import CallLog, ModelCall
from memory_core.provider import as_fault, build_client, with_retries
from memory_core.settings import Settings

_TRIES_FOR_JSON = 2
_FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


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


class ChatModel:
    """Shared by a whole run: at most EXTRACT_CONCURRENCY calls are in flight, however many
    documents are worked on."""

    def __init__(self, settings: Settings) -> None:
        self.model = settings.openai_event_model
        self._client = build_client(settings)
        self._retries = settings.openai_max_retries
        self._slots = asyncio.Semaphore(settings.extract_concurrency)
        self._knows_schemas = True

    async def ask(self, question: Question, log: CallLog) -> Reply:
        for _ in range(_TRIES_FOR_JSON):
            completion = await self._complete(question, log)
            reply = _read(completion)
            log(_record(question.kind, self.model, completion, reply))
            if reply is not None:
                return reply
        raise ProviderFault(
            f"The model {self.model} answered twice with something that is not the JSON it was "
            "asked for.",
            code=ErrorCode.INVALID_JSON_SCHEMA,
        )

    async def close(self) -> None:
        await self._client.close()

    async def _complete(self, question: Question, log: CallLog) -> "_Timed":
        try:
            return await with_retries(lambda: self._call(question, log), retries=self._retries)
        except ProviderFault as fault:
            if not (self._knows_schemas and _is_about_schema(fault)):
                raise
            self._knows_schemas = False
            return await with_retries(lambda: self._call(question, log), retries=self._retries)

    async def _call(self, question: Question, log: CallLog) -> "_Timed":
        async with self._slots:
            begun = time.perf_counter()
            try:
                completion = await self._client.chat.completions.create(
                    model=self.model,
                    temperature=0,
                    messages=cast(list[ChatCompletionMessageParam], self._messages(question)),
                    response_format=cast(ResponseFormatJSONSchema, self._format(question)),
                )
            except openai.OpenAIError as error:
                latency = (time.perf_counter() - begun) * 1000
                log(ModelCall(question.kind, self.model, as_fault(error).code.value, latency))
                raise
            return _Timed(completion, (time.perf_counter() - begun) * 1000)

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
    latency_ms: float


def _read(timed: _Timed) -> Reply | None:
    """None: not the JSON that was asked for."""
    choices = timed.completion.choices
    if not choices:
        return None
    choice = choices[0]
    if choice.finish_reason == "length":
        return Reply("truncated")
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return Reply("refusal", refusal=choice.message.refusal or "stopped by a content filter")
    content = choice.message.content or ""
    fenced = _FENCE.match(content)
    try:
        data = json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        return None
    return Reply("ok", data=data) if isinstance(data, dict) else None


def _record(kind: str, model: str, timed: _Timed, reply: Reply | None) -> ModelCall:
    usage = timed.completion.usage
    details = usage.prompt_tokens_details if usage else None
    return ModelCall(
        kind=kind,
        model=model,
        outcome=reply.outcome if reply else "invalid_json",
        latency_ms=timed.latency_ms,
        prompt_tokens=usage.prompt_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
    )


def _is_about_schema(fault: ProviderFault) -> bool:
    """How servers without structured output say so: a 400 or 422 that names the parameter."""
    words = fault.message.lower()
    return fault.details.get("status") in {400, 422} and any(
        word in words for word in ("response_format", "json_schema", "schema")
    )
