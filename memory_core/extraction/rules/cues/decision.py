"""Decisions: choices made, directions set."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, GROUP, build
from memory_core.extraction.rules.patterns import NAME

cue = partial(build, Category.DECISION)

# fmt: off
CUES = (
    cue(EXPLICIT, "speech",
        rf"(?P<who>{GROUP}|I\b)(?:'m|'re| (?i:am|are))? (?i:revers(?:ing|ed)|overturn(?:ing|ed)) "
        r"(?i:the|our|my|that)(?: [\w\-]+){0,2} (?i:decision)\b"),
    cue(STRONG, "", r"(?i:\bthis (?:reverses|overturns|replaces) (?:the|our)(?: \w+)? decision\b)"),
    # "Agreed, existing customers keep their price": what was agreed stands behind the comma.
    cue(CLEAR, "voiced talk_only speech", r"^(?i:agreed|decided)[,:] (?=(?:\S+ ){3})"),
    cue(EXPLICIT, "person speech",
        rf"{ANYONE}{AUX} (?i:decided (?!by\b|how\b|what\b|when\b|where\b|which\b|who\b)|"
        r"resolved to|resolved that|opted (?:to|for|not)|elected to|voted to|chosen? (?:to|not)|"
        r"settled on|ruled out|signed off on|ratified|approved)\b"),
    cue(EXPLICIT, "person speech",
        rf"(?P<who>{GROUP}|{NAME}(?:,? (?:and|&) {NAME})+){AUX} (?i:agreed (?:to|that|"
        r"on|not|upon)|rejected|chose)\b(?! with\b)"),
    cue(EXPLICIT, "",
        r"(?i:\b(?:it (?:was|has been|is)|it's been) (?:\w+ly )?(?:decided|agreed|"
        r"resolved) (?:to|that|not)\b)"),
    cue(EXPLICIT, "",
        r"(?i:\b(?:the|our|final) decision (?:is|was|has been)(?: made)?(?: to| that|"
        r":)|\b(?:motion|vote) (?:was )?(?:carried|passed)\b|\bconsensus (?:is|was) "
        r"(?:to|that|on|reached)\b|\bunanimously (?:decided|agreed|approved)\b)"),
    cue(STRONG, "talk_only",
        r"(?P<who>(?i:we|I))(?i:'re|'m| are| am)(?: (?i:definitely|now|all|just)){0,2} "
        r"(?i:going (?:with|for|ahead with)|sticking (?:with|to))\b"),
    cue(STRONG, "talk_only",
        r"(?P<who>(?i:we))(?i:'ll| will)(?: (?i:definitely|just|then|therefore)){0,2} "
        r"(?i:go with|go for|stick with|stick to|settle (?:for|on))\b"),
    cue(STRONG, "talk_only",
        r"^(?i:(?:ok|okay|so|right|alright|fine|then)[.,]? )?(?i:going with|decided "
        r"(?:to|on|not|that|against)|agreed (?:to|on|that|not)|resolved to|settled on)\b"),
    cue(CLEAR, "",
        r"(?i:\b(?:proposal|design|plan|budget|request|rfc|pep|kep|adr|pr|change|draft|"
        r"contract|spec|feature|initiative|motion|agreement)\b[^,.;]{0,40} (?:was|were|has been|"
        r"have been|is now|got) (?:\w+ly )?(?:approved|accepted|rejected|ratified|adopted|"
        r"declined|withdrawn|signed off)\b)"),
)
# fmt: on
