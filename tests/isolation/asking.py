"""A person who asks the server something, at random; what comes back is looked through."""

import json
import random
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from mcp_server.failures import error_in
from tests.isolation.filling import Filled
from tests.isolation.principals import ASKING, Person
from tests.isolation.world import Document, World
from tests.tool_client import Json

T = TypeVar("T")
_UNKNOWN_DIGITS = "0123456789abcdef"


class Leak(AssertionError):
    """An answer has something in it, or leaves something out, that the rules do not allow."""


@dataclass
class Asking:
    filled: Filled
    who: Person
    rng: random.Random

    @property
    def world(self) -> World:
        return self.filled.world

    async def __call__(self, tool: str, /, **arguments: Any) -> Json:
        """The answer, or the error, of a call."""
        result = await self.filled.tools[self.who].client.call_tool(tool, arguments)
        answer = error_in(result) if result.is_error else result.structured_content
        assert answer is not None
        self.look_through(f"{tool} {arguments}", json.dumps(answer), json.dumps(arguments))
        return dict(answer)

    def look_through(self, call: str, text: str, asked: str = "") -> None:
        if leaked := self.world.leaks(self.who, text, asked):
            raise Leak(f"{self.who} called {call} and got {sorted(leaked)[:5]} in {text[:2000]}")

    def expect(self, is_right: bool, *what: object) -> None:
        if not is_right:
            raise Leak(f"{self.who}: {' '.join(str(one)[:1500] for one in what)}")

    def equal(self, got: object, wanted: object, what: str) -> None:
        if got != wanted:
            if isinstance(got, set) and isinstance(wanted, set):
                got, wanted = f"too many {got - wanted}", f"missing {wanted - got}"
            self.expect(False, what, "is", got, "and not", wanted)

    async def missing(self, tool: str, /, **arguments: str) -> None:
        """An id that one may not see is answered like one that there is not: word by word."""
        unknown = {name: self._like(value) for name, value in arguments.items()}
        got = str(await self(tool, **arguments))
        wanted = str(await self(tool, **unknown))
        for name, value in unknown.items():
            wanted = wanted.replace(value, arguments[name])
        self.equal(got, wanted, f"{tool} of what is not seen")

    def _like(self, id_: str) -> str:
        """An id of the same form that nothing has."""
        if "_" in id_:
            prefix, _, digits = id_.partition("_")
            return prefix + "_" + "".join(self.rng.choices(_UNKNOWN_DIGITS, k=len(digits)))
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def pick(self, things: list[T]) -> T | None:
        return self.rng.choice(things) if things else None

    def any_document(self) -> Document:
        return self.rng.choice(self.world.documents())

    def some_words(self) -> str:
        """Of a query: what all documents have, words of any of them, mistyped or cut short."""
        word = self.rng.choice(sorted(self.any_document().words))
        return self.rng.choice(
            (
                "launch",
                "launch report",
                word,
                f"launch {word}",
                f"{word[:4]}*",
                word[:5] + "x" + word[6:],
                word[:6] + word[7:],
                f'"{word}"',
                "zq*",
            )
        )

    def some_name(self) -> str:
        person = self.rng.choice(self.any_document().people)
        return self.rng.choice((person, person.split()[0], person.split()[1], person.upper()))


def any_person(filled: Filled, rng: random.Random) -> Asking:
    return Asking(filled, rng.choice(ASKING), rng)
