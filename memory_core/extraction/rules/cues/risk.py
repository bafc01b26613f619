"""Risks: problems, blockers, concerns."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, build

_FAULT = (
    r"(?i:vulnerabilit(?:y|ies)|bugs?|regressions?|outages?|incidents?|data loss|memory leaks?|"
    r"race conditions?|bottlenecks?|security (?:hole|issue|flaw)s?|defects?|deadlocks?|"
    r"crash(?:es)?|blockers?|flakes?)"
)

cue = partial(build, Category.QUALITY_RISK)

# fmt: off
CUES = (
    cue(CLEAR, "talk_only",
        r"(?i:\b(?:is|are) (?:still|already|now) (?:missing|late|delayed|unresolved|unsigned))\b"),
    cue(EXPLICIT, "person modal speech",
        rf"{ANYONE}{AUX}(?:'m|'re| (?i:am|is|are|was|were))(?: (?i:still|also|really|"
        rf"very|a bit|quite|most)){{0,2}} (?i:concerned|worried|afraid|nervous|uneasy) "
        r"(?i:about|that)\b(?! (?i:is|was)\b)"),
    cue(EXPLICIT, "person modal",
        rf"{ANYONE}{AUX} (?i:raised|expressed|voiced|flagged)(?: "
        rf"\w+){{0,3}}? (?i:concerns?|risks?|worries|reservations) (?i:about|that|over|with|on|:)"),
    cue(STRONG, "talk_only",
        r"(?i:\b(?:found|discovered|identified|uncovered|caught|spotted|"
        rf"revealed|exposed|introduced)) (?:[\w\-]+ ){{0,4}}?{_FAULT}\b"),
    cue(STRONG, "talk_only",
        r"(?i:(?<!what )\b(?:is|are|was|were|been|still|currently|remains?|we're|i'm)(?: "
        r"(?:still|currently|completely|all|also|now)){0,2} (?:blocked (?:by|on|until)|"
        r"blocking (?:us|the|me|our)|at risk|behind schedule|overdue|over budget|"
        r"timing out|crashing|a blocker))\b"),
    cue(CLEAR, "modal talk_only",
        r"(?i:\b(?:there (?:is|was) a (?:[\w\-]+ )?(?:risk|danger) (?:that|of)|"
        r"the (?:main|biggest|real|one) (?:risk|concern|worry|problem|danger) (?:is|was|here)|"
        r"(?:my|our|one|main|biggest|only) (?:[\w\-]+ )?(?:concern|worry|fear) (?:is|was|about|"
        r"that|with|here))\b|(?:'s|my|our)(?: (?:one|main|biggest|only))? "
        r"(?:concern|worry|fear)(?=,|:))"),
    cue(CLEAR, "talk_only",
        r"(?i:\b(?:has|have|had|keeps?|is|are)(?: (?:been|still|now|currently|also|always)){0,2} "
        r"(?:been down|broken(?! (?:through|down|out|into|up))|failing|flaky|unstable|leaking|"
        r"unusable|unresponsive)\b(?! to\b))"),
    cue(CLEAR, "talk_only",
        r"(?i:\b(?:having|have|had|has|hitting|seeing) (?:\w+ )?(?:trouble|problems?|issues?) "
        r"(?:with|mounting|getting|booting|installing|running|connecting|building|starting)\b)"),
)
# fmt: on
