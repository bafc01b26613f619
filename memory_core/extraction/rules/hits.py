"""Hits: sentences that are events because of the phrases they hold."""

import re
from itertools import islice

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, dates, guards, verbs
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.cues import CUES
from memory_core.extraction.rules.cues.cue import Cue
from memory_core.extraction.rules.drafts import Draft
from memory_core.extraction.rules.patterns import DEPARTMENT, DEPARTMENTS, NAME, word_set
from memory_core.extraction.rules.people import Roster, names_in
from memory_core.extraction.rules.sentences import Sentence

# Two events of one sentence must both be this sure.
SECOND_EVENT = confidence.CLEAR
# A sentence that says the same thing more often than this is not language.
MAX_TRIES = 4

# The join between two clauses that may each be an event.
_JOIN = re.compile(r";|, (?:and|but|so|while|which|then)\b| - |\. | and (?=[A-Z]| has )")
_GROUP_WORD = re.compile(
    r"(?i:(?:the|our) )?(?:[\w\-]+ ){0,2}"
    r"(?i:team|group|committee|board|council|community|engineers|developers|maintainers)$"
)
_DEPARTMENT = re.compile(rf"\b{DEPARTMENT}\b")
_DEPARTMENTS = re.compile(rf"{DEPARTMENT}|{DEPARTMENTS}")
_DETERMINED = re.compile(
    r"\b(?:the|a|an|in|of|for|with|from|by|on|at|to|our|your|this|that|each|every|any|new|as|like|"
    r"via|using|than|per|no|some|all|its|their)\s+$",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:the|a|an|one|that|what|which|everything|all|anything|something)(?: [\w\-]+){0,2} $",
    re.IGNORECASE,
)
_CONDUCT = word_set(verbs.CONDUCT)
_TAKES_ON = re.compile(
    r"(?:take (?:care|over|ownership|on|the action|notes|point)|find out|get back to|get in touch|"
    r"set up|put together|bring it up|pick (?:it|this|that) up|talk to|make sure|run the|"
    r"ask [A-Z]\w+|"
    r"get the|pass (?:it|this|that) on|tell [A-Z]\w+|call [A-Z]\w+|move the|add (?:the|a|it to)|"
    r"present the|make the)\b"
)
# An object of two words that does not start with a pronoun.
_OBJECT = re.compile(
    r"(?: (?:up|out|into|on|with|to))? (?!(?:it|that|this|them|you|him|her|some)\b)\w+ \w+"
)
_SAYS_WHAT = re.compile(r"(?!(?:that|this|it|so|then|yet)\b)\b[^\W\d_]{3,}")
_PRONOUNS = ("she", "he", "they")
_NAMED = re.compile(NAME)
# How far back, in characters, a pronoun may point.
_REACH = 1000


# Who acts in an event of a category, unless the text gives the role itself.
_CUE_ROLES = {
    Category.COLLABORATION: ActorRole.CONTRIBUTOR,
    Category.FEEDBACK: ActorRole.CONTRIBUTOR,
    Category.QUALITY_RISK: ActorRole.CONTRIBUTOR,
}


class Hits:
    """Finds the events of one text that a cue tells."""

    def __init__(self, text: str, roster: Roster, prose: bool, authored: bool) -> None:
        self.text = text
        self.roster = roster
        self.prose = prose
        self.authored = authored

    def find(self, sentence: Sentence, block: Block) -> list[Draft]:
        if " " not in sentence.words:
            return []
        hits = [hit for cue in CUES if (hit := self._match(cue, sentence, block)) is not None]
        if not hits:
            return []
        hits.sort(key=lambda hit: -hit[0].confidence)
        best, match = hits[0]
        drafts = [self._cued(best, match, sentence, block)]
        for cue, other in hits[1:]:
            if cue.category is best.category or cue.confidence < SECOND_EVENT:
                continue
            if best.confidence >= SECOND_EVENT and _apart(sentence.words, match, other):
                return self._both(sentence, block, (best, match), (cue, other))
        return drafts

    def _match(
        self, cue: Cue, sentence: Sentence, block: Block
    ) -> tuple[Cue, re.Match[str]] | None:
        if cue.talk_only and self.prose and not block.spoken:
            return None
        if cue.voiced and block.speaker is None and not self.authored:
            return None
        said = sentence.words
        if cue.tail.search(said) is None:
            return None
        for match in islice(cue.pattern.finditer(said), MAX_TRIES):
            if not self._subject_fits(cue, match, sentence, block):
                continue
            if not cue.negative and guards.negated(said, *match.span()):
                continue
            if not cue.modal and guards.hypothetical(said, *match.span()):
                continue
            if cue.category is Category.COMMITMENT and (
                guards.conditional(said) or guards.taken_back(said, match.end())
            ):
                continue
            dated = dates.mentions(said)
            if (cue.dated and not dated) or (cue.promise and not dated and _is_conduct(match)):
                continue
            if cue.listed and not self._is_assigned(match["who"], block, dated):
                continue
            if cue.category is Category.QUALITY_RISK and guards.denies_risk(said):
                continue
            if guards.asks(said) or _is_bare(cue, match):
                continue
            return cue, match
        return None

    def _subject_fits(
        self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block
    ) -> bool:
        who = match.groupdict().get("who")
        if who is not None and who.lower() in ("i", "we") and _is_relative(sentence, match):
            return False
        if who is not None and who.lower() in ("i", "we") and not cue.first_person:
            return False
        if who == "I" and block.speaker is None and not self.authored:
            return False
        if not cue.person or who is None or who.lower() in ("i", "we"):
            return True
        if who.lower() in _PRONOUNS:
            return self._antecedent(block, sentence.start) is not None
        if _GROUP_WORD.fullmatch(who):
            return True
        found = names_in(who)
        if not found:
            return False
        if all(self.roster.knows(name) or name.startswith("@") for name in found):
            return True
        full = match.start("who") == 0 and all(" " in name for name in found)
        if (self.prose and not full) or _DETERMINED.search(sentence.words, 0, match.start("who")):
            return False
        return all(self.roster.is_person(name) for name in found)

    def _is_assigned(self, who: str, block: Block, dated: bool) -> bool:
        if self.roster.knows(who) or who.startswith("@"):
            return True
        return block.bullet and (dated or " " in who)

    def _both(
        self, sentence: Sentence, block: Block, one: tuple[Cue, re.Match[str]],
        two: tuple[Cue, re.Match[str]],
    ) -> list[Draft]:  # fmt: skip
        """Two events of one sentence, each quoted by its own clause."""
        left, right = sorted((one, two), key=lambda hit: hit[1].start())
        said = sentence.words
        join = _JOIN.search(said, left[1].end(), max(right[1].start() + 1, left[1].end()))
        if join is None:
            return [self._cued(*one, sentence, block)]
        return [
            self._cued(*left, sentence, block, (0, join.start())),
            self._cued(*right, sentence, block, (min(join.end(), right[1].start()), len(said))),
        ]

    def _cued(
        self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block,
        clause: tuple[int, int] | None = None,
    ) -> Draft:  # fmt: skip
        begin, stop = clause or (0, len(sentence.words))
        start, end = sentence.span(begin, stop)
        groups = match.groupdict()
        who = groups.get("who")
        actors = self._actors(cue, who, block, sentence.start)
        person = next(iter(actors), (None,))[0] if cue.category is Category.STAKEHOLDER else None
        after, _ = sentence.span(match.end(), stop) if match.end() < stop else (end, end)
        if cue.category in (Category.CHANGE, Category.FEEDBACK) and cue.source.startswith(r"\b"):
            after = start
        sure = cue.confidence
        if who == "I" and block.speaker is None:
            sure = min(sure, confidence.LIKELY)
        if cue.promise and not dates.mentions(sentence.words):
            named = _OBJECT.match(sentence.words, match.end()) is not None
            sure = confidence.CLEAR if named else confidence.LIKELY
        return Draft(
            cue.category, sure, start, end, sentence.span(*match.span()), actors,
            "sentence", self.text[start:end], self.text[after:end], person,
            {"pronoun": who or ""} if (who or "").lower() in _PRONOUNS else {},
        )  # fmt: skip

    def _antecedent(self, block: Block, before: int) -> str | None:
        """Whom "she" or "he" means: the only person named earlier in the paragraph."""
        earlier = self.text[max(block.start, before - _REACH) : before]
        named = {
            self.roster.resolve(match.group())
            for match in _NAMED.finditer(earlier)
            if self.roster.knows(match.group())
        }
        named.discard(block.speaker or "")
        return named.pop() if len(named) == 1 else None

    def _actors(
        self, cue: Cue, who: str | None, block: Block, before: int
    ) -> tuple[tuple[str, ActorRole], ...]:
        role = _CUE_ROLES.get(cue.category, ActorRole.OWNER)
        if who is None or who.lower() in ("i", "we"):
            return ((block.speaker, role),) if block.speaker else ()
        if who.lower() in _PRONOUNS:
            antecedent = self._antecedent(block, before)
            return ((antecedent, role),) if antecedent else ()
        if departments := _departments(who):
            return tuple((name, role) for name in departments)
        found = names_in(who)
        if not found or _GROUP_WORD.fullmatch(who):
            spoken = ((block.speaker, role),) if block.speaker and block.spoken else ()
            return ((who[0].upper() + who[1:], role), *spoken) if who[0].isupper() else spoken
        return tuple((self.roster.resolve(name), role) for name in dict.fromkeys(found))


def _departments(who: str) -> list[str]:
    """ "Engineering and design": each by its name; none if these are no departments."""
    if not _DEPARTMENTS.fullmatch(who):
        return []
    names = [match.group() for match in _DEPARTMENT.finditer(who)]
    return [name[0].upper() + name[1:] for name in dict.fromkeys(names)]


def _is_bare(cue: Cue, match: re.Match[str]) -> bool:
    """ "We decided that." says that something was decided, not what."""
    if cue.category not in (Category.DECISION, Category.CHANGE):
        return False
    told_after = "who" in match.groupdict()
    return told_after and _SAYS_WHAT.search(match.string, match.end()) is None


def _is_conduct(match: re.Match[str]) -> bool:
    """ "I'll show you", "I'll take that back": moves in a conversation. A thing or a person as
    the object ("I'll take care of the", "I'll find out whether") makes it a promise again."""
    if match["verb"].lower() not in _CONDUCT:
        return False
    return _TAKES_ON.match(match.string, match.start("verb")) is None


def _is_relative(sentence: Sentence, match: re.Match[str]) -> bool:
    """ "the risk we wrote down": the verb belongs to a clause about the noun."""
    return _RELATIVE.search(sentence.words, 0, match.start("who")) is not None


def _apart(said: str, one: re.Match[str], two: re.Match[str]) -> bool:
    left, right = sorted((one, two), key=lambda match: match.start())
    return _JOIN.search(said, left.end(), max(right.start() + 1, left.end())) is not None
