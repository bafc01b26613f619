"""The report of an import: every document, and every skipped file with the reason."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["created", "revised", "unchanged", "skipped", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("created", "revised", "unchanged", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class ReportEntry:
    path: str
    source_id: str | None = None
    artifact_uid: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class ImportReport:
    created: list[ReportEntry] = field(default_factory=list)
    revised: list[ReportEntry] = field(default_factory=list)
    unchanged: list[ReportEntry] = field(default_factory=list)
    skipped: list[ReportEntry] = field(default_factory=list)
    failed: list[ReportEntry] = field(default_factory=list)
    pruned: list[ReportEntry] = field(default_factory=list)
    dry_run: bool = False
    interrupted: bool = False
    # Why it ended early: a store or the provider is missing.
    stopped: str | None = None

    def add(self, outcome: Outcome, entry: ReportEntry) -> None:
        getattr(self, outcome).append(entry)

    def join(self, other: "ImportReport") -> None:
        for outcome in (*OUTCOMES, "pruned"):
            getattr(self, outcome).extend(getattr(other, outcome))
        self.interrupted = self.interrupted or other.interrupted
        self.stopped = self.stopped or other.stopped

    @property
    def counts(self) -> dict[str, int]:
        return {outcome: len(getattr(self, outcome)) for outcome in OUTCOMES}

    def as_json(self) -> dict[str, Any]:
        listed = {
            outcome: [
                {name: value for name, value in asdict(entry).items() if value is not None}
                for entry in getattr(self, outcome)
            ]
            for outcome in (*OUTCOMES, "pruned")
        }
        return {
            **listed,
            "dry_run": self.dry_run,
            "interrupted": self.interrupted,
            "stopped": self.stopped,
        }
