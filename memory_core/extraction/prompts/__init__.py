"""Prompts: files `name.N.md`, where N grows with every change.

A prompt's version is its number and a hash of its text. So two deployments can tell which of them
is newer, and no text can change under the same number unnoticed (`checksums.json`).

An operator may add prompts in PROMPTS_DIR. The highest number counts, and a shipped number keeps
the shipped text.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from memory_core.kernel.errors import ConfigurationFault

NAMES = ("extract", "merge")
_FILE = re.compile(r"(?P<name>[a-z]+)\.(?P<number>[1-9][0-9]{0,8})\.md")


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
def load(name: str, folder: Path | None = None) -> Prompt:
    """The newest version of a prompt. Raises ConfigurationFault for a bad file in the folder."""
    return max(versions(name, folder).values(), key=lambda prompt: prompt.number)


def versions(name: str, folder: Path | None = None) -> dict[int, Prompt]:
    """All versions of a prompt, by number."""
    prompts = {prompt.number: prompt for prompt in _shipped() if prompt.name == name}
    for prompt in _own(folder) if folder is not None else ():
        if prompt.name != name:
            continue
        if prompts.get(prompt.number, prompt).text != prompt.text:
            raise ConfigurationFault(
                f"{name}.{prompt.number}.md in PROMPTS_DIR is not the text that is shipped under "
                f"this number. Give yours the next number: {name}.{max(prompts) + 1}.md."
            )
        prompts[prompt.number] = prompt
    return prompts


def _shipped() -> list[Prompt]:
    files = resources.files(__package__).iterdir()
    return [_read(file) for file in files if file.name.endswith(".md")]


def _own(folder: Path) -> list[Prompt]:
    return [_read(file) for file in sorted(folder.iterdir()) if file.name.endswith(".md")]


def _read(file: Traversable) -> Prompt:
    match = _FILE.fullmatch(file.name)
    if match is None or match["name"] not in NAMES:
        raise ConfigurationFault(
            f"{file.name} in PROMPTS_DIR is no prompt: name it extract.N.md or merge.N.md, where N "
            "is 1 or more and raised with every change."
        )
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationFault(f"{file.name} in PROMPTS_DIR cannot be read: {error}") from None
    if not text.strip():
        raise ConfigurationFault(f"{file.name} in PROMPTS_DIR is empty.")
    return Prompt(match["name"], int(match["number"]), text)
