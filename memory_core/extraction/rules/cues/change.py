"""Changes: what is different from before."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, CHANGED, CHANGED_STRONG, build

_WHAT = (
    r"(?i:deadline|launch|release|meeting|date|scope|price|prices|budget|plan|schedule|"
    r"target|policy|default|limit|timeline|milestone|requirement|pricing)"
)

cue = partial(build, Category.CHANGE)

CUES = (
    cue(
        STRONG,
        r"(?i:\b(?:moved|taken|pulled|brought|added|dropped) (?:into|to|out of|from) (?:the )?"
        r"(?:scope|release|beta|plan|roadmap|backlog|sprint|milestone))\b",
    ),
    cue(
        EXPLICIT,
        rf"\b(?i:{CHANGED})\b[^.;]{{0,80}}? (?i:from)\b [^.;]{{1,60}}? (?i:to)\b",
    ),
    cue(
        STRONG,
        rf"{ANYONE}{AUX} (?i:{CHANGED}|pushed back|pushed out|brought forward|moved) "
        rf"(?!(?i:that|to your|on|forward|in(?:to)? the)\b)[^.;]{{1,80}}? (?i:to|into|"
        r"until|by|with|instead)\b",
        person=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:moving|changing|switching|pushing|postponing|raising|cutting|"
        r"renaming)\b[^.;]{0,40} from\b [^.;]{1,40} to\b)",
        talk_only=True,
    ),
    cue(
        STRONG,
        r"(?i:\b(?:superseded|replaced|obsoleted) by\b)",
        talk_only=True,
    ),
    cue(
        CLEAR,
        rf"^(?:\W{{0,3}})(?i:(?:{CHANGED}|pushed back|brought forward) (?:the|a|an|our|"
        r"all|its|from|to|\d|[\w\-]+ (?:to|from|with|by|into))\b|(?:removed|dropped|"
        r"renamed|replaced|switched|reverted|deprecated|postponed|changed|moved) "
        r"(?!by\b|in\b|on\b)(?=\w))",
        talk_only=True,
    ),
    cue(
        CLEAR,
        rf"(?i:\b(?:the|our|this)(?: \w+)? {_WHAT}(?: \w+){{0,3}} (?:has |have |was |"
        r"were |is |are |got |had )?(?:been )?(?:now )?(?:changed|moved|slipped|slips|"
        r"pushed|postponed|delayed|raised|reduced|lowered|extended|cut|increased|"
        r"rescheduled))\b",
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:was|were|has been|have been|is now|are now|got) "
        rf"(?:{CHANGED_STRONG}) (?:to|by|until|with|in favou?r|from|as))\b",
        talk_only=True,
    ),
)
