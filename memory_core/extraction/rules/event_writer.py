"""Writing events: drafts are worded, dated and quoted, and duplicates are removed."""

from collections.abc import Iterable
from datetime import datetime

from memory_core.extraction.model import Actor, Category, Due, ProposedEvent, Subject
from memory_core.extraction.rules import confidence, narrative, quotes, subjects
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.drafts import EventDraft
from memory_core.extraction.rules.manner import Manner
from memory_core.extraction.rules.markup import mask, plain
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.sections import Section, SectionKind, clean_title, release_of
from memory_core.extraction.rules.word_lists import phrases
from memory_core.text import dates
from memory_core.text import timed_patterns as re
from memory_core.text.dates import Anchor

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
_SELF_EVIDENT = ("change", "what", "notable", "full", "release", "new in")
_ORNAMENT = re.compile(r"^[^\w]+")
# A role or a status is worded as written, and has no day.
_TIMELESS = ("role", "listed_role")
# Role labels that cannot follow "is the".
_NOT_NOUNS = phrases("labels", "not_nouns")
_MAX_NAMED = 6
_POINTS_BACK = re.compile(r"(?:this|that|these|those|it|they)\b", re.IGNORECASE)
_STOP = re.compile(r"[.!?]\s+")
# How far back, in characters, the previous sentence may begin.
_REACH = 400
# A task of fewer words is worded together with its parent item.
_SHORT = 8
_SENTENCE = 4
_UNFINISHED = re.compile(
    r"\b(?:will|would|be|to|the|an?|of|and|or|about|with|because|if|and then)[^\w…]?$|"
    r"\[\w+\.$|\w-\.$",
    re.IGNORECASE,
)
_UNOWNED = ("Will ", "Reminder", "Announcement", "[")
# After the verb of a decision or a change: "was approved on 3 May".
_DATED_BEHIND = 12


class EventWriter:
    """Words the drafts of one text."""

    def __init__(
        self, text: str, roster: Roster, manner: Manner, title: str | None, heading: str | None
    ) -> None:
        self.text = text
        self.roster = roster
        self.manner = manner
        # The document's own title, and the first heading of this text.
        field = _TITLE_FIELD.match(text)
        self.given = field["title"].strip() if field else clean_title(title) if title else None
        self.title = self.given or heading

    def event(
        self, draft: EventDraft, section: Section, anchor: Anchor, block: Block | None
    ) -> ProposedEvent | None:
        quote = quotes.cut(self.text, draft.start, draft.end, draft.key)
        wording = self._narrative(draft, section, block)
        if quote is None or not wording or not any(c.isalnum() for c in quote.quote):
            return None
        promised = draft.category is Category.COMMITMENT and not draft.actors
        if _UNFINISHED.search(wording) or (promised and wording.startswith(_UNOWNED)):
            return None
        sure = draft.confidence
        below = block is not None and block.parent is not None and not block.spoken
        most = {Category.COMMITMENT: _SHORT, Category.DECISION: _SHORT + 8}.get(draft.category, 0)
        if draft.style in ("sentence", "entry", "decision") and narrative.says_little(wording):
            wording = narrative.finish(wording.removeprefix("Done: ").removeprefix("Change: "))
            wording, joined = self._in_context(wording, section, block, draft.start)
            if not joined and narrative.says_too_little(wording):
                sure = max(sure - confidence.STEP, confidence.WEAK)
        elif below and len(wording.split()) < most:
            wording, _ = self._in_context(wording, section, block, draft.start)
        elif block is not None and block.bullet and self._answers(draft, wording):
            before = self.text[block.start : draft.start].strip()
            wording = (
                narrative.followed(_STOP.split(before.rstrip(".!?"))[-1], wording)
                if before
                else wording
            )
        return ProposedEvent(
            category=draft.category,
            subject=self._subject(draft, section),
            narrative=wording,
            quote=quote,
            confidence=round(sure, 2),
            actors=tuple(Actor(ref, role) for ref, role in dict(draft.actors).items()),
            event_time=self._time(draft, anchor),
            due=self._due(draft, anchor),
        )

    def _answers(self, draft: EventDraft, wording: str) -> bool:
        """ "Nobody deletes the files. Ann to ask Legal": it needs the sentence before it."""
        decided = draft.style == "decision" and draft.key[0] > draft.start
        asked = draft.category is Category.COMMITMENT and draft.style == "promise"
        return decided or (asked and len(wording.split()) < _SHORT)

    def _in_context(
        self, wording: str, section: Section, block: Block | None, start: int
    ) -> tuple[str, bool]:
        """A line that says little alone, joined with its sentence, item or heading."""
        if block is not None and _POINTS_BACK.match(wording):
            before = self.text[max(block.start, start - _REACH) : start].strip()
            if before and not block.spoken:
                return narrative.followed(_STOP.split(before.rstrip(".!?"))[-1], wording), True
        if block and not block.spoken and block.start < start and len(wording.split()) < _SENTENCE:
            stop = _STOP.search(self.text, block.start, min(start, block.start + _REACH))
            opening = self.text[block.start : stop.start() if stop else block.start].rstrip(".!?")
            return narrative.followed(opening, wording) if opening else wording, bool(opening)
        if block is not None and block.parent is not None:
            above = self.text[slice(*block.parent)]
            return (
                (wording, False)
                if _POINTS_BACK.match(above)
                else (narrative.joined(above, wording), True)
            )
        about = section.topic or self.title
        if about and not (block and block.spoken) and not dates.mentions(about):
            return narrative.joined(about, wording), True
        return wording, False

    def _about(self, section: Section, block: Block | None = None) -> str:
        """What a role, a status or a meeting belongs to: the passage within the document."""
        if block is not None and block.parent is not None:
            return plain(self.text[slice(*block.parent)])[:100]
        title = self.title or "the document"
        if not section.topic or section.topic in title:
            return title
        return f"{section.topic} ({self.given})" if self.given else section.topic

    def _narrative(self, draft: EventDraft, section: Section, block: Block | None) -> str:
        about = self._about(section, block)
        names = list(dict(draft.actors))
        speaker = block.speaker if block else None
        spoken = block.spoken if block else False
        if draft.style == "role":
            if draft.body in _NOT_NOUNS:
                return narrative.finish(f'{draft.person} is named in {about} under "{draft.body}"')
            return narrative.finish(f"{draft.person} is the {draft.body} of {about}", self.roster)
        if draft.style == "listed_role":
            wording = f"{draft.person} takes part in {about} as {plain(draft.body)}"
            return narrative.finish(wording, self.roster)
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

    def _prefix(self, draft: EventDraft, section: Section) -> str:
        """The release or document that an entry belongs to, as a prefix of its narrative."""
        name = self.given or self.title
        if section.kind is SectionKind.CHANGE and (
            section.release or section.title.lower() not in _PLAIN
        ):
            of = [name, section.release if section.release not in (name or "") else ""]
            kind = _ORNAMENT.sub("", section.title)
            is_repeated = kind.lower().startswith(
                (*_SELF_EVIDENT, draft.body.lower().lstrip("*_- ")[:3])
            )
            kind = "" if is_repeated or release_of(section.title) else kind
            return ", ".join(part for part in (*of, kind) if part)
        if name and draft.category is Category.EXECUTION and self.manner.describes:
            return name
        if name and section.title.lower().startswith("known "):
            return f"{name}, {section.title}"
        return _PREFIX[draft.category]

    def _subject(self, draft: EventDraft, section: Section) -> Subject:
        fallback = subjects.of_document(section.title, section.topic or self.title)
        if draft.person is not None:
            return subjects.of_person(draft.person)
        if draft.style in ("meeting", "status") or not draft.about:
            return fallback
        return subjects.of_object(draft.about, fallback)

    def _time(self, draft: EventDraft, anchor: Anchor) -> datetime | None:
        """When it happened: the day that the sentence states, else the day of the text, unless it
        happened before that. A commitment is made on the day of the text. No day is better than a
        wrong one."""
        words = self._source_words(draft)
        trusted = anchor.stated or self.manner.reports
        if draft.category is Category.COMMITMENT:
            today = anchor.day if trusted and not dates.is_long_ago(words) else None
            return dates.midnight(today) if today else None
        if draft.style in _TIMELESS or (
            draft.style == "status" and draft.category is Category.CHANGE
        ):
            return None  # a document is superseded after its own day
        stated = dates.find(words, anchor, future=False) if draft.style != "meeting" else None
        past = stated is not None and (anchor.day is None or stated.when.date() <= anchor.day)
        if stated is not None and past and self._is_its_day(draft, stated, words):
            return stated.when
        # "We decided in March to launch in May" was not decided in May.
        past = draft.category is Category.DECISION
        earlier = dates.is_long_ago(words) or dates.names_a_month(words, anchor.day, past=past)
        if draft.style != "meeting" and earlier:
            return None
        return dates.midnight(anchor.day) if anchor.day and trusted else None

    def _due(self, draft: EventDraft, anchor: Anchor) -> Due | None:
        if draft.category is not Category.COMMITMENT:
            return None
        words = self._source_words(draft)
        stated = dates.find(words, anchor, future=True)
        return Due(stated.when, words[stated.start : stated.end], draft.start) if stated else None

    def _source_words(self, draft: EventDraft) -> str:
        return " ".join(mask(draft.extra.get("when") or self.text[draft.start : draft.end]).split())

    def _is_its_day(self, draft: EventDraft, stated: dates.FoundDate, words: str) -> bool:
        """A day in a decision is usually part of what was decided, unless it stands before the verb
        or directly after it."""
        if draft.category in (Category.EXECUTION, Category.COLLABORATION):
            return True
        if draft.style == "entry":
            return stated.start <= 1
        telling = " ".join(mask(self.text[slice(*draft.key)]).split())
        at = words.find(telling)
        behind = _DATED_BEHIND if draft.category is Category.DECISION else 0
        return at >= 0 and stated.start <= at + len(telling) + behind


def distinct(events: Iterable[ProposedEvent]) -> tuple[ProposedEvent, ...]:
    """In reading order, without repetitions of the same span or of the same words."""
    kept: dict[tuple[Category, object], ProposedEvent] = {}
    seen_words: set[tuple[Category, str]] = set()
    for event in sorted(events, key=lambda e: (e.quote.start_char or 0, e.category)):
        subject = event.subject.ref if event.category is Category.STAKEHOLDER else None
        place = (event.category, (event.quote.start_char, subject))
        words = (event.category, event.narrative.lower())
        if place in kept or words in seen_words:
            continue
        kept[place] = event
        seen_words.add(words)
    return tuple(kept.values())
