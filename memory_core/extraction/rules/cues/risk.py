"""Risks: problems, blockers, concerns."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, LIKELY, STRONG
from memory_core.extraction.rules.cues.cue import ANYONE, AUX, build

_FAULT = (
    r"(?i:vulnerabilit(?:y|ies)|bugs?|regressions?|outages?|incidents?|data loss|memory leaks?|"
    r"race conditions?|bottlenecks?|problems?|security (?:hole|issue|flaw)s?|defects?|"
    r"failures?|errors?|deadlocks?|crash(?:es)?|risks?|blockers?|flakes?)"
)

cue = partial(build, Category.QUALITY_RISK)

CUES = (
    cue(
        LIKELY,
        r"(?i:\b(?:is|are) (?:still|already|now) (?:missing|late|delayed|unresolved|unsigned))\b",
        talk_only=True,
    ),
    cue(
        EXPLICIT,
        rf"{ANYONE}{AUX}(?:'m|'re| (?i:am|is|are|was|were))(?: (?i:still|also|really|"
        rf"very|a bit|quite|most)){{0,2}} (?i:concerned|worried|afraid|nervous|uneasy|"
        r"anxious) (?i:about|that|by|of)\b",
        person=True,
        modal=True,
    ),
    cue(
        EXPLICIT,
        rf"{ANYONE}{AUX} (?i:raised|expressed|voiced|has|have|had|flagged)(?: "
        rf"\w+){{0,3}}? (?i:concerns?|risks?|worries|worry|reservations)\b",
        person=True,
        modal=True,
    ),
    cue(
        STRONG,
        r"(?i:\b(?:found|discovered|identified|uncovered|hit|caught|spotted|reported|"
        rf"revealed|exposed|introduced|caused)) (?:[\w\-]+ ){{0,4}}?{_FAULT}\b",
    ),
    cue(
        STRONG,
        r"(?i:\b(?:is|are|was|were|been|be|still|currently|remains?|we're|i'm)(?: "
        r"(?:still|currently|completely|all|also|now)){0,2} (?:blocked (?:by|on|until)|"
        r"blocking (?:us|the|me|our)|at risk|behind schedule|overdue|over budget|"
        r"timing out|crashing|a blocker))\b",
        modal=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:risk (?:that|of|is(?! (?:low|small|minimal|not|mitigated)\b)|here "
        r"is)|danger (?:that|of)|the (?:main|biggest|real|one) (?:risk|concern|worry|"
        r"problem|danger) |(?:my|our|one|a|main|biggest|only) (?:[\w\-]+ )?(?:concern|"
        r"worry|fear) (?:is|was|about|that|with|here))\b|(?:'s|my|our)(?: (?:one|main|"
        r"biggest|only))? (?:concern|worry|fear)(?=,|:))",
        modal=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:has|have|had|keeps?|is|are|was|were)(?: \w+){0,2} (?:been down|"
        r"broken(?! (?:through|down|out|into|up))|failing|flaky|unstable|leaking|"
        r"unusable|unresponsive)\b)",
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\bsingle point of failure\b|\bhas been down\b|\b(?:went|is) down (?:for|"
        r"twice|again|since|on)\b|\bwent down\b)",
        modal=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:does not|doesn't|do not|don't|did not|didn't|isn't|is not|aren't|"
        r"stopped)(?: \w+)? (?:work|working|scale|load|render|respond|start|build|"
        r"compile)\b)",
        talk_only=True,
        negative=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:tests?|builds?|jobs?|deploys?|deployment|pipeline|service|server|"
        r"migration|release|login|sandbox|cluster|database|pods?)\b(?: \w+){0,3} "
        r"(?:failed|fails|crashed|crashes|broke|breaks|timed out|times out|leaks|"
        r"leaked|regressed|corrupted|failing))\b",
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:the|one|another|a|main|real|big(?:gest)?) (?:problem|issue|downside|"
        r"drawback|trouble|difficulty|bug) (?:is|was|with|here is|remains)\b)",
        modal=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\bthere (?:is|are|was|were)|there's) (?:[\w\-]+ ){0,3}"
        rf"{_FAULT}"
        r" (?i:with|in|when|if|that|from|on|around)\b",
        modal=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:(?:\bis|\bare|'s) an? (?:real|serious|big|major|huge|known)? ?(?:problem|"
        r"risk|blocker|concern) for\b|\b(?:is|are|were)(?: still| now)? exposed to\b)",
        modal=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:could|can|may|might|will) (?:break|be lost|be intercepted|fall over|"
        r"lose data|leak|corrupt|overwhelm)\b|\bblank page\b)",
        modal=True,
        talk_only=True,
    ),
)
