"""Transcribed speech: fillers, marks of the transcriber, repeated words.

Cues and narratives skip them; quotes keep them.
"""

from memory_core.text import timed_patterns as re

_FILLER = re.compile(
    r"\{[^{}\s]{1,30}\}|\[(?:laughter|laughs|crosstalk|inaudible|pause|unclear|applause|noise)\]|"
    r"(?:u+[mh]+|e+r+m?|a+h+|m+-?h?m+|h+m+|uh-huh|mm-hmm|'?kay|oh)[,.;:]{0,2}",
    re.IGNORECASE,
)
# "I 'll", "do n't": a token that belongs to the previous word, and punctuation alone.
_JOINED = re.compile(r"(?:['’](?:ll|m|re|s|ve|d|t)|n['’]t)\b.{0,3}|[,.;:!?…]{1,3}", re.IGNORECASE)

_WRITTEN_OUT = {"'ll": "will", "'m": "am", "'re": "are", "'ve": "have", "n't": "not"}


def is_filler(token: str) -> bool:
    return _FILLER.fullmatch(token) is not None


def is_joined(token: str) -> bool:
    return _JOINED.fullmatch(token) is not None


def clean(raw: str) -> str:
    """The words as a writer would put them."""
    words_kept: list[str] = []
    filled = False
    for token in raw.split():
        if is_filler(token):
            if token[-1] in ".?!" and words_kept and words_kept[-1][-1] not in ".,;:?!":
                words_kept[-1] += token[-1]
            filled = True
            continue
        if filled and token == ",":
            continue
        if filled and words_kept:
            words_kept[-1] = words_kept[-1].removesuffix(",") or words_kept[-1]
        filled = False
        if words_kept and token.lower() in _WRITTEN_OUT:
            words_kept.append(_WRITTEN_OUT[token.lower()])
        elif words_kept and is_joined(token):
            if not (token[0] in ",.;:" and words_kept[-1][-1] in ",.;:?!"):
                words_kept[-1] += token
        elif not words_kept or token.lower() != words_kept[-1].lower() or not token.isalpha():
            words_kept.append(token)
    return " ".join(words_kept).lstrip(" ,.;:-")
