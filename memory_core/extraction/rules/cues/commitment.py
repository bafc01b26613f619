"""Commitments: promises, deadlines, deliverables."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules import verbs
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, LIKELY, STRONG
from memory_core.extraction.rules.cues.cue import (
    AUX,
    DELIVER,
    GROUP,
    PERSON,
    PROMISE,
    SOON,
    WILL,
    build,
)
from memory_core.extraction.rules.patterns import NAMES, words

_SMALL_TALK = words(verbs.SMALL_TALK)

cue = partial(build, Category.COMMITMENT)

# fmt: off
CUES = (
    cue(EXPLICIT, "person speech",
        rf"(?P<who>{NAMES}|I\b|(?i:she|he))(?: \([^()]{{1,20}}\))?{AUX} "
        r"(?i:agreed to|promised(?: to| that)?|committed to|volunteered to|offered to|"
        r"pledged to|undertook to|takes? (?:on )?the action|signed up to)\b(?! the\b)"),
    cue(STRONG, "voiced promise speech",
        r"\b(?P<who>I|i)(?:'ll|(?i: will| shall| am going to|'m going to|'m gonna| plan to))"
        rf"{SOON} (?i:be (?=\w+ing\b))?(?!(?i:{_SMALL_TALK})\b)(?P<verb>(?i:[a-z]{{2,20}}))\b"),
    cue(STRONG, "voiced dated speech", r"\b(?P<who>I|i)(?:'ll|(?i: will))(?i: have (?=\w))"),
    cue(STRONG, "person speech",
        rf"{PERSON}(?:{WILL}|(?i: is to| are to)){SOON} (?i:(?:be )?{PROMISE}(?:ing)?)\b"),
    cue(STRONG, "person listed", rf"^(?:\W{{0,3}}){PERSON} (?i:to) (?i:{PROMISE})\b"),
    cue(CLEAR, "dated", rf"(?P<who>{GROUP}){WILL}{SOON} (?i:{DELIVER}|have)\b"),
    cue(CLEAR, "voiced talk_only promise",
        rf"^(?i:(?:ok|okay|yes|yeah|no|sure|and|then)\W{{1,4}}|\W{{0,3}})(?i:will)(?: "
        rf"(?i:also|then|just))? (?P<verb>(?i:{PROMISE}))\b"),
    cue(CLEAR, "dated",
        r"(?i:\b(?:deadline|due date|target date|delivery date|code freeze|launch "
        r"date)\b[^,.;]{0,40} (?:is|are|:|remains|stays|set (?:to|for))\b|\b(?:is|are) "
        r"due (?:by|on|at|in|before)\b)"),
    # What a chair hands out, to somebody the transcript does not name.
    cue(LIKELY, "voiced talk_only",
        r"(?P<who>(?i:you))(?:'ll|'re (?i:going to|gonna)| (?i:will|are (?:going to|gonna)))"
        rf"{SOON} "
        rf"(?i:(?:be )?(?:{PROMISE}|think)(?:ing)?)\b"),
)
# fmt: on
