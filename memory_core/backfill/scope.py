"""The scope of a backfill: the versions to reach, and a filter on revisions."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from memory_core.artifacts.document import ArtifactType
from memory_core.backfill.rows import Backfill
from memory_core.extraction.model import Category
from memory_core.kernel.times import parse_time
from memory_core.queue.versions import Versions

Words = Annotated[str, Field(min_length=1, max_length=200)]


class Filter(BaseModel):
    """An unset field does not limit. Times are those of the documents, or of their ingest if they
    have none. A category selects revisions that have an event of it now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    category: Category | None = None
    source_system: Words | None = None
    artifact_type: ArtifactType | None = None
    artifact_uid: Words | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None

    @field_validator("time_from", "time_to", mode="before")
    @classmethod
    def _in_utc(cls, value: Any) -> Any:
        return parse_time("time", value) if isinstance(value, str) else value

    def parameters(self) -> dict[str, Any]:
        return {
            "category": self.category and self.category.value,
            "source_system": self.source_system,
            "artifact_type": self.artifact_type and self.artifact_type.value,
            "artifact_uid": self.artifact_uid,
            "time_from": self.time_from,
            "time_to": self.time_to,
        }

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True, slots=True)
class Scope:
    versions: Versions
    filter: Filter = field(default_factory=Filter)
    other_models: bool = False  # include revisions of other extractors or models

    @classmethod
    def of(cls, backfill: Backfill) -> "Scope":
        """The scope of a stored backfill, even if this deployment has other versions now."""
        versions = Versions(
            backfill.extractor,
            backfill.model,
            backfill.extract_version,
            backfill.merge_version,
        )
        return cls(versions, Filter(**backfill.filter), backfill.other_models)

    def parameters(self) -> dict[str, Any]:
        """Parameters for queries that select outdated revisions."""
        return {
            "extractor": self.versions.extractor,
            "model": self.versions.model,
            "extract": self.versions.extract_number,
            "merge": self.versions.merge_number,
            "other_models": self.other_models,
            **self.filter.parameters(),
        }

    def stored(self) -> dict[str, Any]:
        """The scope as columns of a backfill or a trial."""
        return {
            "extractor": self.versions.extractor,
            "model": self.versions.model,
            "extract_version": self.versions.extract,
            "merge_version": self.versions.merge,
        }
