"""Changes: what is different from before."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, CHANGED, build

_WHAT = (
    r"(?i:deadline|launch|release|meeting|date|scope|price|prices|budget|plan|schedule|"
    r"target|policy|default|limit|timeline|milestone|requirement|pricing)"
)
_MOVED = (
    r"(?:changed|moved|slipped|slips|pushed|postponed|delayed|raised|reduced|lowered|extended|cut|"
    r"increased|rescheduled)"
)

cue = partial(build, Category.CHANGE)

CUES = (
    cue(
        STRONG,
        r"(?i:\b(?:moved|taken|pulled|brought|added|dropped) (?:into|to|out of|from) (?:the )?"
        r"(?:scope|release|beta|plan|roadmap|backlog|sprint|milestone))\b",
        talk_only=True,
    ),
    cue(
        EXPLICIT,
        rf"^(?:\W{{0,3}})(?i:{CHANGED})\b[^.;]{{0,80}}? (?i:from)\b [^.;]{{1,60}}? (?i:to)\b",
        talk_only=True,
    ),
    cue(
        STRONG,
        rf"{ANYONE}{AUX} (?i:{CHANGED}|pushed back|pushed out|brought forward|moved) "
        rf"(?!(?i:that|to your|on|forward|in(?:to)? the)\b)[^.;]{{1,80}}? (?i:to|into|"
        r"until|with|instead)\b",
        person=True,
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"^(?:\W{0,3})(?i:(?:pushed back|brought forward) (?=\w)|(?:removed|dropped|"
        r"renamed|replaced|switched|reverted|deprecated|postponed|changed|moved) "
        r"(?!by\b|in\b|on\b)(?=\w))",
        talk_only=True,
    ),
    cue(
        CLEAR,
        rf"(?i:(?:^|\b(?:the|our|this) )(?:[\w\-]+ )?{_WHAT}(?: \w+){{0,4}} (?:has |have |was |"
        rf"were |is |are |got |had )?(?:been )?(?:now )?{_MOVED})\b",
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:was|were|has been|have been|got) (?:renamed|replaced|postponed|rescheduled|"
        r"delayed|superseded|reverted|deprecated|retired|moved|changed) "
        r"(?:to|by|until|with|in favou?r|from|as))\b",
        talk_only=True,
    ),
)
