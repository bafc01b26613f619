"""Which answers of the model a request accepts: whether the model is asked again."""

from enum import StrEnum


class Answers(StrEnum):
    # Those in the cache will do.
    KNOWN = "known"
    # Only those given since the request: the model is asked again.
    NEW = "new"
    # Those behind the stored events, whatever prompt they are from; where they are gone, KNOWN.
    STORED = "stored"
