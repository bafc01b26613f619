"""A pattern that takes too long ends in time, and what it looked at is left out and counted."""

import ast
from pathlib import Path

import pytest

from memory_core.extraction import rules
from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import finder, propose
from memory_core.extraction.rules.guards import is_question
from memory_core.text import timed_patterns

# Each further letter doubles the time that an engine with backtracking takes.
ENDLESS = "(?:a|aa)+(?:b|c)"
TEXT = "Ann Lee will send the report by Friday. Bob Ray fixed the login page.\n"
NOTE = DocumentContext("note", author="Ann Lee")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> timed_patterns.Pattern:
    monkeypatch.setattr(timed_patterns, "LIMIT", 0.01)
    return timed_patterns.Pattern(ENDLESS, 0)


@pytest.mark.parametrize("method", ["search", "match", "fullmatch", "findall", "split"])
def test_a_look_that_takes_too_long_ends_in_time(
    impatient: timed_patterns.Pattern, method: str
) -> None:
    with pytest.raises(TimeoutError):
        getattr(impatient, method)("a" * 500)


def test_every_pattern_of_the_rules_has_a_limit() -> None:
    for file in Path(rules.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not {name.name for name in node.names} & {"re", "regex"}, file.name
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("re", "regex"), file.name


@pytest.mark.parametrize("slow", ["report", "login"])
def test_the_sentence_is_left_out_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    def looks(sentence: str) -> bool:
        if slow in sentence:
            raise TimeoutError
        return is_question(sentence)

    monkeypatch.setattr(finder.guards, "is_question", looks)
    proposal = propose(TEXT, NOTE)

    assert len(proposal.events) == 1
    [skipped] = proposal.rejections
    assert skipped.reason == "RULE_TIMED_OUT"
    assert slow in skipped.detail


def test_a_text_that_takes_too_long_everywhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(sentence: str) -> bool:
        raise TimeoutError

    monkeypatch.setattr(finder.guards, "is_question", looks)
    proposal = propose(TEXT * 10, NOTE)

    assert proposal.events == ()
    assert [item.reason for item in proposal.rejections] == ["RULE_TIMED_OUT"]
