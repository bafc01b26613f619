"""Narratives: one sentence in the third person that can be understood alone."""

from memory_core.extraction.rules import speech, verbs
from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.patterns import words
from memory_core.extraction.rules.people import Roster
from memory_core.text import timed_patterns as re

MAX_NARRATIVE = 300
# The maximum length of the heading or parent item that precedes a line that says little alone.
_MAX_CONTEXT = 110

# Openers that have no meaning once the sentence stands alone.
_OPENER = re.compile(
    r"^(?:(?:no|yes)[,.!]\s+|(?:so|and|but|ok|okay|yeah|yep|well|um|uh|right|alright|anyway|also|then|sure|"
    r"i think|i guess|i believe|actually|basically|fyi|btw|now|oh|hi|thanks|note that|you know|"
    r"therefore|however|finally|in addition|additionally|"
    r"i mean)(?:[,.!:]|\s-)?\s+)+(?=\S)",
    re.IGNORECASE,
)
# "Incarus: try that": the addressee of a chat line.
_ADDRESSED = re.compile(r"^@?[A-Za-z_][\w\-|^`\[\]]{1,30}[:,]\s+(?=\S)")
# Emoji, flags and bullets before the words.
_ORNAMENT = re.compile(r"^[^\w\"'“‘(\[#@$€£~+-]+")
_IMPERATIVE = re.compile(rf"^{words(verbs.IMPERATIVE)}(?= (?!of )\S)", re.IGNORECASE)
_TRAILING_MARK = re.compile(r"[\s,;:\-–—|]+$")
_EMPTY_PARENS = re.compile(r"\s*[(\[]\s*[,;:]?\s*[)\]]")
_DATE_FIRST = re.compile(r"^\(?(?:\d{4}[-/]\d{1,2}[-/]\d{1,2})\)?\s?[:\-–]?\s+")

# Present tense after "I" gets its ending; verbs whose past looks the same are left out.
_PRESENT = words(
    """need want think like love prefer own lead see know find agree expect take share review work
    write hope believe keep make give use ask look call plan start stop leave own determine rule"""
)


def _table(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern, str], ...]:
    return tuple((re.compile(rf"\b{pattern}\b"), replacement) for pattern, replacement in pairs)


# First person to third, in order: contractions first. {n} is the speaker's name.
_FIRST_PERSON = _table(
    (r"[Ii] ?['’]ll", "{n} will"), (r"[Ii] ?['’]ve", "{n} has"), (r"[Ii] ?['’]m", "{n} is"),
    (r"[Ii] ?['’]d", "{n} would"), (r"I am", "{n} is"), (r"I have", "{n} has"),
    (r"I do(?:n['’]t| not)", "{n} does not"), (rf"I ({_PRESENT})", r"{n} \1s"),
    (r"(?<![\w.])[Ii](?![\w.'’])", "{n}"),
)  # fmt: skip
_MINE = _table(
    (r"[Ii] ?['’]ll", "they will"), (r"[Ii] ?['’]ve", "they have"),
    (r"[Ii] ?['’]m|I am", "they are"), (r"[Ii] ?['’]d", "they would"),
    (r"(?<![\w.])[Ii](?![\w.'’])", "they"), (r"[Mm]y", "their"), (r"[Mm]e", "them"),
    (r"[Mm]yself", "themselves"),
)  # fmt: skip
_PLURAL = _table(
    (r"[Ww]e['’]ll", "the team will"), (r"[Ww]e['’]ve", "the team has"),
    (r"[Ww]e['’]re|[Ww]e are", "the team is"), (r"[Ww]e['’]d", "the team would"),
    (r"[Ww]e have", "the team has"), (r"[Ww]e were", "the team was"),
    (r"[Ww]e do(?:n['’]t| not)", "the team does not"),
    (r"[Ww]e (need|want|think|like|prefer|see|know|find|expect|use|keep|call|stay)",
     r"the team \1s"),
    (r"[Ww]e", "the team"), (r"[Oo]urs", "the team's"), (r"[Oo]ur", "the team's"),
    (r"(?<!\w)us", "the team"),
)  # fmt: skip
# Chats omit the subject: "will look at it".
_ELIDED = re.compile(r"^(?:will|can|going with) \w", re.IGNORECASE)
_SECOND_PERSON = re.compile(r"\byour?\b", re.IGNORECASE)
# The addressee of a promise, in the third person.
_WILL = re.compile(r"[Ii](?: ?['’]ll| will)\b")
_YOU = re.compile(r"\byou(?: guys| all)?\b(?!['’])(?! (?:will|can|have|are|know|need|want|would))")
_YOU_WILL = re.compile(r"\b[Yy]ou(?: ?['’]re| are) (?:gonna|going to)|\b[Yy]ou(?: ?['’]ll| will)")
_DECIDES = re.compile(r"\b(?:decided|agreed|decision|resolved|approved|chose)\b", re.IGNORECASE)
_SUBJECT_I = re.compile(r"^[Ii]\b")
# Lines that say nothing without the text above them.
_SAYS_LITTLE = re.compile(
    rf"(?:{words(verbs.DONE)}|{words(verbs.CHANGED)}|approved|accepted|rejected|decided|agreed|"
    r"this|that|these|those|they|it|both|all|some|none|yes|no|done)\b(?! (?:was|is|has been) "
    r"(?:decided|agreed))",
    re.IGNORECASE,
)
_REPORTS = re.compile(rf"(?:{words(verbs.DONE)}|{words(verbs.CHANGED)})\b", re.IGNORECASE)
_POINTS_BACK = re.compile(r"(?:this|that|these|those|they|it|both|some)\b", re.IGNORECASE)
_FEW_WORDS = 4


def sentence(raw: str, speaker: str | None, spoken: bool, roster: Roster) -> str:
    """The sentence, reworded in the third person."""
    text, to = _opened(raw, spoken, roster)
    if speaker is None:
        return finish(_replace(_PLURAL, _first_person(text, "the author"), ""))
    if _ELIDED.match(text):
        subject = "I'm" if text.lower().startswith("going") else "I"
        text = f"{subject} {text[0].lower()}{text[1:]}"
    if spoken and not _SUBJECT_I.match(text):
        said = (
            f"{speaker} said to {to}" if to and _SECOND_PERSON.search(text) else f"{speaker} said"
        )
        return finish(f"{said}: {text}", roster)
    if not spoken and _REPORTS.match(text):
        return finish(f"{speaker}: {_replace(_PLURAL, text, speaker)}", roster)
    text = _YOU.sub("them", text) if _WILL.match(text) else text
    return finish(_replace(_PLURAL, _first_person(text, speaker), speaker), roster)


def named(raw: str, pronoun: str, name: str) -> str:
    """The sentence with the person's name instead of "she", or of "you" for a person who gets a
    task."""
    if pronoun.lower() == "you":
        return f"{name} will".join(_YOU_WILL.split(raw, 1))
    return name.join(re.compile(rf"\b{pronoun}\b").split(raw, 1))


def _opened(raw: str, spoken: bool, roster: Roster) -> tuple[str, str]:
    """The words without openers and fillers, and the addressee."""
    text, to = plain(raw), ""
    if spoken:
        text = speech.clean(text)
        addressed = _ADDRESSED.match(text)
        if addressed and roster.knows(addressed.group().rstrip(" ,:")):
            to, text = addressed.group().rstrip(" ,:"), text[addressed.end() :]
    text = _OPENER.sub("", _ORNAMENT.sub("", text))
    return _expand(_ORNAMENT.sub("", text) or plain(raw), roster), to


def _first_person(text: str, name: str) -> str:
    """The first "I" becomes the name, later ones "they"."""
    matches = [m for pattern, _ in _FIRST_PERSON if (m := pattern.search(text))]
    if not matches:
        return _replace(_MINE, text, "")
    end = max(m.end() for m in matches if m.start() == min(m.start() for m in matches))
    return _replace(_FIRST_PERSON, text[:end], name) + _replace(_MINE, text[end:], "")


def promise(owners: str | None, raw: str, speaker: str | None, roster: Roster) -> str:
    """A task as a sentence: "Ann will send the report", or "To do: send the report"."""
    text = _expand(_EMPTY_PARENS.sub("", plain(raw)).strip(), roster)
    text = _TRAILING_MARK.sub("", _ORNAMENT.sub("", text))
    if owners is None:
        return finish(f"To do: {text}")
    if text.startswith(owners):
        return finish(text, roster)
    text = _replace(_MINE, _first_person(text, speaker or owners), "")
    if _IMPERATIVE.match(text):
        return finish(f"{owners} will {_lower(text)}", roster)
    if text.startswith(("will ", "to ")):
        return finish(f"{owners} will {text.split(None, 1)[1]}", roster)
    verb = "are" if " and " in owners else "is"
    return finish(f"{owners} {verb} responsible for: {text}", roster)


def prefixed(prefix: str, raw: str, roster: Roster) -> str:
    body = _DATE_FIRST.sub("", _ORNAMENT.sub("", plain(raw)))
    return finish(f"{prefix}: {_replace(_PLURAL, _expand(body, roster), '')}")


def decision(raw: str, roster: Roster) -> str:
    text = _expand(_OPENER.sub("", _ORNAMENT.sub("", plain(raw))), roster)
    text = _replace(_PLURAL, text, "")
    if _IMPERATIVE.match(text):
        return finish(f"It was decided to {_lower(text)}")
    if _DECIDES.search(text):
        return finish(text)
    return finish(f"Decision: {text}")


def says_little(wording: str) -> bool:
    """Whether a line should be joined with the heading or the item above it."""
    label, _, rest = wording.partition(": ")
    body = rest if label in ("Decision", "Done", "Change") else wording
    return _SAYS_LITTLE.match(body) is not None or len(body.split()) < _FEW_WORDS


def says_too_little(wording: str) -> bool:
    """Whether a line cannot be understood without the text above it."""
    return _POINTS_BACK.match(wording) is not None or len(wording.split()) <= _FEW_WORDS


def joined(context: str, wording: str) -> str:
    """ "Search service: approved by the board": the line with its topic."""
    context = _TRAILING_MARK.sub("", plain(context))
    if len(context) > _MAX_CONTEXT:
        context = context[: context.rfind(" ", 0, _MAX_CONTEXT)] + "…"
    return finish(f"{context}: {wording}") if context else wording


def followed(before: str, wording: str) -> str:
    """A sentence that refers to the previous one, after that one."""
    return finish(f"{_TRAILING_MARK.sub('', plain(before))}. {wording}")


def finish(text: str, roster: Roster | None = None) -> str:
    """A capital first, unless a handle stands there; a full stop last; at most the maximum
    length."""
    text = _EMPTY_PARENS.sub("", " ".join(text.split()))
    text = _TRAILING_MARK.sub("", text)
    if len(text) > MAX_NARRATIVE:
        cut = text.rfind(" ", 0, MAX_NARRATIVE - 1)
        text = text[: cut if cut > MAX_NARRATIVE // 2 else MAX_NARRATIVE - 1].rstrip(" ,;:") + "…"
    elif text and text[-1] not in ".!?…":
        text = text + "." if len(text) < MAX_NARRATIVE else text[:-1] + "…"
    if text.startswith(("http://", "https://")):
        return text
    first = text.partition(" ")[0]
    if any(c.isdigit() for c in first):
        return text
    return text if roster and first.rstrip(",:") in roster.names else text[:1].upper() + text[1:]


def join(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _lower(text: str) -> str:
    first = text.split(None, 1)[0]
    return text if first.isupper() and len(first) > 1 else text[0].lower() + text[1:]


def _replace(table: tuple[tuple[re.Pattern, str], ...], text: str, name: str) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement.replace("{n}", name.replace("\\", "")), text)
    return text


def _expand(text: str, roster: Roster) -> str:
    """Replace initials that the document explains by the full name."""
    for alias, name in roster.aliases.items():
        if alias.isupper() and alias in text:
            text = name.join(re.compile(rf"(?<![\w(]){re.escape(alias)}(?![\w)])").split(text))
    return text
