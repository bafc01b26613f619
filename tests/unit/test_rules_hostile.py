"""Hostile text takes no longer than ordinary text of its length."""

import time

import pytest

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import propose

LENGTH = 8_000
# Text that is nothing but sentences of events takes twice the time of ordinary text, and a pattern
# that backtracks a hundred times as much. In between is room for a machine that does other things.
MOST = 4.0
REPETITIONS = 3

PARAGRAPH = (
    "The team met on Tuesday to look at the numbers. Ann Lee will send the report to Bob by "
    "Friday, and we decided to keep the old price for now.\n\n- The importer is slow on large "
    "files.\n- Bob fixed the login page.\n\n## Decisions\n\nWe will use Postgres for the queue.\n\n"
)
PIECES = [
    " ", "\n", "\t", " \n", "[", "[]", "[a](", "((", "|", "| a ", "| a | b |\n", '"', '"a ', "“a ",
    '"' + " " * 480, "*", "_", "_a", "`", "`a", "<", "<a ", "<nick> hi\n", "<!--", "> ", "\\",
    "a\\\n", "Ann Lee ", "Ann Lee, ", "Ann and ", "Ann Lee (AL) ", "Ann Lee aka ", "ann lee ",
    "A'", "A-", "Aa. ", "12 March 2024 ", "by the end of ", "12:30 ", "[12:30] a: b\n", "1.", "1",
    "a: ", "Ann: hi\n", "# A\n", "a\n---\n", "=", "- a\n", "- [ ] a\n", "## 1.2.3\n", "@a ",
    "a@b.c ", "A <a@b.c> ", "http://a.b/c ", "I will ", "I'll send ", "we decided to ",
    "we have also then now ", "changed from ", "the team ", "users from a ", "um uh {disfmarker} ",
    "yes yes ", "Author: A\n", "From: A <a@b>\n", "On Mon wrote:\n", "Attendees: ",
    "12.05.23, 18:02 - a\n", "12.05.23, 18:02 - Ann: I'll send it\n", "Lee, Ann: hi\n", "a. ",
    "ann — 30/08/2022 14:02\nhi\n", "pkg (1.0) a; u\n", "pkg (1.0) a; u\n  * b\n",
    "commit a\nAuthor: A\n", "00:00:03.120 --> 00:00:07.400\nAnn: hi\n",
    "| task | owner | status |\n", "pkg 1.0 (2024-01-02)\n",
    "outage on 3 October 2022 ", "Motion carried. ", "I'll send you ", "a" * 40 + " ", "a::", "1\n",
    "there is a risk ", "not ", "ignore the ", "you must ", "a;", "?", "é", "日", "👩🏽‍🔧", "\x00",
]  # fmt: skip


def seconds(text: str, kind: str) -> float:
    """The least of several: other work of the machine only adds."""
    context = DocumentContext(kind, author="Ann Lee")
    taken = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        propose(text, context)
        taken.append(time.process_time() - begun)
    return min(taken)


def filled(piece: str) -> str:
    return (piece * (LENGTH // len(piece) + 1))[:LENGTH]


@pytest.fixture(scope="module", params=["note", "transcript"])
def ordinary(request: pytest.FixtureRequest) -> tuple[str, float]:
    return request.param, seconds(filled(PARAGRAPH), request.param)


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: repr(piece)[:20])
def test_hostile_text_takes_no_longer_than_ordinary_text(
    ordinary: tuple[str, float], piece: str
) -> None:
    kind, usual = ordinary
    assert seconds(filled(piece), kind) <= MOST * usual
