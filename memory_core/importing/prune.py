"""Pruning: artifacts whose file is gone. In doubt, an artifact stays."""

from dataclasses import dataclass

from memory_core.artifacts.deletion import delete_artifact
from memory_core.importing import source_ids
from memory_core.importing.file_presence import FilePresence
from memory_core.importing.import_run import Import, Survey
from memory_core.importing.report import ReportEntry
from memory_core.importing.roots import Registry
from memory_core.kernel.errors import NotFound
from memory_core.runtime import Runtime


async def gone(
    runtime: Runtime, registry: Registry, survey: Survey, done: Import
) -> tuple[list[ReportEntry], list[str]]:
    """The artifacts that could be deleted, and warnings about those that stay."""
    entries: dict[str, ReportEntry] = {}
    warnings = []
    seen = done.seen
    look = _Look(registry, survey, done)
    scopes = {source_ids.name_of(place.root.name, place.relative) for place in survey.scopes}
    for scope in sorted(scopes):
        if not look.any_below(scope):
            warnings.append(
                f"No file was found below {scope!r}: is its disk there? Nothing of it is deleted."
            )
            continue
        for row in await _imported(runtime, scope):
            uid = row.artifact_uid
            names = [source_ids.path_of(url) for url in (row.source_url, *row.addresses)]
            if uid in seen or not any(_within(name, scope) for name in names):
                continue
            reasons = [look.gone(name) for name in names]
            if None not in reasons:
                entries[uid] = ReportEntry(names[0], row.source_id, uid, reasons[0])
    return sorted(entries.values(), key=lambda entry: entry.path), warnings


class _Look:
    """What one import saw, and the current state of the disk."""

    def __init__(self, registry: Registry, survey: Survey, done: Import) -> None:
        self._present = {source_ids.name_of(one.root.name, one.relative) for one in survey.files}
        self._sure = {source_ids.name_of(*place) for place in done.understood - done.doubtful}
        self._unknown = {one.name for one in survey.passed if one.name}
        walked = {place.root.name: place.root.path for place in survey.scopes}
        self._disk = FilePresence({**registry.paths, **walked})

    def any_below(self, scope: str) -> bool:
        return any(_within(name, scope) for name in self._present)

    def gone(self, name: str) -> str | None:
        """Why a document that the import did not see is gone, or None if it may still exist."""
        if _at_or_above(name) & self._unknown:
            return None
        if name in self._present:
            return "no longer in its file" if name in self._sure else None
        # The walk should have seen the file, but the disk decides.
        return "its file is gone" if self._disk.at(name) is False else None


async def delete(runtime: Runtime, entries: list[ReportEntry]) -> list[ReportEntry]:
    deleted = []
    for entry in entries:
        try:
            await delete_artifact(runtime, artifact_uid=entry.artifact_uid)
        except NotFound:  # another process deleted it first
            continue
        deleted.append(entry)
    return deleted


@dataclass(frozen=True, slots=True)
class _Imported:
    artifact_uid: str
    source_id: str
    source_url: str
    addresses: list[str]


async def _imported(runtime: Runtime, scope: str) -> list[_Imported]:
    root, _, below = scope.partition("/")
    prefix = source_ids.address(root, below)
    async with runtime.database.session() as session:
        return await session.rows(_Imported, "list_imported", prefix=prefix)


def _at_or_above(name: str) -> set[str]:
    parts = name.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


def _within(name: str, scope: str) -> bool:
    return name == scope or name.startswith(f"{scope}/")
