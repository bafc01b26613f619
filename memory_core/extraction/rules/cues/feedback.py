"""Feedback: what users, customers and reviewers say."""

from functools import partial

from memory_core.extraction.model import Category
from memory_core.extraction.rules.confidence import CLEAR, EXPLICIT, LIKELY, STRONG
from memory_core.extraction.rules.cues.cue import AUX, PERSON, build

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
    r"loved?|likes?|liked|"
    r"dislikes?|disliked|hated?|preferred|praised|suggested|mentioned|felt|feel|wanted|"
    r"struggled?|thought|noticed|commented|were confused|are confused|"
    r"are happy|were happy|"
    r"expected|could not find|couldn't find|got lost|didn't understand|found (?:it|that|the|our))"
)

cue = partial(build, Category.FEEDBACK)

CUES = (
    cue(
        EXPLICIT,
        rf"(?P<aud>{_AUDIENCE})(?: (?i:also|have|has|often|really|mostly|all|both|"
        rf"still|already|us)){{0,2}} {_OPINED}\b",
        negative=True,
    ),
    cue(
        STRONG,
        r"(?i:\b(?:got|received|had|heard|gathered|collected|there (?:was|were)|mixed|"
        r"positive|negative|good|great|useful|early|strong)\b(?: [\w\-]+){0,3} "
        r"(?:feedback|complaints?|praise|compliments?)\b)",
    ),
    cue(
        STRONG,
        r"(?i:\b(?:feedback|complaints?) (?:from [^,.;]{1,60}?(?:was|is|were|:|said|"
        r"shows?|suggests?)|was|were|is that|so far|included?|shows?|says|said|"
        r"about)\b)",
        talk_only=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:\d{1,3}(?:\.\d+)? ?%|\w+ percent|most|half|a third|a quarter|two "
        r"thirds) of (?:the |our )?(?:users|customers|respondents|participants|people|"
        r"consumers|testers) (?=\w+ \w)|\b(?:survey|interviews|user (?:study|test|"
        r"testing|research)|poll) (?:showed|shows|found|revealed|suggests|suggested|"
        r"says)\b)",
        talk_only=True,
    ),
    cue(
        CLEAR,
        rf"{PERSON}{AUX} (?i:suggested|recommended|commented|pointed out|complained|"
        r"praised|criticised|criticized|liked|loved|disliked|objected|requested|asked "
        r"for|argued|felt|likes|loves|prefers|preferred) (?!(?i:by|to)\b)(?=\w)",
        person=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?P<who>I)(?: (?i:really|quite|also|do|absolutely)){0,2} (?i:like|love|hate|"
        r"dislike|prefer|don't like|do not like) (?i:the|this|that|your|how|where|what|"
        r"these|those) (?=\w)",
        voiced=True,
        talk_only=True,
        negative=True,
    ),
    cue(
        CLEAR,
        r"(?i:\b(?:the|my|our|most) [a-z]{3,20}s(?: really| all| absolutely)? (?:love|"
        r"hate|like|complain|prefer|struggle)\b)",
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:complain(?:ed|s) (?:that|about)|asked for (?:a|an|the|more)|(?:love|"
        r"hate|like|find|prefer)s the)\b)",
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:is|are|feels?|looks?) (?:far |much |way |just )?too (?:small|big|"
        r"slow|hard|complicated|expensive|difficult|long|short|late|cluttered|"
        r"confusing)\b)",
        voiced=True,
        talk_only=True,
    ),
    cue(
        LIKELY,
        r"(?i:\b(?:i think|i find|i found)\b[^,.;?]{0,60}? (?:is|are|was|were|looks?|"
        r"feels?) (?:too |very |really |quite |a bit |pretty |so |much )?(?:confusing|"
        r"unclear|ugly|slow|clunky|great|good|nice|lovely|hard to|difficult to|easy to|"
        r"annoying|intuitive|complicated|cluttered|better|worse|useful|cool|clear|"
        r"bad)\b)",
        voiced=True,
        talk_only=True,
    ),
)
