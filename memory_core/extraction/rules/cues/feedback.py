"""Feedback: what users, customers and reviewers say."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, STRONG
from memory_core.extraction.rules.cues.cue import build

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

cue = partial(build, Category.FEEDBACK)

# fmt: off
CUES = (
    cue(EXPLICIT, "negative speech",
        rf"(?P<aud>{_AUDIENCE})(?: (?i:also|have|has|often|really|mostly|all|both|"
        rf"still|already|us)){{0,2}} {_OPINED}\b"),
    cue(CLEAR, "talk_only speech",
        r"(?i:\b(?:the|my|our|most) [a-z]{3,20}s(?: really| all)? (?:love|hate|complain|"
        r"struggle)\b)"),
    cue(STRONG, "talk_only",
        r"(?i:\b(?:got|received|had|heard|gathered|collected)\b(?: [\w\-]+){0,3} "
        r"(?:feedback|complaints?|praise|compliments?) (?:from|on|about|that|for)\b)"),
    cue(CLEAR, "talk_only",
        r"(?i:\b(?:feedback|complaints?) (?:from [^,.;]{1,60}?(?:was|is|were|:|said|"
        r"shows?|suggests?)|was|were|is that|so far|shows?|says|said)\b)"),
    cue(CLEAR, "voiced talk_only negative speech",
        r"\b(?P<who>I)(?: (?i:really|quite|also|absolutely)){0,2} (?i:hate|dislike|don't like|"
        r"do not like) (?i:the|this|your|how|where|these|those) (?=\w)"),
    cue(CLEAR, "voiced talk_only speech",
        r"(?i:^(?:the|this|your|that)(?: [\w\-]+){1,3} (?:is|are|feels?|looks?) (?:far |much |way "
        r"|just )?too (?:small|big|slow|hard|complicated|expensive|difficult|confusing)\b)"),
    # "Noa Levi, Gan Studio: loves the buttons": notes of who said what.
    cue(CLEAR, "talk_only",
        r"(?i:^[^:.]{3,80}: (?:loves|hates|dislikes|finds|complains|complained|praised|asked for)"
        r" (?=\w))"),
)
# fmt: on
