"""Whether a report says that a promise was kept.

Precision comes before recall: a promise that wrongly stays open is asked about again, but one that
is wrongly called done is forgotten. So a report must share most of the promise's own words, all of
its numbers and the kind of act, and must be later. A report keeps one promise only.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations
from uuid import UUID

from memory_core.search.event import Event
from memory_core.search.lexemes import quoted

# The share of the promise's words that the report must contain: one of four may be missing.
_SHARED_WORDS = 0.7
_SHARED_AT_LEAST = 2
_SHORTEST_STEM = 4
# Candidate reports share two words with the promise, and the query has every pair of its words.
_WORDS_LOOKED_FOR = 14

_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_MONTHS = {
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep"),
    *("sept", "oct", "nov", "dec"),
}
_BEFORE_A_DATE = {"by", "until", "till", "before", "on", "in", "of", "end", "due", "at", "from"}
_CLOCK = re.compile(r"[0-9]{1,2}(?:am|pm)")

_PROMISES = re.compile(
    r"(?:\b(?:will|shall|to|must)|['’]ll)\s+"
    r"(?:(?:also|then|now|personally|first|still|soon|finally|(?:be|have)(?=\s+\w+(?:ed|ing)\b))"
    r"\s+)*"
    r"([^\W\d_]+)"
)
_NO_VERBS = {
    "the",
    "a",
    "an",
    "this",
    "that",
    "these",
    "all",
    "our",
    "his",
    "her",
    "their",
    "my",
    "it",
}
# Stems that mean "promised", not what was promised.
_PROMISING = {"respons", "commit", "promis", "agre"}
_REFUSES = re.compile(r"\b(?:will|shall|to|must)\s+(?:not|never)\b|\bwon['’]t\b|\bnot\s+to\b")
_UNFINISHED = re.compile(
    r"\b(?:not|never|yet to|failed|unable|start(?:s|ed|ing)?|began|begun|working on|"
    r"in progress|part(?:ly|ially)|half(?:way)?|delayed|postponed|cancelled|canceled|blocked)\b"
    r"|n['’]t\b"
)


def _forms(*families: str) -> list[frozenset[str]]:
    return [frozenset(family.split()) for family in families]


# Groups of verbs that count as the same act, each with the forms that reports use.
[_SEND, _DELIVER] = _forms(
    "send sends sent share shared forward forwarded mail mailed email emailed submit submitted "
    "hand handed give gave given provide provided pass passed deliver delivered",
    "deliver delivers delivered ship ships shipped release released launch launched publish "
    "published deploy deployed roll rolled open opens opened",
)
_MAKING = [
    _DELIVER,
    *_forms(
        "write writes wrote written writing draft drafted document documented",
        "build built builds implement implemented develop developed create created make made add "
        "added code coded",
        "finish finished complete completed finalise finalised finalize finalized close closed",
        "fix fixed repair repaired resolve resolved patch patched solve solved correct corrected",
        "update updated revise revised edit edited rewrite rewrote rewritten",
        "move moved migrate migrated switch switched transfer transferred",
        "prepare prepared",
        "have be get got put set bring brought",
    ),
]
_OTHER_ACTS = [
    _SEND,
    *_forms(
        "review reviewed reviews check checked read inspect inspected audit audited",
        "test tested verify verified validate validated",
        "plan planned schedule scheduled organise organised organize organized arrange arranged "
        "book booked",
        "meet met discuss discussed talk talked call called speak spoke spoken ask asked",
        "present presented show showed shown demo demonstrate demonstrated",
        "decide decided choose chose chosen pick picked approve approved",
        "design designed draw drew drawn",
        "think thought consider considered",
        "pay paid",
        "buy bought order ordered",
        "run ran",
        "hold held",
        "find found",
    ),
]
# These words are also auxiliaries of other verbs, so a report that contains one proves nothing by
# it.
_AUXILIARIES = {"have", "be"}
# Words for a finished result, whatever verb the promise used.
[_RESULT] = _forms(
    "complete completed finished done delivered shipped live available ready launched released "
    "published deployed merged finalised finalized"
)
_ACTS = frozenset().union(*_MAKING, *_OTHER_ACTS)


@dataclass(frozen=True, slots=True)
class StatedEvent(Event):
    """A promise or a report, with the words that are compared."""

    quotes: str
    said_at: datetime
    place: int | None  # of its first quote in the document
    who: list[str]
    own_words: list[str]
    told_words: list[str]


@dataclass(frozen=True)
class Statement:
    """A promise or a report, with the parts that are compared. Derived values are cached, because
    each statement is compared with many others."""

    event_id: UUID
    document: tuple[str, str]
    place: int  # of its first quote in the document
    said_at: datetime
    time: datetime | None  # when it is due, or was done
    who: frozenset[str]
    narrative: str
    words: frozenset[str]  # stems of the narrative's own words: no names, numbers or months
    all_words: frozenset[str]  # stems of narrative and quotes
    spelled: frozenset[str]  # the words themselves, of narrative and quotes

    @classmethod
    def of(cls, row: StatedEvent) -> "Statement":
        return cls(
            event_id=row.event_id,
            document=(row.artifact_uid, row.revision_id),
            place=row.place or 0,
            said_at=row.said_at,
            time=row.due_time if row.category == "Commitment" else row.event_time,
            who=frozenset(row.who),
            narrative=row.narrative,
            words=frozenset(row.own_words),
            all_words=frozenset(row.told_words),
            spelled=frozenset(_spelled(f"{row.narrative} {row.quotes}")),
        )

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Words with digits that belong to the promised thing: Q1 in "the Q1 report", but not in
        "by Q1"."""
        return frozenset(_numbers(self.narrative, self.time))

    @cached_property
    def act(self) -> str | None:
        """The verb of a promise, if it is recognised."""
        return _act(self.narrative.lower())

    @cached_property
    def matter(self) -> frozenset[str]:
        """The words for the promised thing, without the verb."""
        act = self.act or ""
        return frozenset(
            word for word in self.words if word not in _PROMISING and not _is_stem(word, act)
        )


def words_of_reports(promise: Statement) -> str | None:
    """A tsquery for reports that may keep the promise: two of its words, and its numbers."""
    pairs = _pairs(promise)
    # A number that Postgres tokenises as part of something else is left out here and compared
    # later.
    numbers = sorted(number for number in promise.numbers & promise.all_words if number.isalnum())
    return " & ".join([f"({pairs})", *map(quoted, numbers)]) if pairs else None


def words_of_rivals(report: Statement) -> str | None:
    """A tsquery for promises that the report may keep: two of its words."""
    return _pairs(report)


def _pairs(statement: Statement) -> str | None:
    words = map(quoted, sorted(statement.words)[:_WORDS_LOOKED_FOR])
    return " | ".join(f"{one} & {other}" for one, other in combinations(words, 2)) or None


def keeps(report: Statement, promise: Statement) -> float:
    """How well the report fits the promise; 0 if it does not say that the promise was kept."""
    shared, matter = len(promise.words & report.all_words), promise.matter
    if shared < _SHARED_AT_LEAST or not matter:
        return 0.0
    if len(matter & report.all_words) < _SHARED_WORDS * len(matter):
        return 0.0
    numbers = promise.numbers
    if not numbers <= report.spelled or (report.who and not report.who & promise.who):
        return 0.0
    if not _is_later(report, promise) or not _same_act(report, promise):
        return 0.0
    # Of two promises, the better fit is the one with the fewest words that the other side lacks.
    return 2 * (shared + len(numbers)) / (len(promise.words) + len(numbers) + len(report.all_words))


class Promises:
    """Promises indexed by their words: a report is compared only with promises that share enough
    words."""

    def __init__(self, promises: Iterable[Statement]) -> None:
        self._promises = list(promises)
        self._places: dict[str, list[int]] = {}
        for place, promise in enumerate(self._promises):
            for word in promise.words:
                self._places.setdefault(word, []).append(place)

    def kept_by(self, report: Statement) -> list[tuple[float, Statement]]:
        """The promises that the report fits, each with its score, in their own order."""
        shared = Counter(place for word in report.all_words for place in self._places.get(word, ()))
        near = sorted(place for place, words in shared.items() if words >= _SHARED_AT_LEAST)
        fits = ((keeps(report, self._promises[place]), self._promises[place]) for place in near)
        return [(score, promise) for score, promise in fits if score]


def kept(promises: Iterable[Statement], reports: Iterable[Statement]) -> dict[UUID, UUID]:
    """Promise id -> report id. Each report keeps the promise that it fits best, and repetitions of
    that promise."""
    known_promises = Promises(promises)
    best: dict[UUID, tuple[float, UUID]] = {}
    for report in reports:
        fits = known_promises.kept_by(report)
        if not fits:
            continue
        score, chosen = max(
            fits, key=lambda fit: (fit[0], -_seconds_between(report, fit[1]), fit[1].said_at)
        )
        for _, promise in fits:
            if _is_repeated(chosen, promise):
                best_so_far = best.get(promise.event_id, (0.0, report.event_id))
                best[promise.event_id] = max(best_so_far, (score, report.event_id))
    return {promise: report for promise, (_, report) in best.items()}


def _is_repeated(first: Statement, second: Statement) -> bool:
    """The same thing is due on the same day, in no more words."""
    if (first.time, first.numbers) != (second.time, second.numbers):
        return False
    one, other = first.matter, second.matter
    return one == other or (first.time is not None and (one <= other or other <= one))


def _is_stem(word: str, act: str) -> bool:
    return len(word) >= len(act) - 2 and act.startswith(word)


def _seconds_between(report: Statement, promise: Statement) -> float:
    if promise.time is None:
        return float("inf")
    return abs(((report.time or report.said_at) - promise.time).total_seconds())


def _is_later(report: Statement, promise: Statement) -> bool:
    """Whether the report is later. Without a date of its own, a report in an earlier document, or
    further up in the same document, came before the promise."""
    if report.time is not None and report.time.date() < promise.said_at.date():
        return False
    if report.document == promise.document:
        dated = report.time is not None and report.time.date() > promise.said_at.date()
        return dated or report.place > promise.place
    return report.time is not None or report.said_at > promise.said_at


def _same_act(report: Statement, promise: Statement) -> bool:
    said, promised = report.narrative.lower(), promise.narrative.lower()
    if _REFUSES.search(promised):
        return False
    unfinished = _UNFINISHED.search(said)
    if unfinished and unfinished[0] not in promised:
        return False
    act = promise.act
    if act is None:
        return True
    families = [family for family in (*_MAKING, *_OTHER_ACTS) if act in family]
    words = report.spelled - _AUXILIARIES
    if not families:
        stem = act.rstrip("ey") if len(act) > _SHORTEST_STEM else act
        return any(word.startswith(stem) for word in words)
    if any(family & words for family in families):
        return True
    if not any(family in _MAKING for family in families):
        return False
    return bool(_RESULT & words) or not _ACTS & words


def _act(promised: str) -> str | None:
    """The verb of a promise, if it is recognised."""
    for match in _PROMISES.finditer(promised):
        if match[1] not in _NO_VERBS:
            return match[1]
    return next((word for word in _spelled(promised) if word in _ACTS), None)


def _spelled(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text.lower())]


def _plain(word: str) -> str:
    ordinal = _ORDINAL.fullmatch(word)
    return ordinal[1] if ordinal else word


def _numbers(text: str, due: datetime | None) -> list[str]:
    words = _spelled(text)
    of_dates = _date_places(words, due)
    return [
        word
        for place, word in enumerate(words)
        if any(character.isdigit() for character in word) and place not in of_dates
    ]


def _date_places(words: list[str], due: datetime | None) -> set[int]:
    """The positions of the parts of the due date among the words: its numbers, if a word of a date
    is next to them."""
    places: set[int] = set()
    for place, word in enumerate(words):
        before = [other for other in words[:place] if other != "the"]
        after = [other for other in words[place + 1 :] if other != "of"]
        dated = (
            (before and (before[-1] in _BEFORE_A_DATE or before[-1] in _MONTHS))
            or place - 1 in places
            or (after and after[0] in _MONTHS)
        )
        clock = _CLOCK.fullmatch(word) or (after and after[0] in {"am", "pm"})
        if clock or (dated and _is_of_date(word, due)):
            places.add(place)
    return places


def _is_of_date(word: str, due: datetime | None) -> bool:
    if due is None:
        return re.fullmatch(r"[0-9]{1,2}|(?:19|20)[0-9]{2}|q[1-4]", word) is not None
    if word == f"q{(due.month + 2) // 3}":
        return True
    parts = {due.day, due.month, due.year, due.year % 100, due.hour, due.minute}
    return word.isdecimal() and int(word) in parts
