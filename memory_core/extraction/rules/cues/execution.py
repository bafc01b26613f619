"""Executions: actions taken, things completed."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, DONE, DONE_STRONG, build

_NOW = r"(?: (?:now|just|already|finally|successfully|also))?"

cue = partial(build, Category.EXECUTION)

# fmt: off
CUES = (
    cue(STRONG, "person",
        rf"{ANYONE}{AUX} (?i:{DONE}|set up|rolled out|rolled back|wrapped up|handed in|"
        r"cut over|switched (?:on|off)|put together|kicked "
        rf"off)\b(?! down\b|[^,.;]{{0,20}} that\b)"),
    cue(CLEAR, "talk_only",
        rf"^(?:\W{{0,3}})(?i:(?:just|finally|successfully|already|also)\s)?"
        rf"(?i:{DONE_STRONG}|rolled out|rolled back)\b(?! (?i:by|in|on|with|as|for|when)\b)"),
    cue(CLEAR, "talk_only",
        rf"(?i:\b(?:is|are|has|have|was|were|got){_NOW}(?: been)? (?:now )?(?:{DONE_STRONG}|rolled "
        r"out|rolled back))\b(?! (?i:by default|as|with|when|via|using|through)\b)"),
    cue(CLEAR, "talk_only",
        r"(?i:(?:\bis|\bare|\bwent|'s)(?: now| finally| already)? (?:in production|on "
        r"staging|up and running|feature[- ]complete|code complete|live)\b)"),
    cue(CLEAR, "",
        r"(?i:\b(?:is|are|went)(?: now| finally)? live(?= (?:for|as of|since|today)\b))"),
    cue(CLEAR, "dated",
        rf"(?i:\b(?:was|were|has been|have been) (?:{DONE_STRONG}|rolled out|rolled "
        r"back))\b"),
)
# fmt: on
