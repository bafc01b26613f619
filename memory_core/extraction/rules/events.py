"""Events: drafts worded, dated, quoted and rid of duplicates."""

import re
from collections.abc import Iterable
from datetime import datetime

from memory_core.extraction.model import Actor, Category, ProposedEvent, Subject
from memory_core.extraction.rules import dates, narrative, quotes, subjects
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.dates import Anchor
from memory_core.extraction.rules.drafts import Draft
from memory_core.extraction.rules.markup import mask, plain
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.sections import Section

_PREFIX = {
    Category.QUALITY_RISK: "Risk",
    Category.FEEDBACK: "Feedback",
    Category.EXECUTION: "Done",
    Category.CHANGE: "Change",
}
# The day a passage was said is when these happened; a promise or a change has a day of its own.
_HAPPENS_WHEN_SAID = (
    Category.DECISION, Category.COLLABORATION, Category.FEEDBACK, Category.QUALITY_RISK,
)  # fmt: skip
# Role labels that cannot follow "is the".
_NOT_NOUNS = (
    "consulted", "informed", "approved by", "reviewed by", "responsible", "accountable", "finance",
    "legal", "design", "engineering", "minutes", "minutes taken by",
)  # fmt: skip
_MAX_NAMED = 6
_UNFINISHED = re.compile(r"\b(?:will|would|be|to|the|an?|of|and|or|about|with)\.$|\[\w+\.$")
_UNOWNED = ("Will ", "Reminder", "Announcement", "[")


class Writer:
    """Words the drafts of one text."""

    def __init__(self, text: str, roster: Roster, title: str | None, heading: str | None) -> None:
        self.text = text
        self.roster = roster
        # The document's own title, and the first heading of the text at hand.
        self.given = title
        self.title = title or heading

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
        return ProposedEvent(
            category=draft.category,
            subject=self._subject(draft, section),
            narrative=told,
            quote=quote,
            confidence=draft.confidence,
            actors=tuple(Actor(ref, role) for ref, role in dict(draft.actors).items()),
            event_time=self._time(draft, anchor, block),
        )

    def _about(self, section: Section) -> str:
        """What a role, a status or a meeting belongs to: the passage within the document."""
        title = self.title or "the document"
        if not section.topic or section.topic in title:
            return title
        return f"{section.topic} ({self.given})" if self.given else section.topic

    def _narrative(self, draft: Draft, section: Section, block: Block | None) -> str:
        about = self._about(section)
        names = list(dict(draft.actors))
        speaker = block.speaker if block else None
        spoken = block.spoken if block else False
        if draft.style == "role":
            if draft.body in _NOT_NOUNS:
                return narrative.finish(f'{draft.person} is named in {about} under "{draft.body}"')
            return narrative.finish(f"{draft.person} is the {draft.body} of {about}")
        if draft.style == "listed_role":
            return narrative.finish(f"{draft.person} takes part in {about} as {plain(draft.body)}")
        if draft.style == "status":
            return narrative.finish(f"{about} has the status: {plain(draft.body)}")
        if draft.style == "meeting":
            named = names[:_MAX_NAMED] + ["others"] * (len(names) > _MAX_NAMED)
            return narrative.finish(f"{narrative.join(named)} met: {about}")
        if draft.style == "promise":
            owners = narrative.join(names) or None
            return narrative.promise(owners, draft.body, speaker, self.roster)
        if draft.style == "decision":
            return narrative.decision(draft.body, self.roster)
        if draft.style == "entry":
            return narrative.prefixed(_PREFIX[draft.category], draft.body, self.roster)
        body = draft.body
        if draft.extra.get("pronoun") and names:
            body = re.sub(rf"\b{draft.extra['pronoun']}\b", lambda _: names[0], body, count=1)
        return narrative.sentence(body, speaker, spoken, self.roster)

    def _subject(self, draft: Draft, section: Section) -> Subject:
        fallback = subjects.of_document(section.title, section.topic or self.title)
        if draft.person is not None:
            return subjects.of_person(draft.person)
        if draft.style in ("meeting", "status") or not draft.about:
            return fallback
        return subjects.of_object(draft.about, fallback)

    def _time(self, draft: Draft, anchor: Anchor, block: Block | None) -> datetime | None:
        said = mask(draft.extra.get("when") or self.text[draft.start : draft.end])
        said = " ".join(said.split())
        if draft.category is Category.COMMITMENT:
            found = dates.find(said, anchor, future=True)
            return found.when if found else None
        if draft.category in (Category.EXECUTION, Category.COLLABORATION):
            found = dates.find(said, anchor, future=False)
            past = found is not None and (anchor.day is None or found.when.date() <= anchor.day)
            if found is not None and past and draft.style != "meeting":
                return found.when
        spoken = block is not None and block.spoken and draft.category is Category.EXECUTION
        if anchor.stated and anchor.day and (draft.category in _HAPPENS_WHEN_SAID or spoken):
            return dates.midnight(anchor.day)
        return None


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
