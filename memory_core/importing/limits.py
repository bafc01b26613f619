"""How much any one file may cost. Whatever is beyond is reported, never half-imported."""

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, unless they say otherwise. A text may have 10,000,000 characters of four bytes."""

    text_bytes: int = 40 * MEGABYTE
    html_bytes: int = 10 * MEGABYTE
    message_bytes: int = 40 * MEGABYTE
    # Parsed in a process of their own, which may use that much memory and time.
    packed_bytes: int = 100 * MEGABYTE
    unpacked_bytes: int = 200 * MEGABYTE
    parser_memory: int = 1_000 * MEGABYTE
    parser_seconds: float = 60.0
    # A mailbox is read message by message, so that its size does not matter.
    mailbox_messages: int = 1_000_000
    mime_parts: int = 500
    folder_depth: int = 64


LIMITS = Limits()
