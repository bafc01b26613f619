"""Entries: sentences that are events because of a label before them or the section they are in."""

import re
from collections.abc import Iterator

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, guards, labels, verbs
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.drafts import Draft, role_of
from memory_core.extraction.rules.owners import (
    Assignment,
    assignment,
    dated_assignment,
    named_owner,
)
from memory_core.extraction.rules.patterns import words
from memory_core.extraction.rules.people import Roster, is_name, listed
from memory_core.extraction.rules.sections import Kind
from memory_core.extraction.rules.sentences import Sentence

MIN_ITEM_WORDS = 2
# How far into an entry its owner is looked for.
MAX_ENTRY = 600
# "Bugs: Peter" names a host, not a bug.
MIN_RISK_WORDS = 3

_EMPTY_ITEM = re.compile(
    r"\W*(?:none\b.*|n/?a|tbd|tba|nothing|no|todo|nil|not applicable|no (?:open |new |known |"
    r"further )?"
    r"(?:action|decision|risk|issue|concern|blocker|change|update)s?\b.*|to be (?:decided|"
    r"determined|"
    r"confirmed|discussed)|skipped|cancell?ed|see (?:above|below).*|link|notes?|recording)\W*$",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:undecided|not (?:yet )?(?:been )?(?:decided|settled|agreed|resolved)|no decision|"
    r"no consensus|tbd|to be decided|pending|still open|deferred|haven't (?:decided|settled)|"
    r"(?:have|has|did) not (?:yet )?(?:decide|settle|agree)d?)\b|\bproposed\b",
    re.IGNORECASE,
)
_RESOLVES = re.compile(
    r"^(?:we|it|this|the|they|all|each|every|there|i|[A-Z][\w.]+)\b.{0,60}?\b(?:will|shall|must|"
    r"have decided|decided|agreed|are going to|should not|is to be|are to be|has been chosen)\b",
    re.IGNORECASE,
)
_ACCEPTED = re.compile(
    r"\W*(?P<word>accepted|approved|adopted|active|final|implemented|rejected|withdrawn|"
    r"declined)\b(?! by default)",
    re.IGNORECASE,
)
_SUPERSEDED = re.compile(
    r"\W*(?:partly |partially )?(?P<word>superseded|superceded|deprecated|amended|replaced)\b",
    re.IGNORECASE,
)
_TASK = re.compile(rf"(?:\W{{0,3}}){words(verbs.IMPERATIVE)}\b", re.IGNORECASE)
_DONE_ITEM = re.compile(rf"(?:\W{{0,3}})(?:✅|✔|(?:{words(verbs.DONE)}|done)\b)", re.IGNORECASE)
_DONE_MARK = re.compile(r"\((?:done|completed|fixed|merged)\)\W*$|[✅✔]", re.IGNORECASE)
_STATEMENT = re.compile(
    r"\W{0,3}(?:was|were|is|are|this|that|these|it|there|they|has|have|no|not|the|he|she|"
    r"most|some)\b",
    re.IGNORECASE,
)
# Masked links and code are runs of x.
_LETTERS = re.compile(r"\b(?!x{4,}\b)[^\W\d_]{2,}")
_CONCEDES = re.compile(
    r"(?:although|while|if|currently|previously|when|as an alternative|originally)\b", re.IGNORECASE
)
_META = re.compile(r"(?:this (?:section|document|page)|the following|below|here)\b", re.IGNORECASE)
_ROLE_MARK = re.compile(r"\s*(?::|\s-|–|—|,|\()\s*")


class Entries:
    """Finds the labelled and listed events of one text."""

    def __init__(self, text: str, roster: Roster, prose: bool) -> None:
        self.text = text
        self.roster = roster
        self.prose = prose

    def labelled(self, sentence: Sentence, block: Block) -> list[Draft] | None:
        said = sentence.words
        role = labels.role_label(said)
        if role is not None:
            # "Send it. Owner: Ann" assigns the entry in front of it, which knows.
            listed_here = block.bullet and block.section.kind in (Kind.ACTION, Kind.RISK)
            assigns = listed_here and sentence.start > block.start
            return [] if assigns else list(self._role(sentence, *role))
        status = labels.status_label(said)
        if status is not None:
            draft = self._status(sentence, status)
            return [draft] if draft else []
        label = labels.event_label(said)
        if label is None:
            return None
        body = said[label.end :]
        if _EMPTY_ITEM.match(body) or not _is_worded(body) or guards.asks(body):
            return []
        if (
            label.category is Category.COMMITMENT
            and not label.who
            and guards.hypothetical(body, 0, len(body))
        ):
            return []
        if label.category is Category.QUALITY_RISK and len(body.split()) < MIN_RISK_WORDS:
            return []
        if label.category is Category.DECISION and _UNDECIDED.search(body):
            return []
        category = label.category
        if category is Category.COMMITMENT and _DONE_MARK.search(body):
            category = Category.EXECUTION
        sure = confidence.LABELLED
        return [self._item(sentence, block, category, sure, label.end, label.who)]

    def _role(self, sentence: Sentence, role: str, value: int) -> Iterator[Draft]:
        begin, end = sentence.span(value, len(sentence.words))
        for person in listed(self.text[begin:end]):
            name = self.roster.resolve(person.name)
            at = self.text.find(person.name, begin, end)
            key = (at, at + len(person.name)) if at >= 0 else (begin, end)
            yield Draft(
                Category.STAKEHOLDER, confidence.LABELLED, sentence.start, end, key,
                ((name, labels.ROLE_LABELS[role]),), "role", role, person=name,
            )  # fmt: skip

    def _status(self, sentence: Sentence, value: int) -> Draft | None:
        rest = sentence.words[value:]
        span = sentence.span(0, len(sentence.words))
        for pattern, category in (
            (_ACCEPTED, Category.DECISION),
            (_SUPERSEDED, Category.CHANGE),
        ):
            match = pattern.match(rest)
            if match:
                begin, _ = sentence.span(value, len(sentence.words))
                body = self.text[begin : sentence.end]
                return Draft(category, confidence.SECTION, *span, span, style="status", body=body)
        return None

    def entry(self, sentence: Sentence, block: Block, first: bool) -> Draft | None:
        """What a sentence is because of where it stands."""
        said = sentence.words
        if not first or _EMPTY_ITEM.match(said) or len(said.split()) < 1:
            return self._prose_decision(sentence, block) if not first else None
        # Checklists of a specification are its template, not somebody's tasks.
        if block.box is not None and (not self.prose or block.section.kind is Kind.ACTION):
            category = Category.EXECUTION if block.box.strip() else Category.COMMITMENT
            return self._item(sentence, block, category, confidence.LABELLED, 0, None)
        kind = block.section.kind
        if kind is Kind.STATUS:
            return self._status(sentence, 0) if block.lead else None
        if kind is Kind.ROLES:
            return self._role_entry(sentence) if block.bullet else None
        if kind is Kind.PLAIN:
            return self._dated_task(sentence, block)
        if block.nested or not _is_worded(said) or said.endswith(":"):
            return None
        if kind is Kind.ACTION:
            return self._task(sentence, block)
        if kind is Kind.DECISION:
            return self._decision(sentence, block)
        return self._listed_event(sentence, block)

    def _task(self, sentence: Sentence, block: Block) -> Draft | None:
        said = sentence.words
        if guards.asks(said) and not block.bullet:
            return None
        if _DONE_ITEM.match(said) or _DONE_MARK.search(said):
            return self._item(sentence, block, Category.EXECUTION, confidence.SECTION, 0, None)
        draft = self._item(sentence, block, Category.COMMITMENT, confidence.SECTION, 0, None)
        if not draft.actors and _STATEMENT.match(said):
            return None
        if block.bullet or draft.actors or _TASK.match(said):
            return None if guards.negated(said, 0, min(12, len(said))) else draft
        return None

    def _decision(self, sentence: Sentence, block: Block) -> Draft | None:
        if _UNDECIDED.search(sentence.words):
            return None
        leads = block.lead and not block.section.inherited and not _CONCEDES.match(sentence.words)
        if leads or (block.bullet and not block.explains):
            return self._item(sentence, block, Category.DECISION, confidence.SECTION, 0, None)
        return self._prose_decision(sentence, block)

    def _prose_decision(self, sentence: Sentence, block: Block) -> Draft | None:
        """Below a "Decision" heading, later sentences count when they resolve something."""
        said = sentence.words
        if block.section.kind is not Kind.DECISION or block.bullet or _UNDECIDED.search(said):
            return None
        if not _RESOLVES.match(said) or guards.conditional(said):
            return None
        return self._item(sentence, block, Category.DECISION, confidence.CLEAR, 0, None)

    def _listed_event(self, sentence: Sentence, block: Block) -> Draft | None:
        category = {
            Kind.RISK: Category.QUALITY_RISK,
            Kind.FEEDBACK: Category.FEEDBACK,
            Kind.CHANGE: Category.CHANGE,
            Kind.DONE: Category.EXECUTION,
        }.get(block.section.kind)
        if category is None or (
            category is Category.QUALITY_RISK and guards.denies_risk(sentence.words)
        ):
            return None
        if block.bullet:
            return self._item(sentence, block, category, confidence.SECTION, 0, None)
        if (
            block.lead
            and not _META.match(sentence.words)
            and category in (Category.QUALITY_RISK, Category.FEEDBACK)
        ):
            return self._item(sentence, block, category, confidence.LIKELY, 0, None)
        return None

    def _role_entry(self, sentence: Sentence) -> Draft | None:
        """ "Ann Lee: project lead", "Ann Lee - sponsor" below a heading such as "Roles"."""
        raw = self.text[sentence.start : sentence.end].replace("*", "")
        name, mark, role = (part.strip() for part in _partition(raw))
        if not mark or not is_name(name) or not role or len(role) > 120:
            return None
        name = self.roster.resolve(name)
        return Draft(
            Category.STAKEHOLDER, confidence.SECTION, sentence.start, sentence.end,
            (sentence.start, sentence.end), ((name, role_of(role)),), "listed_role", role,
            person=name,
        )  # fmt: skip

    def _dated_task(self, sentence: Sentence, block: Block) -> Draft | None:
        raw = self.text[sentence.start : sentence.end]
        if not _TASK.match(sentence.words) or not dated_assignment(raw):
            return None
        return self._item(sentence, block, Category.COMMITMENT, confidence.EXPLICIT, 0, None)

    def _item(
        self, sentence: Sentence, block: Block, category: Category, sure: float, begin: int,
        who: str | None,
    ) -> Draft:  # fmt: skip
        """A labelled or listed entry; for tasks with the owners that the entry names."""
        start, end = sentence.span(begin, len(sentence.words))
        raw = self.text[start:end]
        style = {Category.DECISION: "decision", Category.COMMITMENT: "promise"}.get(
            category, "entry"
        )
        actors: tuple[tuple[str, ActorRole], ...] = ()
        about = body = raw
        if category is Category.COMMITMENT:
            given = self._assigned(raw, block, who, start)
            actors = tuple((name, ActorRole.OWNER) for name in given.owners)
            about = body = given.body
        elif category in (Category.QUALITY_RISK, Category.EXECUTION):
            owners = named_owner(self.text[start : block.end][:MAX_ENTRY], self.roster)
            actors = tuple((name, ActorRole.OWNER) for name in owners)
        elif category is Category.DECISION and block.spoken and block.speaker:
            actors = ((block.speaker, ActorRole.OWNER),)
        elif category is Category.FEEDBACK and block.spoken and block.speaker:
            actors = ((block.speaker, ActorRole.CONTRIBUTOR),)
        return Draft(category, sure, sentence.start, end, (start, end), actors, style, body, about)

    def _assigned(self, raw: str, block: Block, who: str | None, start: int) -> Assignment:
        given = assignment(raw, self.roster)
        if who is not None:
            return Assignment((self.roster.resolve(who),), raw)
        if given.owners:
            return given
        if owners := named_owner(self.text[start : block.end][:MAX_ENTRY], self.roster):
            return Assignment(owners, given.body)
        if block.section.owner:
            return Assignment((self.roster.resolve(block.section.owner),), given.body)
        if block.spoken and block.speaker:
            return Assignment((block.speaker,), given.body)
        return given


def _partition(raw: str) -> tuple[str, str, str]:
    match = _ROLE_MARK.search(raw)
    if match is None:
        return raw, "", ""
    return raw[: match.start()], match.group(), raw[match.end() :].rstrip(") ")


def _is_worded(said: str) -> bool:
    """More than a link or a single word."""
    return len(_LETTERS.findall(said)) >= MIN_ITEM_WORDS
