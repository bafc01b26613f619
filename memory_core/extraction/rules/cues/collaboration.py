"""Collaborations: meetings, discussions, handovers."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, build
from memory_core.extraction.rules.patterns import DEPARTMENTS

_EVENT = (
    r"(?i:call|meeting|sync|workshop|session|retro|retrospective|demo|interview|"
    r"kick-?off|offsite|stand-?up|walkthrough|one-on-one|1:1|roundtable|catch-?up)"
)
_TALKED = (
    r"(?i:met|synced|paired|spoke|talked|collaborated|aligned|caught up|sat down|partnered|"
    r"brainstormed|liaised|worked together|consulted)"
)

cue = partial(build, Category.COLLABORATION)

# fmt: off
CUES = (
    cue(STRONG, "person", rf"{ANYONE}{AUX} {_TALKED} (?i:with|together)\b"),
    cue(STRONG, "",
        rf"(?P<who>{DEPARTMENTS}){AUX} {_TALKED} (?i:with|on|about|together|through|over|to)\b"),
    cue(STRONG, "person", rf"{ANYONE}{AUX} (?i:handed (?:over|off|it over))\b"),
    cue(CLEAR, "person talk_only",
        rf"{ANYONE}{AUX} (?i:had|held|ran|hosted|organi[sz]ed|attended|joined|"
        rf"facilitated) (?i:a|an|the|our|another|their) (?:[\w\-]+ ){{0,3}}?{_EVENT}\b"),
    cue(CLEAR, "person talk_only",
        rf"{ANYONE}{AUX} (?i:presented|demoed|walked (?:us|the team|everyone) through) "
        r"(?i:the|a|an|her|his|their|our)\b"),
)
# fmt: on
