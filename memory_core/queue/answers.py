"""Which answers of the model a request accepts: whether the model is asked again."""

from enum import StrEnum


class Answers(StrEnum):
    # Cached answers are accepted.
    KNOWN = "known"
    # Only answers given after the request are accepted: the model is asked again.
    NEW = "new"
    # The answers behind the stored events, whatever prompt they are from. If they are gone: KNOWN.
    STORED = "stored"
