"""Events that a cue marks: sentences with a phrase such as "we decided to"."""

from itertools import islice

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, guards, verbs
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.cue import Cue
from memory_core.extraction.rules.cues import CUES
from memory_core.extraction.rules.drafts import EventDraft
from memory_core.extraction.rules.manner import Manner
from memory_core.extraction.rules.patterns import DEPARTMENT, DEPARTMENTS, NAME, word_set
from memory_core.extraction.rules.people import Roster, names_in
from memory_core.extraction.rules.sentences import Sentence
from memory_core.text import dates
from memory_core.text import timed_patterns as re

# Two events of one sentence must each have this confidence.
SECOND_EVENT = confidence.CLEAR
# A sentence that repeats a phrase more often than this is not natural language.
MAX_TRIES = 4

# The join between two clauses that may each be an event.
_JOIN = re.compile(r";|, (?:and|but|so|while|which|then)\b| - |\. | and (?=[A-Z]| has )")
_GROUP_WORD = re.compile(
    r"(?i:(?:the|our) )?(?:[\w\-]+ ){1,2}"
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
    r"\b(?:the|a|an|one|that|what|which|everything|all|anything|something|those|after|when|once)"
    r"(?: [\w\-]+){0,2} $",
    re.IGNORECASE,
)
_CONDUCT = word_set(verbs.CONDUCT)
_PROMISE = word_set(verbs.PROMISE)
_TAKES_ON = re.compile(
    r"(?:take (?:care|over|ownership|on|up|the action|notes|point|a (?:closer |good )?look)|"
    r"find out|get back to|get in touch|set up|put together|bring it up|pick (?:it|this|that) up|"
    r"talk (?:to|with) [A-Z]\w+|check with|make sure|run the|get the|"
    r"ask (?:(?:the |our )?\w+ (?:about|for|to)|[A-Z]\w+)|"
    r"pass (?:it|this|that) on|"
    r"tell [A-Z]\w+|call [A-Z]\w+|move the|add (?:the|a|it to)|present the|"
    r"make (?:the|a|copies|some)|put (?:it|this|that|them|the [\w ]{3,30}) (?:in|on|into|up)|"
    r"putting the|come up with|look (?:into|over|up)|clean (?:it|this|that|the)|follow up|"
    r"dig (?:up|out)|type (?:it|this|up)|let (?:you|[A-Z]\w+) know (?:when|whether|what|how|by|if)|"
    r"give (?:you|[A-Z]\w+) (?:a call|an update|the)|have (?:\w+ ){1,4}(?:done|ready|sent))\b"
)
# A clause of a speaker who is searching for words ends here.
_CLAUSE_END = re.compile(r"(?:[,;:)-]|\b(?:but|and|so|that|then)) $")
# The decision or promise was made elsewhere.
_REMINDS = re.compile(
    r"(?:\[[^\]]{1,30}\])?\W*(?:reminder|announcement|psa|heads[- ]up)\b", re.IGNORECASE
)
_TURN_TAKING = re.compile(r"\w+ (?:my|our|the|their) time\b", re.IGNORECASE)
_FUMBLED = re.compile(
    r"\b(?:you know|I mean|sorry|or something|or whatever|I guess|I dunno|what's what|you say)\b|"
    r"(?<=[a-z,] )(?![aiAI]\b)[a-z](?= [a-z])|@",
)
_ADDRESSEE = 80
_CHAIR = re.compile(r"\b(?:manager|chair|lead|moderator|host|facilitator)\b", re.IGNORECASE)
# An object of two words that does not start with a pronoun.
_OBJECT = re.compile(
    r"(?: (?:up|out|into|on|with|to))?(?: you)? (?!(?:it|that|this|them|you|him|her|some)\b)"
    r"[\w'\-]+ \w+"
)
# Words that say what an event is about: not pronouns, not function words.
_CONTENT = re.compile(
    r"\b(?!(?:that|this|these|those|them|they|their|there|then|than|the|and|but|for|from|with|into|"
    r"you|your|him|her|his|its|our|does|did|has|have|had|was|were|are|will|would|can|not|yet|too|all|any|"
    r"some|something|anything|thing|things|stuff|one|just|also|well|yeah|okay|right|know|get|got|"
    r"done|now|today|tonight|tomorrow|morning|afternoon|soon|later|asap|out|off|back|down|again|"
    r"here|what|when|how|who|which|about|btw|please|xx+)\b)"
    r"[^\W\d_][\w\-]{2,}|\d{2,}",
    re.IGNORECASE,
)
# A subject or object that only the previous text explains.
_POINTS_BACK = re.compile(
    r"\W*(?:(?:yes|yeah|ok|okay|well|no|and|but|at|into|on|with|to|after|for)\W+)?"
    r"(?:it|that|this|these|those|them|they|so|there)\b",
    re.IGNORECASE,
)
_POINTS_WITHIN = re.compile(
    r" (?:it|this|that|them|these|those) \w+$|\bthe other (?:one|two)\b", re.IGNORECASE
)
_CLEAR_WORDS = 3
_UNSAID = re.compile(
    r"\b(?:the (?:other|old|new|same) ones?|(?:for|about|on|with|of) (?:this|that))\W*$|"
    r"^(?: \w+){1,2} (?:it|them)\b",
    re.IGNORECASE,
)
_PRONOUN_LAST = re.compile(r"\b(?:it|them|those)\W*$", re.IGNORECASE)
_EXPLETIVE = re.compile(
    r"\W*(?:it (?:was|has been|is) (?:\w+ly )?(?:decided|agreed|resolved)|"
    r"there (?:is|was|are|were))\b",
    re.IGNORECASE,
)
_PRONOUNS = ("she", "he")
_NAMED = re.compile(NAME)
# How far back, in characters, a pronoun may refer.
_REACH = 1000


# The role of the actor in an event of a category, unless the text gives the role itself.
_CUE_ROLES = {
    Category.COLLABORATION: ActorRole.CONTRIBUTOR,
    Category.FEEDBACK: ActorRole.CONTRIBUTOR,
    Category.QUALITY_RISK: ActorRole.CONTRIBUTOR,
}


class CueMatches:
    """Finds the events of one text that a cue marks."""

    def __init__(self, text: str, roster: Roster, manner: Manner) -> None:
        self.text = text
        self.roster = roster
        self.manner = manner

    def find(self, sentence: Sentence, block: Block) -> list[EventDraft]:
        if " " not in sentence.words or guards.is_placeholder(sentence.words):
            return []
        if _REMINDS.match(sentence.words):
            return []
        hits = [hit for cue in CUES if (hit := self._match(cue, sentence, block)) is not None]
        if not hits:
            return []
        hits.sort(key=lambda hit: -hit[0].confidence)
        best, sentence_text = hits[0], sentence.words
        for other in hits[1:]:
            if other[0].category is best[0].category or other[0].confidence < SECOND_EVENT:
                continue
            # Two events of one sentence are each quoted by their own clause.
            left, right = sorted((best, other), key=lambda hit: hit[1].start())
            end, begin = left[1].end(), right[1].start()
            if join := _JOIN.search(sentence_text, end, max(begin + 1, end)):
                clauses = (0, join.start()), (min(join.end(), begin), len(sentence_text))
                return [
                    self._cued(*hit, sentence, block, clause)
                    for hit, clause in zip((left, right), clauses, strict=True)
                ]
        return [self._cued(*best, sentence, block)]

    def _match(
        self, cue: Cue, sentence: Sentence, block: Block
    ) -> tuple[Cue, re.Match[str]] | None:
        if cue.talk_only and self.manner.describes and not block.spoken:
            return None
        if cue.voiced and block.speaker is None and not self.manner.authored:
            return None
        sentence_text = sentence.words
        if cue.tail.search(sentence_text) is None:
            return None
        for match in islice(cue.pattern.finditer(sentence_text), MAX_TRIES):
            if not self._subject_fits(cue, match, sentence, block):
                continue
            if not cue.negative and guards.negated(sentence_text, *match.span()):
                continue
            if not cue.modal and guards.hypothetical(sentence_text, *match.span()):
                continue
            if cue.category is Category.COMMITMENT and (
                guards.conditional(sentence_text) or guards.taken_back(sentence_text, match.end())
            ):
                continue
            dated = dates.mentions(sentence_text)
            if (cue.dated and not dated) or (
                cue.promise and not _is_work(match, self.manner.speech)
            ):
                continue
            if match.group().split()[0].isupper() and who_is_missing(match):
                continue  # "FIXED 32-bit value" names a type
            if cue.listed and not self._is_assigned(match["who"], block, dated):
                continue
            if cue.category is Category.QUALITY_RISK and guards.denies_risk(sentence_text):
                continue
            if guards.asks(sentence_text) or _is_bare(cue, match):
                continue
            return cue, match
        return None

    def _subject_fits(
        self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block
    ) -> bool:
        who = match.groupdict().get("who")
        if who == "i" and self.manner.speech:
            return False  # a word that was broken off
        if who is not None and who.lower() in ("i", "we"):
            # "the risk we wrote down": the verb belongs to a clause about the noun.
            relative = _RELATIVE.search(sentence.words, 0, match.start("who"))
            if relative is not None or not cue.first_person:
                return False
        if who == "I" and block.speaker is None and not self.manner.authored:
            return False
        if not cue.person or who is None or who.lower() in ("i", "we"):
            return True
        if who.lower() in _PRONOUNS:
            return self._antecedent(block, sentence.start) is not None
        if _GROUP_WORD.fullmatch(who):
            return True
        names = names_in(who)
        if not names or _DETERMINED.search(sentence.words, 0, match.start("who")):
            return False
        named = self.manner.speech and cue.category is Category.COMMITMENT
        return all(
            self.roster.is_person(name) or (named and name in self.roster.spoken_of)
            for name in names
        )

    def _is_assigned(self, who: str, block: Block, dated: bool) -> bool:
        is_known = self.roster.knows(who) or who.startswith("@")
        return is_known or (block.bullet and (dated or self.roster.is_person(who)))

    def _cued(
        self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block,
        clause: tuple[int, int] | None = None,
    ) -> EventDraft:  # fmt: skip
        begin, stop = clause or (0, len(sentence.words))
        start, end = sentence.span(begin, stop)
        groups = match.groupdict()
        who = groups.get("who")
        actors = self._actors(cue, match, sentence, block)
        person = next(iter(actors), (None,))[0] if cue.category is Category.STAKEHOLDER else None
        after, _ = sentence.span(match.end(), stop) if match.end() < stop else (end, end)
        if cue.category in (Category.CHANGE, Category.FEEDBACK) and cue.source.startswith(r"\b"):
            after = start
        sure = self._sure(cue, match, sentence, block)
        promised = cue.category is Category.COMMITMENT
        leads_up = block.spoken or _CLAUSE_END.search(match.string, 0, _clause_of(match))
        if who and (promised or block.spoken) and leads_up:
            # The words before a promise, or before a point in speech, do not belong to it.
            start, _ = sentence.span(max(begin, _clause_of(match)), stop)
        if cue.listed:
            task = self.text[sentence.span(match.end("who"), stop)[0] : end].strip()
            return EventDraft(
                cue.category, sure, start, end, sentence.span(*match.span()), actors, "promise",
                task, self.text[after:end],
            )  # fmt: skip
        return EventDraft(
            cue.category, sure, start, end, sentence.span(*match.span()), actors,
            "sentence", self.text[start:end], self.text[after:end], person,
            {"pronoun": who or ""} if (who or "").lower() in (*_PRONOUNS, "you") else {},
        )  # fmt: skip

    def _sure(self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block) -> float:
        """The cue's own confidence, lowered where the sentence does not say who or what."""
        sentence_text = sentence.words
        sure = cue.confidence
        who = match.groupdict().get("who")
        after = sentence_text[match.end() :]
        content_words = len(_CONTENT.findall(after))
        if who is None:
            content_words += len(_CONTENT.findall(sentence_text, 0, match.start()))
        points_back = (
            (
                _POINTS_BACK.match(after if who else sentence_text)
                and not _EXPLETIVE.match(sentence_text)
            )
            or _POINTS_WITHIN.search(match.group())
            or sentence_text.endswith(("the other one.", "the other one"))
            or sentence_text.startswith("(")
        )
        if content_words == 0 or (points_back and content_words < 3):
            sure = min(sure, confidence.WEAK if content_words < 2 else confidence.LIKELY)
        elif points_back:
            sure = min(sure, confidence.LIKELY) if who else sure - confidence.STEP
        unsaid = _UNSAID.search(after) or (
            content_words < _CLEAR_WORDS and _PRONOUN_LAST.search(after)
        )
        if sentence_text.endswith(":") or (
            unsaid and not _CONTENT.search(sentence_text[: match.start()])
        ):
            sure = min(sure, confidence.LIKELY)
        if who in ("I", "i") and block.speaker is None:
            sure = min(sure, confidence.LIKELY)
        if (
            cue.promise
            and not dates.mentions(sentence_text)
            and not _OBJECT.match(sentence_text, match.end())
        ):
            sure = min(sure, confidence.LIKELY)
        if self.manner.speech:
            # In speech people report their own acts; what others did is often an example.
            own = cue.category is not Category.EXECUTION or (who or "").lower() in ("i", "we")
            whole = content_words > 1 and (
                cue.category is not Category.EXECUTION or sentence_text[-1] in ".!?"
            )
            clear = cue.speech and own and whole and not _FUMBLED.search(sentence_text)
            most = confidence.CLEAR if cue.category is Category.EXECUTION else sure
            sure = min(sure, most if clear else confidence.LIKELY)
        if who and who.lower() == "you" and self._assigns(sentence, match, block):
            sure = confidence.CLEAR
        return max(sure, confidence.WEAK)

    def _assigns(self, sentence: Sentence, match: re.Match[str], block: Block) -> bool:
        """Whether "you will …" assigns work: the person is addressed by name, or the chair
        speaks."""
        if self._addressed(sentence, match):
            return True
        chair = _CHAIR.search(block.speaker or "") is not None
        verb = _bare_verb(match.group().lower().split()[-1])
        work = verb in ("look", "work", "think") or (verb in _PROMISE and verb not in _CONDUCT)
        return chair and work and not _FUMBLED.search(sentence.words)

    def _addressed(self, sentence: Sentence, match: re.Match[str]) -> str | None:
        """The person that "you" means: the one addressed just before it ("Ann, you'll look at the
        logs")."""
        before = sentence.words[max(0, match.start() - _ADDRESSEE) : match.start()].lower()
        called = [name for name in self.roster.names if len(name) > 2 and name.lower() in before]
        return max(called, key=lambda name: before.rfind(name.lower()), default=None)

    def _antecedent(self, block: Block, before: int) -> str | None:
        """The person that "she" or "he" means: the only person named earlier in the paragraph."""
        earlier = self.text[max(block.start, before - _REACH) : before]
        named = {
            self.roster.resolve(match.group())
            for match in _NAMED.finditer(earlier)
            if self.roster.knows(match.group())
        }
        named.discard(block.speaker or "")
        return named.pop() if len(named) == 1 else None

    def _actors(
        self, cue: Cue, match: re.Match[str], sentence: Sentence, block: Block
    ) -> tuple[tuple[str, ActorRole], ...]:
        who, before = match.groupdict().get("who"), sentence.start
        role = _CUE_ROLES.get(cue.category, ActorRole.OWNER)
        if who is None and not _is_speakers(cue, match, block.spoken):
            return ()
        if who is None or who.lower() in ("i", "we"):
            return ((block.speaker, role),) if block.speaker else ()
        if who.lower() in _PRONOUNS:
            antecedent = self._antecedent(block, before)
            return ((antecedent, role),) if antecedent else ()
        if who.lower() == "you":
            addressed = self._addressed(sentence, match)
            return ((addressed, role),) if addressed else ()
        if departments := _departments(who):
            return tuple((name, role) for name in departments)
        names = names_in(who)
        if not names or _GROUP_WORD.fullmatch(who):
            spoken = ((block.speaker, role),) if block.speaker and block.spoken else ()
            return ((who[0].upper() + who[1:], role), *spoken) if who[0].isupper() else spoken
        return tuple((self.roster.resolve(name), role) for name in dict.fromkeys(names))


def _departments(who: str) -> list[str]:
    """ "Engineering and design": each by its name; empty if these are no departments."""
    if not _DEPARTMENTS.fullmatch(who):
        return []
    names = [match.group() for match in _DEPARTMENT.finditer(who)]
    return [name[0].upper() + name[1:] for name in dict.fromkeys(names)]


def who_is_missing(match: re.Match[str]) -> bool:
    first = match.group().split()[0]
    return match.groupdict().get("who") is None and first.isalpha() and len(first) > 2


def _is_bare(cue: Cue, match: re.Match[str]) -> bool:
    """ "We decided that." says that something was decided, not what."""
    if cue.category not in (Category.DECISION, Category.CHANGE):
        return False
    told_after = "who" in match.groupdict()
    return told_after and _CONTENT.search(match.string, match.end()) is None


def _is_speakers(cue: Cue, match: re.Match[str], spoken: bool) -> bool:
    """Whether a sentence without a person as its subject is the speaker's own: "deployed it at
    nine" omits "I", and a speaker who says that the build fails reports it."""
    if cue.category is Category.FEEDBACK:
        return cue.voiced
    elided = match.start() <= 1 and not match.group().lower().startswith(("the ", "our ", "this "))
    return spoken and (elided or cue.category is Category.QUALITY_RISK)


def _clause_of(match: re.Match[str]) -> int:
    """The start of a promise's clause: its subject."""
    start: int = match.start("who") if match.groupdict().get("who") else match.start()
    return start


def _is_work(match: re.Match[str], spoken: bool) -> bool:
    """ "I'll show you", "I'll repeat my question" are moves in a conversation. A later task ("I'll
    take care of the", "I'll find out whether") or a day makes it a promise."""
    verb = _bare_verb(match["verb"].lower())
    if _TURN_TAKING.match(match.string, match.start("verb")):
        return False
    if _TAKES_ON.match(match.string, match.start("verb")) or dates.is_ahead(match.string):
        return True
    return verb not in _CONDUCT and (verb in _PROMISE or not spoken)


def _bare_verb(verb: str) -> str:
    """ "putting" to "put", "writing" to "write"."""
    stem = verb.removesuffix("ing")
    if stem == verb:
        return verb
    return next((v for v in (stem, f"{stem}e", stem[:-1]) if v in _PROMISE), verb)
