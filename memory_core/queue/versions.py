"""What a deployment extracts with, in versions that can be ordered: a job is worked on by none that
is older than what it asks for."""

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Versions:
    extractor: str
    model: str
    extract: str  # "2-0a1b2c3d": the number orders, the rest tells texts apart
    merge: str  # "none" where nothing is asked

    @property
    def extract_number(self) -> int:
        return number(self.extract)

    @property
    def merge_number(self) -> int:
        return number(self.merge)

    def reach(self, other: "Versions", *, same_model: bool = False) -> bool:
        """Whether work for the other may be done here: the same extractor, and nothing older."""
        return (
            self.extractor == other.extractor
            and (self.model == other.model or not same_model)
            and self.extract_number >= other.extract_number
            and self.merge_number >= other.merge_number
        )


def number(version: str) -> int:
    match = _NUMBER.match(version)
    return int(match[0]) if match else 0
