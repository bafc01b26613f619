"""Changes: what is different from before."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, STRONG
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

# fmt: off
CUES = (
    cue(STRONG, "person talk_only",
        rf"{ANYONE}{AUX} (?i:{CHANGED}|pushed back|pushed out|brought forward|moved) "
        rf"(?!(?i:that|to your|on|forward|in(?:to)? the)\b)[^.;]{{1,80}}? (?i:to|into|"
        r"until|with|instead)\b"),
    cue(CLEAR, "talk_only",
        r"^(?:\W{0,3})(?i:(?:pushed back|brought forward) (?=\w)|(?:removed|dropped|"
        r"renamed|replaced|switched|reverted|deprecated|postponed|changed|moved) "
        r"(?!by\b|in\b|on\b)(?=\w))"),
    cue(CLEAR, "talk_only",
        rf"(?i:(?:^|\b(?:the|our|this) )(?:[\w\-]+ )?{_WHAT}(?: \w+){{0,4}} (?:has |have |was |"
        rf"were |is |are |got |had )?(?:been )?(?:now )?{_MOVED})\b"),
    cue(CLEAR, "talk_only",
        r"(?i:\b(?:was|were|has been|have been|got) (?:renamed|replaced|postponed|rescheduled|"
        r"delayed|superseded|reverted|deprecated|retired|moved|changed) "
        r"(?:to|by|until|with|in favou?r|from|as))\b"),
)
# fmt: on
