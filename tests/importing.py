"""Importing in tests: a folder on disk, one call, and what the memory says afterwards."""

import asyncio
import copy
import os
import subprocess
from pathlib import Path
from typing import Any

from memory_core.artifacts import stored_artifacts
from memory_core.importing import git_history, prune
from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import Import, Options, survey
from memory_core.importing.report import OUTCOMES, ImportReport, ReportEntry
from memory_core.importing.roots import ImportPlace, Registry
from memory_core.runtime import Runtime


class Importer:
    """`mcp-memory ingest` without its terminal, with a data dir of its own."""

    def __init__(self, runtime: Runtime, data_dir: Path) -> None:
        data_dir.mkdir(exist_ok=True)
        self.runtime, self.data_dir = runtime, data_dir
        self.stop = asyncio.Event()
        self.told: list[str] = []
        self.warnings: list[str] = []

    async def __call__(
        self, *paths: Path, source: str | None = None, **options: Any
    ) -> ImportReport:
        report, _ = await self.with_gone(*paths, source=source, **options)
        return report

    async def with_gone(
        self, *paths: Path, source: str | None = None, **options: Any
    ) -> tuple[ImportReport, list[ReportEntry]]:
        """Also what `--prune` would delete."""
        registry = Registry(self.data_dir)
        places = await admit(
            self._runtime(), registry, list(paths), source=source,
            remember=not options.get("dry_run"), tell=self.told.append,
        )  # fmt: skip
        return await self.sync(places, registry, **options)

    async def sync(
        self, places: list[ImportPlace], registry: Registry, **options: Any
    ) -> tuple[ImportReport, list[ReportEntry]]:
        """As a watch does it, with places that may be narrowed."""
        surveyed = survey(places, registry, self.data_dir)
        done = Import(self._runtime(), Options(**options), self.stop)
        report = await done.run(surveyed)
        gone, self.warnings = await prune.gone(self.runtime, registry, surveyed, done)
        return report, gone

    async def git(self, path: Path, **options: Any) -> ImportReport:
        registry = Registry(self.data_dir)
        [place] = await admit(self._runtime(), registry, [path])
        past = git_history.History(self._runtime(), Options(**options), self.stop)
        listed = git_history.versions(
            place, registry, without=self.data_dir, stopped=self.stop.is_set
        )
        return await past.run(place, listed)

    def _runtime(self) -> Runtime:
        """The test session's stores, with what is remembered of files kept apart per test."""
        other = copy.copy(self.runtime)
        other.settings = other.settings.model_copy(update={"data_dir": self.data_dir})
        return other


def counts(report: ImportReport) -> dict[str, int]:
    """Only what there is any of."""
    return {name: number for name, number in report.counts.items() if number}


def names(report: ImportReport, outcome: str) -> list[str]:
    assert outcome in OUTCOMES
    return sorted(Path(entry.path).name for entry in getattr(report, outcome))


async def contents(runtime: Runtime, uid: str) -> list[str]:
    """The texts of all revisions, oldest first."""
    rows = await stored_artifacts.list_revisions(runtime, uid)
    files = []
    for row in rows:
        stored = await stored_artifacts.get_revision(runtime, artifact_id=row.artifact_id)
        assert stored.content is not None
        files.append(stored.content)
    return files


def git(folder: Path, *arguments: str, when: int = 1_700_000_000, author: str = "Alice") -> str:
    """git without a configuration, at a fixed time."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.com",
        "GIT_COMMITTER_NAME": "Committer", "GIT_COMMITTER_EMAIL": "c@example.com",
        "GIT_AUTHOR_DATE": f"@{when} +0000", "GIT_COMMITTER_DATE": f"@{when} +0000",
    }  # fmt: skip
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout
