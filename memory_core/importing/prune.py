"""Pruning: artifacts whose file is gone. In doubt, an artifact stays."""

from memory_core.artifacts.deletion import delete_artifact
from memory_core.errors import NotFound
from memory_core.importing import identity
from memory_core.importing.report import Entry
from memory_core.importing.roots import Place
from memory_core.importing.run import Import, Survey
from memory_core.runtime import Runtime


async def gone(
    runtime: Runtime, places: list[Place], found: Survey, done: Import
) -> tuple[list[Entry], list[str]]:
    """What could be deleted, and warnings about what is left alone."""
    entries: dict[str, Entry] = {}
    warnings = []
    seen = done.seen
    present = {_name(one.root.name, one.relative) for one in found.files}
    sure = {_name(*place) for place in done.understood - done.doubtful}
    unknown = {one.name for one in found.passed if one.name}
    scopes = {_name(place.root.name, place.relative) for place in places}
    scopes |= {one.root.name for one in found.files} - {place.root.name for place in places}
    for scope in sorted(scopes):
        if not any(name == scope or name.startswith(f"{scope}/") for name in present):
            warnings.append(
                f"No file was found below {scope!r}: is its disk there? Nothing of it is deleted."
            )
            continue
        for row in await _imported(runtime, scope):
            name = identity.path_of(row["source_url"])
            if row["artifact_uid"] in seen or not _within(name, scope):
                continue
            if _at_or_above(name) & unknown:
                continue
            if name in present and name not in sure:
                continue
            reason = "no longer in its file" if name in present else "its file is gone"
            uid = row["artifact_uid"]
            entries[uid] = Entry(name, row["source_id"], uid, reason)
    return sorted(entries.values(), key=lambda entry: entry.path), warnings


async def delete(runtime: Runtime, entries: list[Entry]) -> list[Entry]:
    deleted = []
    for entry in entries:
        try:
            await delete_artifact(runtime, artifact_uid=entry.artifact_uid)
        except NotFound:  # somebody else was quicker
            continue
        deleted.append(entry)
    return deleted


async def _imported(runtime: Runtime, scope: str) -> list[dict[str, str]]:
    prefix = identity.address(*scope.split("/", 1)) if "/" in scope else identity.address(scope, "")
    async with runtime.database.session() as session:
        return await session.all("list_imported", prefix=prefix)


def _name(root: str, relative: str) -> str:
    return root if relative == "." else f"{root}/{identity.readable(relative)}"


def _at_or_above(name: str) -> set[str]:
    parts = name.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


def _within(name: str, scope: str) -> bool:
    return name == scope or name.startswith(f"{scope}/")
