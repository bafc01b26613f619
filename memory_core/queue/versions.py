"""The versions that a deployment extracts with. They are ordered: a deployment works on no job that
asks for a newer version."""

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Versions:
    extractor: str
    model: str
    extract: str  # "2-0a1b2c3d": ordered by the number; the rest identifies the text
    merge: str  # "none" where no model merges

    @property
    def extract_number(self) -> int:
        return number(self.extract)

    @property
    def merge_number(self) -> int:
        return number(self.merge)

    def reach(self, other: "Versions", *, same_model: bool = False) -> bool:
        """Whether this deployment may do work for the other one: the same extractor, and nothing
        older."""
        return (
            self.extractor == other.extractor
            and (self.model == other.model or not same_model)
            and self.extract_number >= other.extract_number
            and self.merge_number >= other.merge_number
        )


def number(version: str) -> int:
    match = _NUMBER.match(version)
    return int(match[0]) if match else 0
