"""Stakeholders: who is involved, in which role."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import PERSON, build

_ROLE = (
    r"(?i:owner|lead|leader|manager|reviewer|approver|sponsor|maintainer|liaison|chair|co-chair|"
    r"facilitator|coordinator|champion|point of contact|poc|contact|scribe|architect|designer|"
    r"engineer|director|head|ceo|cto|cfo|coo|counsel|stakeholder|shepherd|secretary|"
    r"representative|delegate|dri|mentor|analyst)"
)

cue = partial(build, Category.STAKEHOLDER)

# fmt: off
CUES = (
    cue(EXPLICIT, "person",
        r"(?i:added|assigned|appointed|nominated|named|welcomed?|elected|invited|made|"
        rf"confirmed) {PERSON} (?i:as|to be)(?: (?i:the|our|a|an|its|new|"
        rf"[\w\-]+)){{0,4}}? {_ROLE}\b"),
    cue(EXPLICIT, "person",
        rf"{PERSON} (?i:is|are|will be|was) (?i:responsible|accountable|in charge|on "
        r"the hook) (?i:for|of)\b"),
    cue(STRONG, "person",
        rf"{PERSON}(?: (?i:is|are|will be|becomes?|became|was (?:named|appointed|made)|"
        r"acts as|serves as|will act as|will serve as|remains|stays|is now)|'s)(?: "
        rf"(?i:the|our|a|an|your|new|now)){{1,2}}(?: [\w\-]+){{0,3}}? {_ROLE}\b(?! "
        r"(?i:to)\b)"),
    cue(STRONG, "voiced",
        rf"(?P<who>I)(?: am|'m)(?: (?i:the|your|our|now)){{1,2}}(?: [\w\-]+){{0,2}}? "
        rf"{_ROLE}\b"),
    cue(STRONG, "voiced talk_only",
        r"(?P<who>I)(?: am|'m)? (?i:take over|taking over|took over|will take over|own|"
        r"lead) (?i:the|this|that|from)\b"),
    cue(STRONG, "person",
        rf"{PERSON} (?i:joined|joins|is joining|will join|left|is leaving|is stepping "
        r"down|stepped down|will be stepping down|took over|takes over|is taking over|"
        r"will take over|has taken over) (?i:as|the (?:\w+ )?(?:team|project|company|"
        r"group|board)|from|us|our|this|that)\b"),
    cue(CLEAR, "person",
        rf"{PERSON}(?: (?i:now|also|still))? (?i:owns?|leads?|maintains?|chairs?|"
        r"sponsors?|coordinates?|heads?|has a veto)(?: (?i:the|that|this|all|our|it|"
        r"on)\b|\.|$)"),
)
# fmt: on
