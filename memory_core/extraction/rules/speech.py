"""Speech as it is written down: fillers, marks of the transcriber, words said twice.

Transcripts keep what a reader leaves out. It is skipped for cues and narratives; quotes keep it.
"""

from memory_core.text import timed_patterns as re

_FILLER = re.compile(
    r"\{[^{}\s]{1,30}\}|\[(?:laughter|laughs|crosstalk|inaudible|pause|unclear|applause|noise)\]|"
    r"(?:u+[mh]+|e+r+m?|a+h+|m+-?h?m+|h+m+|uh-huh|mm-hmm|'?kay|oh)[,.;:]{0,2}",
    re.IGNORECASE,
)
# "I 'll", "do n't": a word that belongs to the one before it, and marks that stand alone.
_JOINED = re.compile(r"(?:['’](?:ll|m|re|s|ve|d|t)|n['’]t)\b.{0,3}|[,.;:!?…]{1,3}", re.IGNORECASE)

_WRITTEN_OUT = {"'ll": "will", "'m": "am", "'re": "are", "'ve": "have", "n't": "not"}


def is_filler(token: str) -> bool:
    return _FILLER.fullmatch(token) is not None


def is_joined(token: str) -> bool:
    return _JOINED.fullmatch(token) is not None


def clean(raw: str) -> str:
    """What was said, as a writer would put it."""
    told: list[str] = []
    filled = False
    for token in raw.split():
        if is_filler(token):
            if token[-1] in ".?!" and told and told[-1][-1] not in ".,;:?!":
                told[-1] += token[-1]
            filled = True
            continue
        if filled and token == ",":
            continue
        if filled and told:
            told[-1] = told[-1].removesuffix(",") or told[-1]
        filled = False
        if told and token.lower() in _WRITTEN_OUT:
            told.append(_WRITTEN_OUT[token.lower()])
        elif told and is_joined(token):
            if not (token[0] in ",.;:" and told[-1][-1] in ",.;:?!"):
                told[-1] += token
        elif not told or token.lower() != told[-1].lower() or not token.isalpha():
            told.append(token)
    return " ".join(told).lstrip(" ,.;:-")
