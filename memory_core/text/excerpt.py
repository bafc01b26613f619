"""The part of a passage that answers a question: the sentences that share most of its words."""

import re
from collections.abc import Iterator
from functools import cache

from memory_core.text.scripts import blank_pairs, pairs_of

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^\n]*?(?:[.!?…][\"'”’)\]]*(?=\s)|\n|$)", re.DOTALL)
# Words of questions that say nothing about their topic.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been by can could did do does for from had has have how i in is it
        its may of on or our shall should so that the their them they this to was we were what when
        where which who whom whose why will with would you your""",
    )
)
# Forms of a word usually share this many letters: decide, decided, decision.
_STEM = 5


def excerpt(text: str, question: str, length: int) -> str:
    """About `length` characters at most, in whole sentences where they fit, on one line."""
    whole = " ".join(text.split())
    if len(whole) <= length:
        return whole
    sentences = [" ".join(part.split()) for part in _SENTENCE.findall(text)]
    sentences = [part for part in sentences if part]
    start = _best_start(sentences, _stems(question), length)
    taken = sentences[start]
    for sentence in sentences[start + 1 :]:
        if len(taken) + 1 + len(sentence) > length:
            break
        taken = f"{taken} {sentence}"
    before = "… " if start else ""
    if len(taken) > length:
        return before + _around(taken, _stems(question), length)
    return f"{before}{taken}{'' if whole.endswith(taken) else ' …'}"


def _best_start(sentences: list[str], wanted: frozenset[str], length: int) -> int:
    """The start of the run of sentences with most of the words; the first of equal ones."""
    matches = [_stems(sentence) & wanted for sentence in sentences]
    scores = []
    for start, own in enumerate(matches):
        shared, size = set(own), len(sentences[start])
        for next_one in range(start + 1, len(sentences)):
            size += 1 + len(sentences[next_one])
            if size > length:
                break
            shared |= matches[next_one]
        # A run that begins with a sentence without any of the words could begin later.
        scores.append((len(shared) if own else 0, len(own)))
    best = max(scores)
    return scores.index(best)


def _around(sentence: str, wanted: frozenset[str], length: int) -> str:
    """A part of one long sentence, with some of the text before the words."""
    places = [place for place, word in _words(sentence) if _stem(word) in wanted]
    room = length * 3 // 4
    counts = [sum(place <= other < place + room for other in places) for place in places]
    start = max(0, places[counts.index(max(counts))] + room - length) if places else 0
    if start + length > len(sentence):
        start = max(0, len(sentence) - length)
    elif start:
        # At the beginning of a word, if there is one near.
        start = max(start - length // 8, sentence.rfind(" ", 0, start) + 1)
    part = sentence[start : start + length]
    if start + length < len(sentence):
        words, _, last = part.rpartition(" ")
        part = f"{words if words and len(last) <= length // 8 else part} …"
    return f"{'… ' if start else ''}{part}"


@cache
def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for _, word in _words(text) if word not in _COMMON)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """The words with their places; pairs of characters of scripts without spaces."""
    for match in _WORD.finditer(blank_pairs(text)):
        yield match.start(), match[0].lower()
    yield from pairs_of(text)


def _stem(word: str) -> str:
    return word[:_STEM]
