"""Prompts: files `name.N.md`, where N is raised with every change.

A prompt's version is its number and a hash of its text, so that two deployments can tell which of
them is newer and nobody can change a text under the same number unnoticed (`checksums.json`).
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    number: int
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def version(self) -> str:
        return f"{self.number}-{self.checksum[:8]}"


@cache
def load(name: str) -> Prompt:
    """The newest version of that prompt."""
    return max(_all(name), key=lambda prompt: prompt.number)


def checksums() -> dict[str, str]:
    """The recorded checksum of every prompt file ever shipped."""
    text = resources.files(__package__).joinpath("checksums.json").read_text(encoding="utf-8")
    recorded: dict[str, str] = json.loads(text)
    return recorded


def _all(name: str) -> list[Prompt]:
    found = []
    for file in resources.files(__package__).iterdir():
        stem, _, rest = file.name.partition(".")
        if stem == name and rest.endswith(".md"):
            found.append(Prompt(name, int(rest.removesuffix(".md")), file.read_text("utf-8")))
    return found
