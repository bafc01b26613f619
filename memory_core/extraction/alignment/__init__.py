"""Evidence alignment: the one place where quotes are aligned with text.

A model's quote is a claim. It becomes evidence only when it is located in the source. What is
stored is the source's own text at its exact offsets (code points), at most 25 words of it.

    source = SourceText(chunk_text)
    match source.locate(quote, hint=(start, end)):
        case Alignment(start, end, text, kind): ...
        case Rejection(reason, detail): ...
"""

from memory_core.extraction.alignment.quote_shortening import MAX_QUOTE_CHARS, shorten
from memory_core.extraction.alignment.source_text import (
    Alignment,
    MatchKind,
    Rejection,
    RejectionReason,
    SourceText,
)

__all__ = [
    "MAX_QUOTE_CHARS",
    "Alignment",
    "MatchKind",
    "Rejection",
    "RejectionReason",
    "SourceText",
    "shorten",
]
