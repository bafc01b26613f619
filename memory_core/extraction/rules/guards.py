"""Guards: sentences that must not become events. Questions, negations, hypotheses, instructions to
a model."""

from memory_core.text import timed_patterns as re

_QUESTION = re.compile(r"\?[\s\"'”’)\]*_🙂😀🙏]{0,6}$")
# Chats often omit the question mark.
_ASKS = re.compile(
    r"\s*(?:(?:so|and|but|or|ok|okay|hey|hi|@\w+),?\s+){0,2}"
    r"(?:(?:should|shall|can|could|would|will|do|does|did|is|are|was|were|has|have|may|might)\s+"
    r"(?:we|you|i|it|they|he|she|anyone|somebody|someone|there|this|that|the)\b|"
    r"(?:what|why|how|who|when|where|which)(?:'s|'re|\s+(?:is|are|was|were|do|does|did|"
    r"should|shall|can|"
    r"could|would|will|has|have|about|if|to|else|exactly|many|much|long))\b)",
    re.IGNORECASE,
)

# Conditions and conjectures. A condition affects the whole sentence, a conjecture only its clause.
_CONDITION = re.compile(
    r"\b(?:if|unless|whether|suppose|supposing|assuming|imagine|hypothetically|in case|"
    r"had we|wish|were to|provided that|once (?:we|it|they|the|this|these|all|a|that)|what if|"
    r"as though|as if|as soon as (?!possible|i\b)|would have|until (?:we|it|they|"
    r"the \w+ (?:is|are|has|have)))\b",
    re.IGNORECASE,
)
_CONJECTURE = re.compile(
    r"\b(?:would|could|might|may|should|ought|maybe|perhaps|possibly|propose[sd]?|proposing|"
    r"proposal is|consider(?:ing)?|thinking (?:of|about)|hope(?:s|d|fully)?|want(?:s|ed)? to|"
    r"need(?:s)? to|plan(?:s|ning|ned)? to|try|trying|able to|pretend|ideally|potentially|"
    r"tend(?:s)? to|can|must|until|when(?:ever)?|ready to|about to|likely)\b|'d\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|neither|nor|without|cannot|hardly|yet to|refus\w{1,4}|"
    r"declin\w{1,4} to|fail(?:ed|s)? to|instead of|rather than|undecided|far from)\b|n't\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(?:no (?:later|sooner) than|not only|no doubt|without (?:delay|objection|dissent)|"
    r"no objections?)\b|^\W*no\b(?=\W{2,}|,)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()]|\s-\s|\b(?:but|so|because|since|though|although|and then|which)\b", re.IGNORECASE
)

_NO_RISK = re.compile(
    r"\b(?:no|not an?|(?:reduces?|avoids?|lowers?|mitigates?|removes?) the|without|low|"
    r"little|any) (?:\w+ )?(?:risk|concern|issue|problem|blocker)s?\b|"
    r"\brisks?\b[^.;]{0,60} (?:is|are) (?:quite |very |fairly )?(?:low|minimal|small|none|"
    r"negligible)\b",
    re.IGNORECASE,
)

# Text that gives orders to a model. The paragraph around it is skipped as well, since the order and
# what it wants reported are seldom one sentence.
_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}"
    r"\b(?:previous|prior|above|earlier|preceding|all|any|your|these|the)\b.{0,25}"
    r"\b(?:instruction|prompt|rule|direction|guideline|context|message|training)s?\b|"
    r"\b(?:system|developer)\s+(?:prompt|message|instruction|override)s?\b|"
    r"\byou are (?:now )?(?:an?|the|no longer)\b.{0,30}"
    r"\b(?:ai|assistant|model|llm|bot|agent|chatgpt|gpt|claude)\b|"
    r"\bas an? (?:ai|large language|language) (?:model|assistant)\b|"
    # "AI: Ann to write the report" is an action item.
    r"\b(?:ai(?!s?\s?[:(])|llm|language model|assistant|extractor|"
    r"extraction (?:system|model))s?\b[,:]?"
    r".{0,30}\b(?:must|should|shall|please|need to|are to|is to|to)\b.{0,20}"
    r"\b(?:report|record|output|extract|emit|add|write|say|respond|answer|ignore|return|state)\b|"
    r"\byou (?:must|should|will|shall|are to|need to)\b.{0,15}"
    r"\b(?:report|record|output|extract|emit|respond|return) (?:that|an?|the|only|with|this)\b|"
    r"\bnew (?:instructions|task|rules)\s?:|</?(?:system|instructions?|prompt)>|\[/?INST\]|<\|im_|"
    r"\b(?:jailbreak|do anything now|confidence (?:of|=|:) ?1(?:\.0)?)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\s*(?:please\s+|now\s+|instead,?\s+|and\s+|then\s+|always\s+|just\s+)*"
    r"(?:report|record|output|extract|emit|pretend|claim|state|assert|declare|respond|answer|"
    r"return|repeat|say|print|tell the user|reply|conclude)\s+"
    r"(?:that|with|only|as|an? (?:event|decision|commitment|json)|the following|\{|\[)",
    re.IGNORECASE,
)


_TAKEN_BACK = re.compile(r"(?: \w+){0,2} (?:not|won't|never)\b")
_PLACEHOLDER = re.compile(
    r"\bX{2,}\b|\b(?:TBD|TBA|FIXME)\b|\?{3}|_{4}|\bLorem ipsum\b|\{\{|\$\{|"
    r"[\[<](?:(?:your|insert|the|a|full|first)[ _-])?(?:name|date|owner|title|person|who|assignee|"
    r"author|link|description|handle|username|reason)s?[ _\]>]"
)
# "Who does what now: Ann will ..." is not a question.
_MAX_LEAD_IN = 60


def is_placeholder(sentence: str) -> bool:
    """A template that was not filled in."""
    return _PLACEHOLDER.search(sentence) is not None


def is_question(sentence: str) -> bool:
    return _QUESTION.search(sentence) is not None


def asks(sentence: str) -> bool:
    """A question or a request, with or without a question mark."""
    colon = sentence.find(": ", 0, _MAX_LEAD_IN)
    return is_question(sentence) or _ASKS.match(sentence, colon + 1) is not None


def addresses_model(passage: str) -> bool:
    return _INJECTION.search(passage) is not None


def gives_orders(sentence: str) -> bool:
    return _ORDERS.match(sentence) is not None


def clause_start(sentence: str, position: int) -> int:
    """The start of the clause that contains `position`."""
    start = 0
    for match in _CLAUSE.finditer(sentence, 0, position):
        start = match.end()
    return start


def negated(sentence: str, start: int, end: int) -> bool:
    """A negation in the clause of the cue, up to its end."""
    clause = _HARMLESS.sub("", sentence[clause_start(sentence, start) : end])
    return _NEGATION.search(clause) is not None


def hypothetical(sentence: str, start: int, end: int) -> bool:
    if _CONDITION.search(sentence, 0, end):
        return True
    return _CONJECTURE.search(sentence, clause_start(sentence, start), end) is not None


def conditional(sentence: str) -> bool:
    """A promise that depends on a condition is only an offer."""
    return _CONDITION.search(sentence) is not None


def denies_risk(sentence: str) -> bool:
    return _NO_RISK.search(sentence) is not None


def taken_back(sentence: str, end: int) -> bool:
    """ "I will personally won't": a negation directly after the verb."""
    return _TAKEN_BACK.match(sentence, end, end + 40) is not None
