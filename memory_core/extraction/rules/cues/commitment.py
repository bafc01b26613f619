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

CUES = (
    cue(
        EXPLICIT,
        rf"(?P<who>{NAMES}|I\b|(?i:we)|(?i:she|he))(?: \([^()]{{1,20}}\))?{AUX} "
        r"(?i:agreed to|promised(?: to| that)?|committed to|volunteered to|offered to|"
        r"pledged to|undertook to|takes? (?:on )?the action)\b",
        person=True,
    ),
    cue(
        STRONG,
        r"(?P<who>I|i)(?:'ll|(?i: will| shall| am going to)|'m(?i: going to| "
        rf"gonna)){SOON} (?!(?i:{_SMALL_TALK})\b)(?P<verb>(?i:[a-z]{{2,20}}))\b",
        voiced=True,
        promise=True,
    ),
    cue(
        STRONG,
        r"(?P<who>I|i)(?:'ll|(?i: will))(?i: have [^,.;]{3,100})",
        voiced=True,
        dated=True,
    ),
    cue(
        STRONG,
        rf"{PERSON}(?:{WILL}|(?i: is to| are to)){SOON} (?i:{PROMISE})\b",
        person=True,
    ),
    cue(
        STRONG,
        rf"^(?:\W{{0,3}}){PERSON} (?i:to) (?i:{PROMISE})\b",
        person=True,
        listed=True,
    ),
    cue(
        STRONG,
        rf"(?P<who>{GROUP}){WILL}{SOON} (?i:{DELIVER}|have)\b",
        dated=True,
    ),
    cue(
        CLEAR,
        rf"^(?i:(?:ok|okay|yes|yeah|no|sure|and|then)\W{{1,4}}|\W{{0,3}})(?i:will)(?: "
        rf"(?i:also|then|just))? (?i:{PROMISE})\b",
        voiced=True,
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:deadline|due date|target date|delivery date|code freeze|launch "
        r"date)\b[^,.;]{0,40} (?:is|are|:|remains|stays|set (?:to|for))\b|\b(?:is|are) "
        r"due (?:by|on|at|in|before)?\b)",
        dated=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:must|has to|have to|needs? to|is to|are to|will) be (?:delivered|"
        r"done|finished|completed|signed|ready|shipped|submitted|published|sent|closed|"
        r"in place) (?:by|before|on|no later than)\b)",
        dated=True,
        modal=True,
    ),
    cue(
        LIKELY,
        rf"(?P<who>{GROUP}){WILL}{SOON} (?i:{DELIVER})\b",
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?P<who>I|i) (?i:can|could|am happy to|'m happy to) (?i:take|do|handle|own|"
        r"pick up|write|look into|draft) (?i:this|that|it|the|those|these|care)\b",
        voiced=True,
        talk_only=True,
        modal=True,
    ),
)
