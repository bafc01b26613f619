"""A scripted OpenAI-compatible server: the one stand-in of all tests and benchmarks, real HTTP.

    with ScriptedProvider() as provider:
        provider.enqueue(RateLimit(retry_after=0), Answer({"events": [], "entities": []}))
        ...                       # point OPENAI_BASE_URL at provider.base_url
        assert [call.kind for call in provider.calls] == ["chat", "chat"]

Without a script it behaves: embeddings are near for texts that share words, extraction finds one
event per telling sentence, merging finds no duplicates. `python -m tests.scripted_provider
--port 9999 --latency 0.5` runs it as a process of its own.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import math
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.patience import PATIENCE
from tests.provider_protocol import (
    Body,
    Dropped,
    asks_to_merge,
    completion,
    error,
    schema_refused,
    tokens,
    wants_schema,
)

Json = dict[str, Any]
MAX_QUOTE_WORDS = 25
# How far the default extraction's offsets are off: a model's offsets are hints at best.
OFFSET_ERROR = 3


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived."""

    kind: Literal["chat", "embedding"]
    body: Body
    time: float
    authorization: str
    traceparent: str = ""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong once. With `only`, it waits for a request it applies to."""

    only: Callable[[Body], bool] | None = None

    def applies(self, body: Body) -> bool:
        return self.only is None or self.only(body)

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response | None:
        """The faulty answer; None goes on as if nothing had happened."""
        raise NotImplementedError


@dataclass(frozen=True)
class RateLimit(Fault):
    retry_after: float | None = 0

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        headers = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        return error(429, "Rate limit reached for requests.", "rate_limit_exceeded", headers)


@dataclass(frozen=True)
class Timeout(Fault):
    """Answers, but so late that a client with a shorter timeout has given up."""

    seconds: float = 60.0

    async def respond(self, provider: "ScriptedProvider", body: Body) -> None:
        await asyncio.sleep(self.seconds)


@dataclass(frozen=True)
class Held(Fault):
    """A call that is answered only when its gate opens: as a provider that takes its time."""

    gate: threading.Event = field(default_factory=threading.Event)
    then: Fault | None = None

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response | None:
        while not self.gate.is_set():
            await asyncio.sleep(0.01)
        return await self.then.respond(provider, body) if self.then else None


@dataclass(frozen=True)
class ServerError(Fault):
    status: int = 500

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return error(self.status, "The server had an error.", "server_error")


@dataclass(frozen=True)
class AuthError(Fault):
    """As some providers do, repeats the end of the key in its message."""

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        key = provider.calls[-1].authorization.removeprefix("Bearer ")
        return error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")


@dataclass(frozen=True)
class UnknownModel(Fault):
    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return error(404, f"The model {body.get('model')!r} does not exist.", "model_not_found")


@dataclass(frozen=True)
class RefusesSchema(Fault):
    """As servers that know only `json_object`. `ScriptedProvider.refuses_schema` is for good."""

    def applies(self, body: Body) -> bool:
        return wants_schema(body) and super().applies(body)

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return schema_refused()


@dataclass(frozen=True)
class Truncated(Fault):
    """The answer's first half, cut off by the token limit."""

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        text = json.dumps(provider.answer(body))
        return completion(body, text[: len(text) // 2], finish_reason="length")


@dataclass(frozen=True)
class InvalidJson(Fault):
    text: str = '{"events": [{"category": '

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return completion(body, self.text)


@dataclass(frozen=True)
class Refusal(Fault):
    text: str = "I cannot help with that."

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return completion(body, None, refusal=self.text)


@dataclass(frozen=True)
class Answer(Fault):
    """Not a fault at all: this very answer."""

    answer: Json = field(default_factory=dict)

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return completion(body, json.dumps(self.answer))


@dataclass(frozen=True)
class WrongDimension(Fault):
    """Vectors of another dimension than was asked for."""

    dimension: int = 7

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return _embeddings({**body, "dimensions": self.dimension})


@dataclass(frozen=True)
class RawBody(Fault):
    """Status 200 with a body that is not what the protocol says."""

    text: str = "<html>It works!</html>"

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return Response(self.text, media_type="application/json")


@dataclass(frozen=True)
class DropConnection(Fault):
    """The connection closes in the middle of the answer."""

    async def respond(self, provider: "ScriptedProvider", body: Body) -> Response:
        return Dropped()


Extract = Callable[[str, Body], Json]
Merge = Callable[[Any, Body], Json]


class ScriptedProvider:
    """The server, in a thread of its own. Attributes may be changed while it runs."""

    def __init__(self, *, port: int = 0, latency: float = 0.0) -> None:
        self.latency = latency
        self.calls: list[Call] = []
        self.in_flight = self.peak_in_flight = 0
        self.refuses_schema = False
        self.on_extract: Extract = extract_telling_sentences
        self.on_merge: Merge = merge_nothing
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(self._application(), log_level="critical", lifespan="off")
        )
        self._thread = threading.Thread(target=self.serve, name="scripted-provider", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def enqueue(self, *faults: Fault) -> None:
        """Each is consumed by one request (the next it applies to), in this order."""
        with self._lock:
            self._faults += faults

    def reset(self) -> None:
        """Forget calls, script and replaced behaviour."""
        with self._lock:
            self._faults.clear()
        self.calls.clear()
        self.peak_in_flight = self.in_flight
        self.latency, self.refuses_schema = 0.0, False
        self.on_extract, self.on_merge = extract_telling_sentences, merge_nothing

    @property
    def chats(self) -> list[Call]:
        return [call for call in self.calls if call.kind == "chat"]

    @property
    def embeddings(self) -> list[Call]:
        return [call for call in self.calls if call.kind == "embedding"]

    def answer(self, body: Body) -> Json:
        """What the model says to this request when it behaves."""
        message = last_user_message(body)
        if asks_to_merge(body, message):
            return self.on_merge(json.loads(message), body)
        return self.on_extract(message, body)

    def serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the scripted provider does not start")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/embeddings", self._embedding, methods=["POST"]),
                Route("/health", self._health),
            ]
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse(
            {"status": "ok", "calls": len(self.calls), "peak_in_flight": self.peak_in_flight}
        )

    async def _chat(self, request: Request) -> Response:
        return await self._handle("chat", request, self._complete)

    async def _embedding(self, request: Request) -> Response:
        return await self._handle("embedding", request, _embeddings)

    def _complete(self, body: Body) -> Response:
        if self.refuses_schema and wants_schema(body):
            return schema_refused()
        return completion(body, json.dumps(self.answer(body), ensure_ascii=False))

    async def _handle(
        self,
        kind: Literal["chat", "embedding"],
        request: Request,
        behave: Callable[[Body], Response],
    ) -> Response:
        body = await request.json()
        authorization = request.headers.get("authorization", "")
        traceparent = request.headers.get("traceparent", "")
        self.calls.append(Call(kind, body, time.monotonic(), authorization, traceparent))
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency)
            fault = self._next_fault(body)
            faulty = await fault.respond(self, body) if fault is not None else None
            return behave(body) if faulty is None else faulty
        finally:
            self.in_flight -= 1

    def _next_fault(self, body: Body) -> Fault | None:
        with self._lock:
            for index, fault in enumerate(self._faults):
                if fault.applies(body):
                    return self._faults.pop(index)
        return None


def last_user_message(body: Body) -> str:
    users = [message for message in body["messages"] if message["role"] == "user"]
    content = users[-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


# --- how it behaves without a script ---------------------------------------------------------

_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?](?=\s|$)|(?=\n|$))")
_FULL_NAME = re.compile(r"\b[A-Z][a-zà-ž]+(?: [A-Z][a-zà-ž]+)+\b")
# What gives a sentence away, and the category it then has.
_MARKERS = (
    (re.compile(r"\b(?:Decision:|[Dd]ecided|[Aa]greed)"), "Decision"),
    (re.compile(r"\b(?:will|I'll|promised)\b"), "Commitment"),
    (re.compile(r"\b(?:Risk:|risk|blocked)\b"), "QualityRisk"),
    (re.compile(r"\b(?:Feedback:|feedback)"), "Feedback"),
    (re.compile(r"\b(?:shipped|finished|deployed)\b"), "Execution"),
    (re.compile(r"\b(?:changed|renamed|moved)\b"), "Change"),
)


def extract_telling_sentences(chunk: str, _: Body) -> Json:
    """One event per sentence with a marker, quoted exactly, with offsets slightly wrong."""
    events = []
    for sentence in _SENTENCE.finditer(chunk):
        category = next((name for mark, name in _MARKERS if mark.search(sentence[0])), None)
        if category is not None:
            events.append(_event(category, sentence[0], sentence.start()))
    names = dict.fromkeys(_FULL_NAME.findall(chunk))
    entities = [{"name": name, "type": "person", "aliases": []} for name in names]
    return {"events": events, "entities": entities}


def merge_nothing(_: Any, __: Body) -> Json:
    return {"groups": []}


def _event(category: str, sentence: str, start: int) -> Json:
    words = list(re.finditer(r"\S+", sentence))[:MAX_QUOTE_WORDS]
    quote = sentence[: words[-1].end()]
    people = list(dict.fromkeys(_FULL_NAME.findall(sentence)))
    return {
        "category": category,
        "subject": {"type": "other", "ref": quote[:60]},
        "actors": [{"ref": name, "role": "owner"} for name in people],
        "event_time": None,
        "narrative": sentence,
        "evidence": {
            "quote": quote,
            "start_char": start + OFFSET_ERROR,
            "end_char": start + OFFSET_ERROR + len(quote),
        },
        "confidence": 0.9,
    }


def _embeddings(body: Body) -> Response:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    dimensions = body.get("dimensions") or 256
    as_base64 = body.get("encoding_format") == "base64"
    vectors = [embed(text, dimensions) for text in texts]
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(v) if as_base64 else v}
        for index, v in enumerate(vectors)
    ]
    used = sum(tokens(text) for text in texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return JSONResponse(
        {"object": "list", "model": body.get("model"), "data": data, "usage": usage}
    )


def embed(text: str, dimensions: int) -> list[float]:
    """The sum of its words' directions: texts that share words are near each other."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [text]:
        for place, sign in _direction(word):
            vector[place % dimensions] += sign
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


@lru_cache(maxsize=65_536)
def _direction(word: str) -> tuple[tuple[int, float], ...]:
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=24).digest()
    numbers = struct.unpack("<6I", digest)
    return tuple((number >> 1, 1.0 if number & 1 else -1.0) for number in numbers)


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    provider = ScriptedProvider(port=options.port, latency=options.latency)
    print(provider.base_url, flush=True)
    provider.serve()


if __name__ == "__main__":
    main()
