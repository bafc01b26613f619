"""Entries: sentences that are events because of a label before them or the section they are in."""

from collections.abc import Iterator
from dataclasses import replace

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, guards, sentence_labels, verbs
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.drafts import EventDraft, role_of
from memory_core.extraction.rules.manner import Manner
from memory_core.extraction.rules.owners import (
    Assignment,
    assignment,
    dated_assignment,
    named_owner,
)
from memory_core.extraction.rules.patterns import words
from memory_core.extraction.rules.people import Roster, is_name, listed
from memory_core.extraction.rules.sections import SectionKind
from memory_core.extraction.rules.sentences import Sentence
from memory_core.text import timed_patterns as re

MIN_ITEM_WORDS = 2
# How far into an entry its owner is searched.
MAX_ENTRY = 600
# "Bugs: Peter" names a host, not a bug.
MIN_RISK_WORDS = 3
MIN_TASK_WORDS = 6
# A longer label says who decided.
_LABEL = 20

_EMPTY_ITEM = re.compile(
    r"\W*(?:none(?: (?:yet|so far|known|reported|today|this).*)?|n/?a|tbd|tba|nothing|no|"
    r"todo|nil|not applicable|no (?:open |new |known |further )?"
    r"(?:action|decision|risk|issue|concern|blocker|change|update)s?\b.*|"
    r"to be (?:decided|determined|confirmed|discussed)|skipped|cancell?ed|"
    r"see (?:above|below).*|link|notes?|recording)\W*$",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:undecided|not (?:yet )?(?:been )?(?:decided|settled|agreed|resolved)|no decision|"
    r"no consensus|tbd|to be decided|pending|still open|deferred|haven't (?:decided|settled)|"
    r"(?:have|has|did) not (?:yet )?(?:decide|settle|agree)d?)\b|\bproposed\b",
    re.IGNORECASE,
)
# "We will use Postgres", "Initially, we chose …": the author sets a direction.
_RESOLVES = re.compile(
    r"^(?:[\w ,'\-]{0,60}, |therefore |instead |so )?(?:we|i|the (?:team|group|board|project))"
    r"(?:'ve| have| also| therefore| now| all)*(?:(?:'ll| will| shall|'re going to| are going to| "
    r"should| must) (?!not see|see\b|need\b|be able)\w+| (?:decided|chosen|chose|agreed|opted|"
    r"adopted|introduced|settled|picked|selected|moved|switched|use|adopt|keep|treat|store|require|"
    r"prefer|support)\b)|^it (?:was|has been|is) (?:decided|agreed)|^(?:use|adopt|keep|chosen "
    r"option)\b",
    re.IGNORECASE,
)
_SETS_A_RULE = re.compile(
    r"\b(?:will|shall|should|must|is to|are to|no longer|instead of)\b", re.IGNORECASE
)
_ACCEPTED = re.compile(
    r"\W*(?:accepted|approved|adopted|rejected|withdrawn|declined)\b(?! by default)",
    re.IGNORECASE,
)
# Statuses with a meaning for proposals only; a report or a plan is final or active in another
# sense.
_IN_FORCE = re.compile(r"\W*(?:active|final|implemented)\b", re.IGNORECASE)
_PROPOSAL = re.compile(r"(?:PEP|RFC|KEP|ADR)\b")
_SUPERSEDED = re.compile(
    r"\W*(?:partly |partially )?(?P<word>superseded|superceded|deprecated|amended|replaced)\b",
    re.IGNORECASE,
)
_TASK = re.compile(rf"(?:\W{{0,3}}){words(verbs.IMPERATIVE)}\b", re.IGNORECASE)
_ARGUES = re.compile(r"\b(?:may|might|could) argue\b", re.IGNORECASE)
_ADVERSE = re.compile(
    r"\b(?:risk|concern|draw ?back|burden|costs?|complex|"
    r"slow|break|fail|increase|hard|difficult|problem|issue|lose|loss|limit|confus|danger|late)",
    re.IGNORECASE,
)
_PLANNED = re.compile(r"(?<!what )(?<!what's )\bchange[sd]\b", re.IGNORECASE)
_HAS_CHANGED = re.compile(
    rf"\b(?:{words(verbs.CHANGED)}|{words(verbs.DONE)}|no longer|is now|are now|now|gone)\b",
    re.IGNORECASE,
)
_DONE_ITEM = re.compile(rf"(?:\W{{0,3}})(?:✅|✔|(?:{words(verbs.DONE)}|done)\b)", re.IGNORECASE)
_DONE_MARK = re.compile(r"\((?:done|completed|fixed|merged)\)\W*$|[✅✔]", re.IGNORECASE)
# "Do the above", "send it".
_POINTS_UP = re.compile(
    r"\b(?:the above|above|below|this|that|it|them|these|those)\W*$", re.IGNORECASE
)
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
_META = re.compile(
    r"^(?:this (?:section|document|page)|below|here)\b|\bthe following\b", re.IGNORECASE
)
# "Fix the upload by @ann in #12", as release notes are generated.
_CREDITED = re.compile(r" by (?P<who>@[\w\-]{1,39}) in \S{2,200}\s*$")
_OWN = re.compile(r"\W*(?:I\b|will\b|me\b)", re.IGNORECASE)
_ROLE_MARK = re.compile(r"\s*(?::|\s-|–|—|,|\()\s*")


class Entries:
    """Finds the labelled and listed events of one text."""

    def __init__(self, text: str, roster: Roster, manner: Manner) -> None:
        self.text = text
        self.roster = roster
        self.manner = manner

    def labelled(self, sentence: Sentence, block: Block) -> list[EventDraft] | None:
        sentence_text = sentence.words
        role = sentence_labels.role_label(sentence_text)
        if role is not None and not self.manner.speech:
            # "Send it. Owner: Ann" assigns the entry before it, which already has the owner.
            listed_here = block.bullet and block.section.kind in (
                SectionKind.ACTION,
                SectionKind.RISK,
            )
            assigns = listed_here and sentence.start > block.start
            return [] if assigns else list(self._role(sentence, *role))
        status = sentence_labels.status_label(sentence_text)
        if status is not None:
            draft = self._status(sentence, status)
            return [draft] if draft else []
        label = sentence_labels.event_label(sentence_text)
        if label is None:
            return None
        body = sentence_text[label.end :]
        if _EMPTY_ITEM.match(body) or not _is_worded(body) or guards.asks(body):
            return []
        if guards.is_placeholder(sentence_text):
            return []
        if label.category is Category.QUALITY_RISK and len(body.split()) < MIN_RISK_WORDS:
            return []
        if label.category is Category.DECISION and _UNDECIDED.search(body):
            return []
        category = label.category
        if category is Category.COMMITMENT and _DONE_MARK.search(body):
            category = Category.EXECUTION
        draft = self._item(sentence, block, category, confidence.LABELLED, label.end, label.who)
        return [self._weighed(draft, body)]

    def _weighed(self, draft: EventDraft, sentence_text: str) -> EventDraft:
        """A task without an owner is no promise yet; a task that refers to the text above says
        little."""
        sure = draft.confidence
        if draft.category is Category.COMMITMENT and not draft.actors:
            hangs = guards.hypothetical(sentence_text, 0, len(sentence_text)) or not _TASK.match(
                sentence_text
            )
            sure = min(sure, confidence.WEAK if hangs else confidence.LIKELY)
        if _POINTS_UP.search(draft.body) and len(draft.body.split()) < MIN_TASK_WORDS:
            sure = min(sure, confidence.LIKELY)
        return replace(draft, confidence=sure)

    def _role(self, sentence: Sentence, role: str, value: int) -> Iterator[EventDraft]:
        begin, end = sentence.span(value, len(sentence.words))
        people = listed(self.text[begin:end])
        line = self.text.rfind("\n", 0, sentence.start)
        if self.text.startswith("commit ", self.text.rfind("\n", 0, max(line, 0)) + 1):
            return  # a label of one change in a changelog
        # "Maintainers: adding myself" tells of an action, not of a role.
        if not people or people[0].name not in self.text[begin:end].partition(" and ")[0]:
            return
        for person in people:
            if not is_name(person.name) and not person.name.istitle():
                continue
            name = self.roster.resolve(person.name)
            at = self.text.find(person.name, begin, end)
            key = (at, at + len(person.name)) if at >= 0 else (begin, end)
            yield EventDraft(
                Category.STAKEHOLDER, confidence.LABELLED, sentence.start, end, key,
                ((name, sentence_labels.ROLE_LABELS[role]),), "role", role, person=name,
            )  # fmt: skip

    def _status(self, sentence: Sentence, value: int) -> EventDraft | None:
        category = status_category(sentence.words[value:], self.text)
        if category is None:
            return None
        span = sentence.span(0, len(sentence.words))
        begin, _ = sentence.span(value, len(sentence.words))
        body = self.text[begin : sentence.end]
        return EventDraft(category, confidence.SECTION, *span, span, style="status", body=body)

    def entry(self, sentence: Sentence, block: Block, first: bool) -> EventDraft | None:
        """The event that a sentence is because of its section."""
        sentence_text = sentence.words
        if not first:
            return self._prose_decision(sentence, block)
        if _EMPTY_ITEM.match(sentence_text) or guards.is_placeholder(sentence_text):
            return None
        kind = block.section.kind
        if block.box is not None and kind is not SectionKind.ASIDE:
            return self._boxed(sentence, block)
        if kind is SectionKind.STATUS:
            return self._status(sentence, 0) if block.lead else None
        if kind is SectionKind.ROLES:
            return self._role_entry(sentence) if block.bullet else None
        if kind is SectionKind.PLAIN:
            return self._dated_task(sentence, block)
        if block.nested or not _is_worded(sentence_text) or sentence_text.endswith(":"):
            return None
        if kind is SectionKind.ACTION:
            return self._task(sentence, block)
        if kind is SectionKind.DECISION:
            return self._decision(sentence, block)
        return self._listed_event(sentence, block)

    def _boxed(self, sentence: Sentence, block: Block) -> EventDraft | None:
        """A ticked box is done. An open one is a promise if it has an owner."""
        sentence_text = sentence.words
        if not _is_worded(sentence_text):
            return None
        if block.box and block.box.strip():
            # The ticks of a specification belong to its template.
            done = _TASK.match(sentence_text) and not self.manner.describes
            sure = confidence.SECTION if done else confidence.LIKELY
            return self._item(sentence, block, Category.EXECUTION, sure, 0, None)
        draft = self._item(sentence, block, Category.COMMITMENT, confidence.LABELLED, 0, None)
        return self._weighed(draft, sentence_text)

    def _task(self, sentence: Sentence, block: Block) -> EventDraft | None:
        sentence_text = sentence.words
        if guards.asks(sentence_text) and not block.bullet:
            return None
        if _DONE_ITEM.match(sentence_text) or _DONE_MARK.search(sentence_text):
            return self._item(sentence, block, Category.EXECUTION, confidence.SECTION, 0, None)
        draft = self._item(sentence, block, Category.COMMITMENT, confidence.SECTION, 0, None)
        if not draft.actors and (
            _STATEMENT.match(sentence_text) or not (block.bullet or _TASK.match(sentence_text))
        ):
            return None
        if guards.negated(sentence_text, 0, min(12, len(sentence_text))):
            return None
        return self._weighed(draft, sentence_text)

    def _decision(self, sentence: Sentence, block: Block) -> EventDraft | None:
        if _UNDECIDED.search(sentence.words):
            return None
        leads = block.lead and not block.section.inherited and not _CONCEDES.match(sentence.words)
        if block.bullet and not block.explains:
            return self._item(sentence, block, Category.DECISION, confidence.SECTION, 0, None)
        if leads and not block.bullet:
            sentence_text = sentence.words
            sure = confidence.STRONG if _SETS_A_RULE.search(sentence_text) else confidence.LIKELY
            sure = confidence.SECTION if _RESOLVES.match(sentence_text) else sure
            sure = (
                confidence.WEAK
                if _META.search(sentence_text) or sentence_text.endswith(":")
                else sure
            )
            return self._item(sentence, block, Category.DECISION, sure, 0, None)
        return self._prose_decision(sentence, block)

    def _prose_decision(self, sentence: Sentence, block: Block) -> EventDraft | None:
        """Below a "Decision" heading, later sentences count if they resolve something."""
        sentence_text = sentence.words
        if (
            block.section.kind is not SectionKind.DECISION
            or block.bullet
            or _UNDECIDED.search(sentence_text)
        ):
            return None
        if not _RESOLVES.match(sentence_text) or guards.conditional(sentence_text):
            return None
        return self._item(sentence, block, Category.DECISION, confidence.STRONG, 0, None)

    def _listed_event(self, sentence: Sentence, block: Block) -> EventDraft | None:
        category = {
            SectionKind.RISK: Category.QUALITY_RISK,
            SectionKind.FEEDBACK: Category.FEEDBACK,
            SectionKind.CHANGE: Category.CHANGE,
            SectionKind.DONE: Category.EXECUTION,
        }.get(block.section.kind)
        sentence_text = sentence.words
        if category is None:
            return None
        if category is Category.QUALITY_RISK and (
            guards.denies_risk(sentence_text) or guards.asks(sentence_text)
        ):
            return None
        planned = _PLANNED.search(block.section.title) and not block.section.release
        if category is Category.CHANGE and planned and not _HAS_CHANGED.search(sentence_text):
            return None  # "Changes" may be wishes
        if block.bullet and not block.explains:
            return self._item(sentence, block, category, confidence.SECTION, 0, None)
        states = block.lead and not _META.search(sentence_text) and not block.section.inherited
        states = states and block.section.title.lower() != "open issues"
        if states and category is Category.QUALITY_RISK:
            adverse = _ADVERSE.search(sentence_text) and not _ARGUES.search(sentence_text)
            sure = confidence.CLEAR if adverse else confidence.LIKELY
            return self._item(sentence, block, category, sure, 0, None)
        return None

    def _role_entry(self, sentence: Sentence) -> EventDraft | None:
        """ "Ann Lee: project lead", "Ann Lee - sponsor" below a heading such as "Roles"."""
        raw = self.text[sentence.start : sentence.end].replace("*", "")
        name, mark, role = (part.strip() for part in _partition(raw))
        if not mark or not is_name(name) or not role or len(role) > 120:
            return None
        name = self.roster.resolve(name)
        return EventDraft(
            Category.STAKEHOLDER, confidence.SECTION, sentence.start, sentence.end,
            (sentence.start, sentence.end), ((name, role_of(role)),), "listed_role", role,
            person=name,
        )  # fmt: skip

    def _dated_task(self, sentence: Sentence, block: Block) -> EventDraft | None:
        raw = self.text[sentence.start : sentence.end]
        if not _TASK.match(sentence.words) or not dated_assignment(raw):
            return None
        return self._item(sentence, block, Category.COMMITMENT, confidence.EXPLICIT, 0, None)

    def _item(
        self, sentence: Sentence, block: Block, category: Category, sure: float, begin: int,
        who: str | None,
    ) -> EventDraft:  # fmt: skip
        """A labelled or listed entry; a task gets the owners that the entry names."""
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
        elif category is Category.CHANGE and (credited := _CREDITED.search(raw)):
            actors = ((credited["who"], ActorRole.OWNER),)
            about = body = raw[: credited.start()]
        elif category is Category.EXECUTION and (begin or block.box):
            given = self._assigned(_DONE_MARK.sub("", raw), block, who, start)
            actors = tuple((name, ActorRole.OWNER) for name in given.owners)
            body = _DONE_MARK.sub("", raw)
        elif category in (Category.QUALITY_RISK, Category.EXECUTION):
            owners = named_owner(self.text[start : block.end][:MAX_ENTRY], self.roster)
            actors = tuple((name, ActorRole.OWNER) for name in owners)
        elif category is Category.DECISION and block.spoken and block.speaker:
            # Lines below a turn may be a scribe's, or may repeat what a board decided.
            own = sentence.start == block.start and len(self.text[sentence.start : start]) < _LABEL
            actors = ((block.speaker, ActorRole.OWNER),) if own else ()
        elif category is Category.FEEDBACK and block.spoken and block.speaker:
            actors = ((block.speaker, ActorRole.CONTRIBUTOR),)
        return EventDraft(
            category, sure, sentence.start, end, (start, end), actors, style, body, about
        )

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
        # A task that a chair records is another person's, unless it says "I".
        if block.spoken and block.speaker and _OWN.match(raw):
            return Assignment((block.speaker,), given.body)
        return given


def status_category(status: str, text: str) -> Category | None:
    """The category of a document's status; a document that is only proposed has none."""
    if _ACCEPTED.match(status) or (_IN_FORCE.match(status) and _PROPOSAL.match(text)):
        return Category.DECISION
    return Category.CHANGE if _SUPERSEDED.match(status) else None


def _partition(raw: str) -> tuple[str, str, str]:
    match = _ROLE_MARK.search(raw)
    if match is None:
        return raw, "", ""
    return raw[: match.start()], match.group(), raw[match.end() :].rstrip(") ")


def _is_worded(sentence_text: str) -> bool:
    """Whether it is more than a link or a single word."""
    return len(_LETTERS.findall(sentence_text)) >= MIN_ITEM_WORDS
