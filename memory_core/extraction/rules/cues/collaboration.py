"""Collaborations: meetings, discussions, handovers."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, LIKELY, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, GROUP, PERSON, build
from memory_core.extraction.rules.patterns import DEPARTMENT, DEPARTMENTS, NAME, NAMES

_EVENT = (
    r"(?i:call|meeting|sync|workshop|session|retro|retrospective|demo|interview|"
    r"kick-?off|offsite|stand-?up|walkthrough|one-on-one|1:1|roundtable|catch-?up|"
    r"brainstorm(?:ing)?|brown bag)"
)

_TALKED = (
    r"(?i:met|synced|paired|spoke|talked|collaborated|aligned|caught up|sat down|partnered|"
    r"brainstormed|liaised|worked together|consulted)"
)

cue = partial(build, Category.COLLABORATION)

CUES = (
    cue(
        STRONG,
        rf"{ANYONE}{AUX} {_TALKED} (?i:with|on|about|together|through|over|to)\b",
        person=True,
    ),
    cue(
        STRONG,
        rf"(?P<who>{DEPARTMENTS}){AUX} {_TALKED} (?i:with|on|about|together|through|over|to)\b",
    ),
    cue(
        STRONG,
        # "Design met with criticism": the other side must be a person or a team.
        rf"(?P<who>{DEPARTMENT}){AUX} {_TALKED} (?i:with|to) (?:(?i:the) )?"
        rf"(?:{DEPARTMENT}\b|{NAMES}(?= (?i:about|on|over|to)\b))",
    ),
    cue(
        STRONG,
        rf"{ANYONE}{AUX} (?i:handed (?:over|off|it over)|passed on)\b",
        person=True,
    ),
    cue(
        CLEAR,
        rf"{ANYONE}{AUX} (?i:had|held|ran|hosted|organi[sz]ed|attended|joined|"
        rf"facilitated) (?i:a|an|the|our|another|their) (?:[\w\-]+ ){{0,3}}?{_EVENT}\b",
        person=True,
    ),
    cue(
        CLEAR,
        rf"{ANYONE}{AUX} (?i:presented|demoed|showed|walked)(?: (?i:me|"
        rf"us|the (?:team|group)|{NAME}))? (?i:through|the|a|an|her|his|their|our)\b",
        person=True,
    ),
    cue(
        CLEAR,
        rf"(?P<who>{GROUP}|{NAME} (?:and|&) {NAME}){AUX} (?i:discussed|went over|went "
        r"through|reviewed|walked through|debated|worked on|talked through)\b",
        person=True,
    ),
    cue(
        LIKELY,
        rf"{PERSON}{AUX} (?i:discussed|reviewed)\b",
        person=True,
        talk_only=True,
    ),
)
