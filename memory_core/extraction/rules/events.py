"""Events: drafts worded, dated, quoted and rid of duplicates."""

from collections.abc import Iterable
from datetime import datetime

from memory_core.extraction.model import Actor, Category, Due, ProposedEvent, Subject
from memory_core.extraction.rules import confidence, dates, narrative, quotes, subjects
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.dates import Anchor
from memory_core.extraction.rules.drafts import Draft
from memory_core.extraction.rules.manner import Manner
from memory_core.extraction.rules.markup import mask, plain
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.sections import Kind, Section, clean_title, release_of
from memory_core.extraction.rules.vocabulary import phrases
from memory_core.text import timed_patterns as re

_PREFIX = {
    Category.QUALITY_RISK: "Risk",
    Category.FEEDBACK: "Feedback",
    Category.EXECUTION: "Done",
    Category.CHANGE: "Change",
}
# Proposals have a head of fields; their first heading is "Abstract".
_TITLE_FIELD = re.compile(
    r"(?:[A-Z][\w\-]{1,20}: [^\n]{0,200}\n){0,3}Title: {1,4}(?P<title>[^\n]{3,120})"
)
# Headings of changes that are not those of a release.
_PLAIN = ("change", "changes", "changed", "what changed", "scope changes", "plan changes")
_UNTOLD = ("change", "what", "notable", "full", "release", "new in")
_ORNAMENT = re.compile(r"^[^\w]+")
# A role or a status is told as it stands; a day is not said of it.
_TIMELESS = ("role", "listed_role")
# Role labels that cannot follow "is the".
_NOT_NOUNS = phrases("labels", "not_nouns")
_MAX_NAMED = 6
_POINTS_BACK = re.compile(r"(?:this|that|these|those|it|they)\b", re.IGNORECASE)
_STOP = re.compile(r"[.!?]\s+")
# How far back, in characters, the sentence before may begin.
_REACH = 400
# A task of fewer words is told with the item that it stands below.
_SHORT = 8
_SENTENCE = 4
_UNFINISHED = re.compile(
    r"\b(?:will|would|be|to|the|an?|of|and|or|about|with|because|if|and then)[^\w…]?$|"
    r"\[\w+\.$|\w-\.$",
    re.IGNORECASE,
)
_UNOWNED = ("Will ", "Reminder", "Announcement", "[")
# Behind the telling words of a decision or a change: "was approved on 3 May".
_DATED_BEHIND = 12


class Writer:
    """Words the drafts of one text."""

    def __init__(
        self, text: str, roster: Roster, manner: Manner, title: str | None, heading: str | None
    ) -> None:
        self.text = text
        self.roster = roster
        self.manner = manner
        # The document's own title, and the first heading of the text at hand.
        field = _TITLE_FIELD.match(text)
        self.given = field["title"].strip() if field else clean_title(title) if title else None
        self.title = self.given or heading

    def event(
        self, draft: Draft, section: Section, anchor: Anchor, block: Block | None
    ) -> ProposedEvent | None:
        quote = quotes.cut(self.text, draft.start, draft.end, draft.key)
        told = self._narrative(draft, section, block)
        if quote is None or not told or not any(c.isalnum() for c in quote.quote):
            return None
        promised = draft.category is Category.COMMITMENT and not draft.actors
        if _UNFINISHED.search(told) or (promised and told.startswith(_UNOWNED)):
            return None
        sure = draft.confidence
        below = block is not None and block.parent is not None and not block.spoken
        most = {Category.COMMITMENT: _SHORT, Category.DECISION: _SHORT + 8}.get(draft.category, 0)
        if draft.style in ("sentence", "entry", "decision") and narrative.says_little(told):
            told = narrative.finish(told.removeprefix("Done: ").removeprefix("Change: "))
            told, joined = self._in_context(told, section, block, draft.start)
            if not joined and narrative.says_too_little(told):
                sure = max(sure - confidence.STEP, confidence.WEAK)
        elif below and len(told.split()) < most:
            told, _ = self._in_context(told, section, block, draft.start)
        elif block is not None and block.bullet and self._answers(draft, told):
            before = self.text[block.start : draft.start].strip()
            told = (
                narrative.followed(_STOP.split(before.rstrip(".!?"))[-1], told) if before else told
            )
        return ProposedEvent(
            category=draft.category,
            subject=self._subject(draft, section),
            narrative=told,
            quote=quote,
            confidence=round(sure, 2),
            actors=tuple(Actor(ref, role) for ref, role in dict(draft.actors).items()),
            event_time=self._time(draft, anchor),
            due=self._due(draft, anchor),
        )

    def _answers(self, draft: Draft, told: str) -> bool:
        """ "Nobody deletes the files. Ann to ask Legal": it needs the sentence before it."""
        decided = draft.style == "decision" and draft.key[0] > draft.start
        asked = draft.category is Category.COMMITMENT and draft.style == "promise"
        return decided or (asked and len(told.split()) < _SHORT)

    def _in_context(
        self, told: str, section: Section, block: Block | None, start: int
    ) -> tuple[str, bool]:
        """A line that says little alone, with the sentence, item or heading it belongs to."""
        if block is not None and _POINTS_BACK.match(told):
            before = self.text[max(block.start, start - _REACH) : start].strip()
            if before and not block.spoken:
                return narrative.followed(_STOP.split(before.rstrip(".!?"))[-1], told), True
        if block and not block.spoken and block.start < start and len(told.split()) < _SENTENCE:
            stop = _STOP.search(self.text, block.start, min(start, block.start + _REACH))
            opening = self.text[block.start : stop.start() if stop else block.start].rstrip(".!?")
            return narrative.followed(opening, told) if opening else told, bool(opening)
        if block is not None and block.parent is not None:
            above = self.text[slice(*block.parent)]
            return (
                (told, False)
                if _POINTS_BACK.match(above)
                else (narrative.joined(above, told), True)
            )
        about = section.topic or self.title
        if about and not (block and block.spoken) and not dates.mentions(about):
            return narrative.joined(about, told), True
        return told, False

    def _about(self, section: Section, block: Block | None = None) -> str:
        """What a role, a status or a meeting belongs to: the passage within the document."""
        if block is not None and block.parent is not None:
            return plain(self.text[slice(*block.parent)])[:100]
        title = self.title or "the document"
        if not section.topic or section.topic in title:
            return title
        return f"{section.topic} ({self.given})" if self.given else section.topic

    def _narrative(self, draft: Draft, section: Section, block: Block | None) -> str:
        about = self._about(section, block)
        names = list(dict(draft.actors))
        speaker = block.speaker if block else None
        spoken = block.spoken if block else False
        if draft.style == "role":
            if draft.body in _NOT_NOUNS:
                return narrative.finish(f'{draft.person} is named in {about} under "{draft.body}"')
            return narrative.finish(f"{draft.person} is the {draft.body} of {about}", self.roster)
        if draft.style == "listed_role":
            told = f"{draft.person} takes part in {about} as {plain(draft.body)}"
            return narrative.finish(told, self.roster)
        if draft.style == "status":
            return narrative.finish(f"{about} has the status: {plain(draft.body)}")
        if draft.style == "meeting":
            named = names[:_MAX_NAMED] + ["others"] * (len(names) > _MAX_NAMED)
            return narrative.finish(f"{narrative.join(named)} met: {about}", self.roster)
        if draft.style == "promise":
            owners = narrative.join(names) or None
            return narrative.promise(owners, draft.body, speaker, self.roster)
        if draft.style == "decision":
            return narrative.decision(draft.body, self.roster)
        if draft.style == "entry":
            return narrative.prefixed(self._prefix(draft, section), draft.body, self.roster)
        body = draft.body
        if draft.extra.get("pronoun") and names:
            body = narrative.named(body, draft.extra["pronoun"], names[0])
        return narrative.sentence(body, speaker, spoken, self.roster)

    def _prefix(self, draft: Draft, section: Section) -> str:
        """An entry of a release or of a document's history is told with what it belongs to."""
        name = self.given or self.title
        if section.kind is Kind.CHANGE and (section.release or section.title.lower() not in _PLAIN):
            of = [name, section.release if section.release not in (name or "") else ""]
            kind = _ORNAMENT.sub("", section.title)
            said = kind.lower().startswith((*_UNTOLD, draft.body.lower().lstrip("*_- ")[:3]))
            kind = "" if said or release_of(section.title) else kind
            return ", ".join(part for part in (*of, kind) if part)
        if name and draft.category is Category.EXECUTION and self.manner.describes:
            return name
        if name and section.title.lower().startswith("known "):
            return f"{name}, {section.title}"
        return _PREFIX[draft.category]

    def _subject(self, draft: Draft, section: Section) -> Subject:
        fallback = subjects.of_document(section.title, section.topic or self.title)
        if draft.person is not None:
            return subjects.of_person(draft.person)
        if draft.style in ("meeting", "status") or not draft.about:
            return fallback
        return subjects.of_object(draft.about, fallback)

    def _time(self, draft: Draft, anchor: Anchor) -> datetime | None:
        """When it happened: the day that the sentence says, else the day of the text, unless it was
        before that. A commitment is made on the day of the text. No day is better than a wrong one.
        """
        said = self._said(draft)
        trusted = anchor.stated or self.manner.reports
        if draft.category is Category.COMMITMENT:
            today = anchor.day if trusted and not dates.is_long_ago(said) else None
            return dates.midnight(today) if today else None
        if draft.style in _TIMELESS or (
            draft.style == "status" and draft.category is Category.CHANGE
        ):
            return None  # a document is superseded after its own day
        found = dates.find(said, anchor, future=False) if draft.style != "meeting" else None
        past = found is not None and (anchor.day is None or found.when.date() <= anchor.day)
        if found is not None and past and self._is_its_day(draft, found, said):
            return found.when
        # "We decided in March to launch in May" was not decided in May.
        past = draft.category is Category.DECISION
        earlier = dates.is_long_ago(said) or dates.names_a_month(said, anchor.day, past=past)
        if draft.style != "meeting" and earlier:
            return None
        return dates.midnight(anchor.day) if anchor.day and trusted else None

    def _due(self, draft: Draft, anchor: Anchor) -> Due | None:
        if draft.category is not Category.COMMITMENT:
            return None
        said = self._said(draft)
        found = dates.find(said, anchor, future=True)
        return Due(found.when, said[found.start : found.end], draft.start) if found else None

    def _said(self, draft: Draft) -> str:
        return " ".join(mask(draft.extra.get("when") or self.text[draft.start : draft.end]).split())

    def _is_its_day(self, draft: Draft, found: dates.FoundDate, said: str) -> bool:
        """A day in a decision is mostly what was decided, unless it stands before or right behind
        the words that tell it."""
        if draft.category in (Category.EXECUTION, Category.COLLABORATION):
            return True
        if draft.style == "entry":
            return found.start <= 1
        telling = " ".join(mask(self.text[slice(*draft.key)]).split())
        at = said.find(telling)
        behind = _DATED_BEHIND if draft.category is Category.DECISION else 0
        return at >= 0 and found.start <= at + len(telling) + behind


def distinct(events: Iterable[ProposedEvent]) -> tuple[ProposedEvent, ...]:
    """In reading order, without repeats of the same place or of the same words."""
    kept: dict[tuple[Category, object], ProposedEvent] = {}
    told: set[tuple[Category, str]] = set()
    for event in sorted(events, key=lambda e: (e.quote.start_char or 0, e.category)):
        subject = event.subject.ref if event.category is Category.STAKEHOLDER else None
        place = (event.category, (event.quote.start_char, subject))
        words = (event.category, event.narrative.lower())
        if place in kept or words in told:
            continue
        kept[place] = event
        told.add(words)
    return tuple(kept.values())
