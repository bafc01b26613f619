"""The cues of each category, in order of precedence.

The order settles ties: what was decided or promised matters more than that it was discussed.
"""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules import verbs
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, LIKELY, STRONG
from memory_core.extraction.rules.cue import (
    ACTOR,
    AUX,
    CHANGED,
    DELIVER,
    DONE,
    DONE_STRONG,
    GROUP,
    PERSON,
    PROMISE,
    SOON,
    WILL,
    Cue,
    build,
)  # fmt: skip
from memory_core.extraction.rules.patterns import DEPARTMENTS, NAME, NAMES, words

_SMALL_TALK = words(verbs.SMALL_TALK)
_ROLE = (
    r"(?i:owner|lead|leader|manager|reviewer|approver|sponsor|maintainer|liaison|chair|co-chair|"
    r"facilitator|coordinator|champion|point of contact|poc|contact|scribe|architect|designer|"
    r"engineer|director|head|ceo|cto|cfo|coo|counsel|stakeholder|shepherd|secretary|"
    r"representative|delegate|dri|mentor|analyst)"
)
_WHAT = (
    r"(?i:deadline|launch|release|meeting|date|scope|price|prices|budget|plan|schedule|"
    r"target|policy|default|limit|timeline|milestone|requirement|pricing)"
)
_MOVED = (
    r"(?:changed|moved|slipped|slips|pushed|postponed|delayed|raised|reduced|lowered|extended|cut|"
    r"increased|rescheduled)"
)
_NOW = r"(?: (?:now|just|already|finally|successfully|also))?"
_FAULT = (
    r"(?i:vulnerabilit(?:y|ies)|bugs?|regressions?|outages?|incidents?|data loss|memory leaks?|"
    r"race conditions?|bottlenecks?|security (?:hole|issue|flaw)s?|defects?|deadlocks?|"
    r"crash(?:es)?|blockers?|flakes?)"
)
_AUDIENCE = (
    r"(?i:(?:the |our |some |several |many |most |two |three |four |five |a few |\d+ (?:of the )?|"
    r"both |all |beta |pilot |new |early ){0,3}(?:of )?(?:the |our |my )?"
    r"(?:users?|customers?|clients?|testers?|reviewers|participants|respondents|interviewees|"
    r"visitors|readers|resellers|partners|shops?|workshops?|consumers|students|attendees|"
    r"(?:the )?people (?:i|we) (?:showed|asked|interviewed)[^,.;]{0,60}|beta testers?|"
    r"(?:two|three|four|five|several|many) people)"
    r"(?: (?:in|from|at) [\w\-]{2,20})?)"
)
_OPINED = (
    r"(?i:reported|said|told (?:us|me)|complained|asked (?:for|whether|why|if)|requested|"
    r"loved|liked|disliked|hated|preferred|praised|suggested|mentioned|felt|"
    r"struggled|thought|noticed|commented|were confused|are confused|are happy|were happy|"
    r"could not find|couldn't find|got lost|didn't understand|found (?:it|that|the|our))"
)
_EVENT = (
    r"(?i:call|meeting|sync|workshop|session|retro|retrospective|demo|interview|"
    r"kick-?off|offsite|stand-?up|walkthrough|one-on-one|1:1|roundtable|catch-?up)"
)
_TALKED = (
    r"(?i:met|synced|paired|spoke|talked|collaborated|aligned|caught up|sat down|partnered|"
    r"brainstormed|liaised|worked together|consulted)"
)

decision = partial(build, Category.DECISION)
commitment = partial(build, Category.COMMITMENT)
stakeholder = partial(build, Category.STAKEHOLDER)
change = partial(build, Category.CHANGE)
execution = partial(build, Category.EXECUTION)
risk = partial(build, Category.QUALITY_RISK)
feedback = partial(build, Category.FEEDBACK)
collaboration = partial(build, Category.COLLABORATION)

# fmt: off
CUES: tuple[Cue, ...] = (
    # Decisions: choices made, directions set.
    decision(EXPLICIT, "speech",
        rf"(?P<who>{GROUP}|I\b)(?:'m|'re| (?i:am|are))? (?i:revers(?:ing|ed)|overturn(?:ing|ed)) "
        r"(?i:the|our|my|that)(?: [\w\-]+){0,2} (?i:decision)\b"),
    decision(STRONG, "",
        r"(?i:\bthis (?:reverses|overturns|replaces) (?:the|our)(?: \w+)? decision\b)"),
    # "Agreed, existing customers keep their price": the agreement follows the comma.
    decision(CLEAR, "voiced talk_only speech", r"^(?i:agreed|decided)[,:] (?=(?:\S+ ){3})"),
    decision(EXPLICIT, "person speech",
        rf"{ACTOR}{AUX} (?i:decided (?!by\b|how\b|what\b|when\b|where\b|which\b|who\b)|"
        r"resolved to|resolved that|opted (?:to|for|not)|elected to|voted to|chosen? (?:to|not)|"
        r"settled on|ruled out|signed off on|ratified|approved)\b"),
    decision(EXPLICIT, "person speech",
        rf"(?P<who>{GROUP}|{NAME}(?:,? (?:and|&) {NAME})+){AUX} (?i:agreed (?:to|that|"
        r"on|not|upon)|rejected|chose)\b(?! with\b)"),
    decision(EXPLICIT, "voiced speech", r"\b(?P<who>I) (?:hereby )?(?:determine|rule) that\b"),
    decision(EXPLICIT, "",
        r"(?i:\b(?:it (?:was|has been|is)|it's been) (?:\w+ly )?(?:decided|agreed|"
        r"resolved) (?:to|that|not)\b)"),
    decision(EXPLICIT, "",
        r"(?i:\b(?:the|our|final) decision (?:is|was|has been)(?: made)?(?: to| that|"
        r":)|\b(?:motion|vote) (?:was )?(?:carried|passed)\b|\bconsensus (?:is|was) "
        r"(?:to|that|on|reached)\b|\bunanimously (?:decided|agreed|approved)\b)"),
    decision(CLEAR, "talk_only speech",
        r"(?P<who>(?i:we|I))(?i:'re|'m| are| am)(?: (?i:definitely|now|all|just)){0,2} "
        r"(?i:going (?:with|for|ahead with)|sticking (?:with|to))\b"),
    decision(CLEAR, "talk_only speech",
        r"(?P<who>(?i:we))(?i:'ll| will)(?: (?i:definitely|just|then|therefore)){0,2} "
        r"(?i:go with|go for|stick with|stick to|settle (?:for|on))\b"),
    decision(STRONG, "talk_only",
        r"^(?i:(?:ok|okay|so|right|alright|fine|then)[.,]? )?(?i:going with|decided "
        r"(?:to|on|not|that|against)|agreed (?:to|on|that|not)|resolved to|settled on)\b"),
    decision(CLEAR, "",
        r"(?i:\b(?:proposal|design|plan|budget|request|rfc|pep|kep|adr|pr|change|draft|"
        r"contract|spec|feature|initiative|motion|agreement)\b[^,.;]{0,40} (?:was|were|has been|"
        r"have been|is now|got) (?:\w+ly )?(?:approved|accepted|rejected|ratified|adopted|"
        r"declined|withdrawn|signed off)\b)"),
    # Commitments: promises, deadlines, deliverables.
    commitment(EXPLICIT, "person speech",
        rf"(?P<who>{NAMES}|I\b|(?i:she|he))(?: \([^()]{{1,20}}\))?{AUX} "
        r"(?i:agreed to|promised(?: to| that)?|committed to|volunteered to|offered to|"
        r"pledged to|undertook to|takes? (?:on )?the action|signed up to)\b(?! the\b)"),
    commitment(STRONG, "voiced promise speech",
        r"\b(?P<who>I|i)(?:'ll|(?i: will| shall| am going to|'m going to|'m gonna| plan to))"
        rf"{SOON} (?i:be (?=\w+ing\b))?(?!(?i:{_SMALL_TALK})\b)(?P<verb>(?i:[a-z]{{2,20}}))\b"),
    commitment(STRONG, "voiced dated speech", r"\b(?P<who>I|i)(?:'ll|(?i: will))(?i: have (?=\w))"),
    commitment(STRONG, "person speech",
        rf"{PERSON}(?:{WILL}|(?i: is to| are to)){SOON} (?i:(?:be )?{PROMISE}(?:ing)?)\b"),
    commitment(STRONG, "person listed", rf"^(?:\W{{0,3}}){PERSON} (?i:to) (?i:{PROMISE})\b"),
    commitment(CLEAR, "dated", rf"(?P<who>{GROUP}){WILL}{SOON} (?i:{DELIVER}|have)\b"),
    commitment(CLEAR, "voiced talk_only promise",
        rf"^(?i:(?:ok|okay|yes|yeah|no|sure|and|then)\W{{1,4}}|\W{{0,3}})(?i:will)(?: "
        rf"(?i:also|then|just))? (?P<verb>(?i:{PROMISE}))\b"),
    commitment(CLEAR, "dated",
        r"(?i:\b(?:deadline|due date|target date|delivery date|code freeze|launch "
        r"date)\b[^,.;]{0,40} (?:is|are|:|remains|stays|set (?:to|for))\b|\b(?:is|are) "
        r"due (?:by|on|at|in|before)\b)"),
    commitment(CLEAR, "voiced talk_only speech modal",
        rf"\bwhat I(?:'d| would)? (?:like|want) you(?: guys| all)? to do is {PROMISE}\b"),
    # Tasks that a chair gives to a person whom the transcript does not name.
    commitment(LIKELY, "voiced talk_only",
        r"(?P<who>(?i:you))(?:'ll|'re (?i:going to|gonna)| (?i:will|are (?:going to|gonna)))"
        rf"{SOON} "
        rf"(?i:(?:be )?(?:{PROMISE}|think)(?:ing)?)\b"),
    # Stakeholders: who is involved, in which role.
    stakeholder(EXPLICIT, "person",
        r"(?i:added|assigned|appointed|nominated|named|welcomed?|elected|invited|made|"
        rf"confirmed) {PERSON} (?i:as|to be)(?: (?i:the|our|a|an|its|new|"
        rf"[\w\-]+)){{0,4}}? {_ROLE}\b"),
    stakeholder(EXPLICIT, "person",
        rf"{PERSON} (?i:is|are|will be|was) (?i:responsible|accountable|in charge|on "
        r"the hook) (?i:for|of)\b"),
    stakeholder(STRONG, "person",
        rf"{PERSON}(?: (?i:is|are|will be|becomes?|became|was (?:named|appointed|made)|"
        r"acts as|serves as|will act as|will serve as|remains|stays|is now)|'s)(?: "
        rf"(?i:the|our|a|an|your|new|now)){{1,2}}(?: [\w\-]+){{0,3}}? {_ROLE}\b(?! "
        r"(?i:to)\b)"),
    stakeholder(STRONG, "voiced",
        rf"(?P<who>I)(?: am|'m)(?: (?i:the|your|our|now)){{1,2}}(?: [\w\-]+){{0,2}}? "
        rf"{_ROLE}\b"),
    stakeholder(STRONG, "voiced talk_only",
        r"(?P<who>I)(?: am|'m)? (?i:take over|taking over|took over|will take over|own|"
        r"lead) (?i:the|this|that|from)\b"),
    stakeholder(STRONG, "person",
        rf"{PERSON} (?i:joined|joins|is joining|will join|left|is leaving|is stepping "
        r"down|stepped down|will be stepping down|took over|takes over|is taking over|"
        r"will take over|has taken over) (?i:as|the (?:\w+ )?(?:team|project|company|"
        r"group|board)|from|us|our|this|that)\b"),
    stakeholder(CLEAR, "person",
        rf"{PERSON}(?: (?i:now|also|still))? (?i:owns?|leads?|maintains?|chairs?|"
        r"sponsors?|coordinates?|heads?|has a veto)(?: (?i:the|that|this|all|our|it|"
        r"on)\b|\.|$)"),
    # Changes: what is different from before.
    change(STRONG, "person talk_only",
        rf"{ACTOR}{AUX} (?i:{CHANGED}|pushed back|pushed out|brought forward|moved) "
        rf"(?!(?i:that|to your|on|forward|in(?:to)? the)\b)[^.;]{{1,80}}? (?i:to|into|"
        r"until|with|instead)\b"),
    change(CLEAR, "talk_only",
        r"^(?:\W{0,3})(?i:(?:pushed back|brought forward) (?=\w)|(?:removed|dropped|"
        r"renamed|replaced|switched|reverted|deprecated|postponed|changed|moved) "
        r"(?!by\b|in\b|on\b)(?=\w))"),
    change(CLEAR, "talk_only speech",
        rf"(?i:(?:^|\b(?:the|our|this) )(?:[\w\-]+ )?{_WHAT}(?: \w+){{0,4}} (?:has |have |was |"
        rf"were |is |are |got |had )?(?:been )?(?:now )?{_MOVED})\b"),
    change(CLEAR, "talk_only",
        r"(?i:\b(?:was|were|has been|have been|got) (?:renamed|replaced|postponed|rescheduled|"
        r"delayed|superseded|reverted|deprecated|retired|moved|changed) "
        r"(?:to|by|until|with|in favou?r|from|as))\b"),
    # Executions: actions taken, things completed.
    execution(STRONG, "person speech",
        rf"{ACTOR}{AUX} (?i:{DONE}|set up|rolled out|rolled back|wrapped up|handed in|"
        r"cut over|switched (?:on|off)|put together|kicked "
        rf"off)\b(?! down\b|[^,.;]{{0,20}} that\b)"),
    execution(CLEAR, "talk_only",
        rf"^(?:\W{{0,3}})(?i:(?:just|finally|successfully|already|also)\s)?"
        rf"(?i:{DONE_STRONG}|rolled out|rolled back):? (?!(?i:by|in|on|with|as|for|when|and|but)\b)"
        r"(?=[\w`'\"(#])"),
    execution(CLEAR, "talk_only",
        rf"(?i:\b(?:(?:has|have|was|were|got){_NOW}(?: been)?|(?:is|are) (?:now|finally|already)|"
        rf"is(?= (?:deployed|merged)\b)) (?:now )?(?:{DONE_STRONG}|rolled "
        r"out|rolled back))\b(?! (?i:by default|as|with|when|via|using|through)\b)"),
    execution(CLEAR, "talk_only",
        r"(?i:(?:\bis|\bare|\bwent|'s)(?: now| finally| already)? (?:in production|on "
        r"staging|up and running|feature[- ]complete|code complete|live)\b)"),
    execution(CLEAR, "",
        r"(?i:\b(?:is|are|went)(?: now| finally)? live(?= (?:for|as of|since|today)\b))"),
    execution(CLEAR, "dated",
        rf"(?i:\b(?:was|were|has been|have been) (?:{DONE_STRONG}|rolled out|rolled "
        r"back))\b"),
    # Risks: problems, blockers, concerns.
    risk(CLEAR, "talk_only",
        r"(?i:\b(?:is|are) (?:still|already|now) (?:missing|late|delayed|unresolved|unsigned))\b"),
    risk(EXPLICIT, "person modal speech",
        rf"{ACTOR}{AUX}(?:'m|'re| (?i:am|is|are|was|were))(?: (?i:still|also|[a-z]+ly|"
        rf"very|a bit|quite|most)){{0,2}} (?i:concerned|worried|afraid|nervous|uneasy) "
        r"(?i:about|that)\b(?! (?i:is|was)\b)"),
    risk(EXPLICIT, "person modal",
        rf"{ACTOR}{AUX} (?i:raised|expressed|voiced|flagged)(?: "
        rf"\w+){{0,3}}? (?i:concerns?|risks?|worries|reservations) (?i:about|that|over|with|on|:)"),
    risk(STRONG, "talk_only",
        r"(?i:\b(?:found|discovered|identified|uncovered|caught|spotted|"
        rf"revealed|exposed|introduced)) (?:[\w\-]+ ){{0,4}}?{_FAULT}\b"),
    risk(STRONG, "talk_only",
        r"(?i:(?<!what )\b(?:is|are|was|were|been|still|currently|remains?|we're|i'm)(?: "
        r"(?:still|currently|completely|all|also|now)){0,2} (?:blocked (?:by|on|until)|"
        r"blocking (?:us|the|me|our)|at risk|behind schedule|overdue|over budget|"
        r"timing out|crashing|a blocker))\b"),
    risk(CLEAR, "modal talk_only",
        r"(?i:\b(?:there (?:is|was) a (?:[\w\-]+ )?(?:risk|danger) (?:that|of)|"
        r"the (?:main|biggest|real|one) (?:risk|concern|worry|problem|danger) (?:is|was|here)|"
        r"(?:my|our|one|main|biggest|only) (?:[\w\-]+ )?(?:concern|worry|fear) (?:is|was|about|"
        r"that|with|here))\b|(?:'s|my|our)(?: (?:one|main|biggest|only))? "
        r"(?:concern|worry|fear)(?=,|:))"),
    risk(CLEAR, "talk_only",
        r"(?i:\b(?:has|have|had|keeps?|is|are)(?: (?:been|still|now|currently|also|always)){0,2} "
        r"(?:been down|broken(?! (?:through|down|out|into|up))|failing|flaky|unstable|leaking|"
        r"unusable|unresponsive)\b(?! to\b))"),
    risk(CLEAR, "talk_only",
        r"(?i:\b(?:having|have|had|has|hitting|seeing) (?:\w+ )?(?:trouble|problems?|issues?) "
        r"(?:with|mounting|getting|booting|installing|running|connecting|building|starting)\b)"),
    risk(CLEAR, "talk_only",
        r"(?i:\b(?:tests?|builds?|jobs?|deploys?|pipelines?|ci)\b(?: \w+){0,2} (?:failing|flaking|"
        r"failed|broken|timing out)\b)"),
    # Feedback: what users, customers and reviewers say.
    feedback(EXPLICIT, "negative speech",
        rf"(?<!single )(?<!no )(?P<aud>{_AUDIENCE})(?: (?i:also|have|has|often|really|mostly|all|"
        rf"both|still|already|us)){{0,2}} {_OPINED}\b"),
    feedback(CLEAR, "talk_only speech",
        r"(?i:\b(?:the|my|our|most) [a-z]{3,20}s(?: really| all)? (?:love|hate|complain|"
        r"struggle)\b)"),
    feedback(STRONG, "talk_only",
        r"(?i:\b(?:got|received|had|heard|gathered|collected)\b(?: [\w\-]+){0,3} "
        r"(?:feedback|complaints?|praise|compliments?) (?:from|on|about|that|for)\b)"),
    feedback(CLEAR, "talk_only",
        r"(?i:\b(?:feedback|complaints?) (?:from [^,.;]{1,60}?(?:was|is|were|:|said|"
        r"shows?|suggests?)|was|were|is that|so far|shows?|says|said)\b)"),
    feedback(CLEAR, "voiced talk_only negative speech",
        r"\b(?P<who>I)(?: (?i:really|quite|also|absolutely)){0,2} (?i:hate|dislike|don't like|"
        r"do not like) (?i:the|this|your|how|where|these|those) (?=\w)"),
    feedback(CLEAR, "voiced talk_only speech",
        r"(?i:^(?:the|this|your|that)(?: [\w\-]+){1,3} (?:is|are|feels?|looks?) (?:far |much |way "
        r"|just )?too (?:small|big|slow|hard|complicated|expensive|difficult|confusing)\b)"),
    # "Noa Levi, Gan Studio: loves the buttons": notes of who said what.
    feedback(CLEAR, "talk_only",
        r"(?i:^[^:.]{3,80}: (?:loves|hates|dislikes|finds|complains|complained|praised|asked for)"
        r" (?=\w))"),
    # Collaborations: meetings, discussions, handovers.
    collaboration(STRONG, "person", rf"{ACTOR}{AUX} {_TALKED} (?i:with|together)\b"),
    collaboration(STRONG, "",
        rf"(?P<who>{DEPARTMENTS}){AUX} {_TALKED} (?i:with|on|about|together|through|over|to)\b"),
    collaboration(STRONG, "person", rf"{ACTOR}{AUX} (?i:handed (?:over|off|it over))\b"),
    collaboration(CLEAR, "person talk_only",
        rf"{ACTOR}{AUX} (?i:had|held|ran|hosted|organi[sz]ed|attended|joined|"
        rf"facilitated) (?i:a|an|the|our|another|their) (?:[\w\-]+ ){{0,3}}?{_EVENT}\b"),
    collaboration(CLEAR, "person talk_only",
        rf"{ACTOR}{AUX} (?i:presented|demoed|walked (?:us|the team|everyone) through) "
        r"(?i:the|a|an|her|his|their|our)\b"),
)
# fmt: on
