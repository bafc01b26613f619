"""What passages are filtered by, beside the words and the meaning of a query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Filters:
    artifact_uid: str | None = None
    artifact_type: str | None = None
    source_system: str | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None

    def for_sql(self) -> dict[str, Any]:
        return {
            "artifact_uid": self.artifact_uid,
            "artifact_type": self.artifact_type,
            "source_system": self.source_system,
            "time_from": self.time_from,
            "time_to": self.time_to,
        }
