"""Limits on what a file may cost. A file beyond them is reported, never partly imported."""

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """In bytes, unless the name says otherwise. A text may have 10,000,000 characters of four
    bytes."""

    text_bytes: int = 40 * MEGABYTE
    html_bytes: int = 10 * MEGABYTE
    message_bytes: int = 40 * MEGABYTE
    # These are parsed in a separate process with limits on memory and time.
    packed_bytes: int = 100 * MEGABYTE
    unpacked_bytes: int = 200 * MEGABYTE
    parser_memory: int = 1_000 * MEGABYTE
    parser_seconds: float = 60.0
    # A mailbox is read message by message, so its size does not matter.
    mailbox_messages: int = 1_000_000
    mime_parts: int = 500
    folder_depth: int = 64


LIMITS = Limits()
