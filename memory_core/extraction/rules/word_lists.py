"""The word lists of the rules, read from word_lists.toml."""

import tomllib
from importlib import resources

_LISTS: dict[str, dict[str, str]] = tomllib.loads(
    resources.files(__package__).joinpath("word_lists.toml").read_text("utf-8")
)


def words(section: str, name: str) -> str:
    """A list of words, separated by spaces."""
    return _LISTS[section][name]


def phrases(section: str, name: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in _LISTS[section][name].split(","))
