"""Narratives: one sentence in the third person that stands on its own."""

import re

from memory_core.extraction.rules import verbs
from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.patterns import words
from memory_core.extraction.rules.people import Roster

MAX_NARRATIVE = 300

# Openers that carry nothing once the sentence stands alone.
_OPENER = re.compile(
    r"^(?:(?:so|and|but|ok|okay|yeah|yes|no|well|um|uh|right|alright|anyway|also|then|sure|"
    r"i think|i guess|i believe|actually|basically|fyi|btw)(?:[,.!:]|\s-)?\s+)+(?=\S)",
    re.IGNORECASE,
)
# Emoji, flags and bullets in front of the words.
_ORNAMENT = re.compile(r"^[^\w\"'“‘(\[#@$€£~+-]+")
_IMPERATIVE = re.compile(rf"^{words(verbs.IMPERATIVE)}(?![\w\-])", re.IGNORECASE)
_TRAILING_MARK = re.compile(r"[\s,;:\-–—]+$")
_EMPTY_PARENS = re.compile(r"\s*[(\[]\s*[,;:]?\s*[)\]]")

# Present tense after "I" gets its ending; verbs whose past looks the same are left out.
_PRESENT = words(
    """need want think like love prefer own lead see know find agree expect take share review work
    write hope believe keep make give use ask look call plan start stop leave own"""
)

# First person to third, in order: contractions first. {n} is the speaker's name.
_FIRST_PERSON = tuple(
    (re.compile(rf"\b{pattern}\b"), replacement)
    for pattern, replacement in (
        (r"[Ii]['’]ll", "{n} will"),
        (r"[Ii]['’]ve", "{n} has"),
        (r"[Ii]['’]m", "{n} is"),
        (r"[Ii]['’]d", "{n} would"),
        (r"I am", "{n} is"),
        (r"I have(?= \w+(?:ed|en|t|ne)\b)", "{n} has"),
        (r"I do(?:n['’]t| not)", "{n} does not"),
        (rf"I ({_PRESENT})", r"{n} \1s"),
        (r"(?<![\w.])I(?![\w.])", "{n}"),
        (r"[Mm]y", "their"),
        (r"[Mm]e", "them"),
        (r"[Mm]yself", "themselves"),
    )
)
_PLURAL = tuple(
    (re.compile(rf"\b{pattern}\b"), replacement)
    for pattern, replacement in (
        (r"[Ww]e['’]ll", "the team will"),
        (r"[Ww]e['’]ve", "the team has"),
        (r"[Ww]e['’]re|[Ww]e are", "the team is"),
        (r"[Ww]e['’]d", "the team would"),
        (r"[Ww]e have", "the team has"),
        (r"[Ww]e were", "the team was"),
        (r"[Ww]e do(?:n['’]t| not)", "the team does not"),
        (
            r"[Ww]e (need|want|think|like|prefer|see|know|find|expect|use|keep|call)",
            r"the team \1s",
        ),
        (r"[Ww]e", "the team"),
        (r"[Oo]urs", "the team's"),
        (r"[Oo]ur", "the team's"),
        (r"[Uu]s", "the team"),
    )
)
# Chats leave the subject out: "will look at it".
_ELIDED = re.compile(r"^(?:will|can) \w", re.IGNORECASE)
_SUBJECT_I = re.compile(r"^[Ii]\b")


def sentence(raw: str, speaker: str | None, spoken: bool, roster: Roster) -> str:
    """What was said, told by somebody else."""
    text = _OPENER.sub("", _ORNAMENT.sub("", plain(raw)))
    text = _ORNAMENT.sub("", text) or plain(raw)
    text = _expand(text, roster)
    if speaker is None:
        return finish(_replace(_PLURAL, _replace(_FIRST_PERSON, text, "the author"), ""))
    if _ELIDED.match(text):
        text = f"I {text[0].lower()}{text[1:]}"
    led = _SUBJECT_I.match(text) is not None
    named = _replace(_FIRST_PERSON, text, speaker)
    mine = named != text
    told = _replace(_PLURAL, named, speaker)
    if spoken and not led and not (mine and told.startswith(speaker)):
        return finish(f"{speaker} said: {told}")
    return finish(told)


def promise(owners: str | None, raw: str, speaker: str | None, roster: Roster) -> str:
    """A task as a sentence: "Ann will send the report", or "To do: send the report"."""
    text = _expand(_EMPTY_PARENS.sub("", plain(raw)).strip(), roster)
    text = _TRAILING_MARK.sub("", text)
    text = _replace(_FIRST_PERSON, text, speaker or "the author")
    if owners is None:
        return finish(f"To do: {text}")
    if text.startswith(owners):
        return finish(text)
    if _IMPERATIVE.match(text):
        return finish(f"{owners} will {_lower(text)}")
    if re.match(r"(?:will|to)\s", text):
        return finish(f"{owners} will {text.split(None, 1)[1]}")
    return finish(f"{owners} is responsible for: {text}")


def prefixed(prefix: str, raw: str, roster: Roster) -> str:
    return finish(f"{prefix}: {_expand(plain(raw), roster)}")


def decision(raw: str, roster: Roster) -> str:
    text = _expand(plain(raw), roster)
    text = _replace(_PLURAL, text, "")
    if _IMPERATIVE.match(text):
        return finish(f"It was decided to {_lower(text)}")
    if re.search(r"\b(?:decided|agreed|decision|resolved|approved|chose)\b", text, re.IGNORECASE):
        return finish(text)
    return finish(f"Decision: {text}")


def finish(text: str) -> str:
    """Capital first, a full stop last, never above the limit."""
    text = _EMPTY_PARENS.sub("", " ".join(text.split()))
    text = _TRAILING_MARK.sub("", text)
    if len(text) > MAX_NARRATIVE:
        cut = text.rfind(" ", 0, MAX_NARRATIVE - 1)
        text = text[: cut if cut > MAX_NARRATIVE // 2 else MAX_NARRATIVE - 1].rstrip(" ,;:") + "…"
    elif text and text[-1] not in ".!?…":
        text = text + "." if len(text) < MAX_NARRATIVE else text[:-1] + "…"
    return text[:1].upper() + text[1:]


def join(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _lower(text: str) -> str:
    first = text.split(None, 1)[0]
    return text if first.isupper() and len(first) > 1 else text[0].lower() + text[1:]


def _replace(table: tuple[tuple[re.Pattern[str], str], ...], text: str, name: str) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement.replace("{n}", name.replace("\\", "")), text)
    return text


def _expand(text: str, roster: Roster) -> str:
    """Initials that the document explains become the name they stand for."""
    for alias, name in roster.aliases.items():
        if alias.isupper() and alias in text:
            text = re.sub(rf"(?<![\w(]){re.escape(alias)}(?![\w)])", name, text)
    return text
