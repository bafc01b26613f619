"""Decisions: choices made, directions set."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules import verbs
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, LIKELY, STRONG, WEAK
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, GROUP, SOON, build
from memory_core.extraction.rules.patterns import NAME, words

_CHOOSE = words(verbs.CHOOSE)

cue = partial(build, Category.DECISION)

CUES = (
    cue(
        EXPLICIT,
        rf"(?P<who>{GROUP}|I\b)(?:'m|'re| (?i:am|are))? (?i:revers(?:ing|ed)|overturn(?:ing|ed)) "
        r"(?i:the|our|my|that)(?: [\w\-]+){0,2} (?i:decision)\b",
    ),
    cue(STRONG, r"(?i:\bthis (?:reverses|overturns|replaces) (?:the|our)(?: \w+)? decision\b)"),
    # "Agreed, existing customers keep their price": what was agreed stands behind the comma.
    cue(CLEAR, r"^(?i:agreed|decided)[,:] (?=(?:\S+ ){3})", voiced=True, talk_only=True),
    cue(
        EXPLICIT,
        rf"{ANYONE}{AUX} (?i:decided|resolved to|resolved that|opted|elected to|voted "
        r"to|chose(?:n)? (?:to|not)|concluded that|settled on|ruled out|signed off|"
        r"ratified|approved|rejected)\b",
        person=True,
    ),
    cue(
        EXPLICIT,
        rf"(?P<who>{GROUP}|{NAME}(?:,? (?:and|&) {NAME})+){AUX} (?i:agreed (?:to|that|"
        r"on|not|upon)|chose|accepted the|preferred)\b",
        person=True,
    ),
    cue(
        EXPLICIT,
        r"(?i:\b(?:it (?:was|has been|is)|it's been) (?:\w+ly )?(?:decided|agreed|"
        r"resolved) (?:to|that|not)\b)",
    ),
    cue(
        EXPLICIT,
        r"(?i:\b(?:the|our|final) decision (?:is|was|has been)(?: made)?(?: to| that|"
        r":)|\b(?:motion|vote) (?:was )?(?:carried|passed)\b|\bconsensus (?:is|was) "
        r"(?:to|that|on|reached)\b|\bunanimously (?:decided|agreed|approved)\b)",
    ),
    cue(
        STRONG,
        r"(?P<who>(?i:we|I))(?i:'re|'m| are| am)(?: (?i:definitely|now|all|just)){0,2} "
        r"(?i:going (?:with|for|ahead with)|sticking (?:with|to))\b",
    ),
    cue(
        STRONG,
        r"(?P<who>(?i:we))(?i:'ll| will)(?: (?i:definitely|just|then|therefore)){0,2} "
        r"(?i:go with|go for|stick with|stick to|settle (?:for|on))\b",
    ),
    cue(
        STRONG,
        rf"(?P<who>(?i:we)|{NAME}){AUX} (?i:went with|settled on|picked)\b",
        person=True,
    ),
    cue(
        CLEAR,
        r"^(?i:(?:ok|okay|so|right|alright|fine|then)[.,]? )?(?i:going with|decided "
        r"(?:to|on|not|that|against)|agreed (?:to|on|that|not)|approved|resolved to|"
        r"settled on)\b",
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:proposal|design|plan|budget|request|rfc|pep|kep|adr|pr|change|draft|"
        r"contract|spec|feature|initiative)\b[^,.;]{0,40} (?:was|were|has been|have "
        r"been|is now|got) (?:\w+ly )?(?:approved|accepted|rejected|ratified|adopted|"
        r"declined|withdrawn|merged into the plan|signed off)\b)",
    ),
    cue(
        LIKELY,
        rf"(?P<who>(?i:we))(?:(?i:'ll| will|'re going to| are going to)){SOON} "
        rf"(?i:{_CHOOSE})\b",
        talk_only=True,
    ),
    cue(
        WEAK,
        r"(?i:\blet's (?:go with|stick with|use|keep|drop|settle on)\b)",
        talk_only=True,
        voiced=True,
    ),
)
