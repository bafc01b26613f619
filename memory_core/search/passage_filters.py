"""Filters of a passage search, in addition to the words and the meaning of a query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_core.kernel.database import columns
from memory_core.kernel.times import check_period


@dataclass(frozen=True, slots=True)
class Filters:
    artifact_uid: str | None = None
    artifact_type: str | None = None
    source_system: str | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None

    def __post_init__(self) -> None:
        check_period(self.time_from, self.time_to)

    def for_sql(self) -> dict[str, Any]:
        return columns(self)
