"""From the paths that a person gives to named roots, checked against the memory."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memory_core.importing import moved_roots, source_ids
from memory_core.importing.roots import ImportPlace, Registry, Root, locate, taken
from memory_core.kernel.errors import Conflict
from memory_core.runtime import Runtime

log = logging.getLogger(__name__)


async def admit(
    runtime: Runtime,
    registry: Registry,
    paths: list[Path],
    *,
    source: str | None = None,
    within: Path | None = None,
    remember: bool = True,
    tell: Callable[[str], None] = log.info,
) -> list[ImportPlace]:
    """Admit all paths, or raise Conflict and import nothing. `tell` is called with decisions about
    names that the person may want to change."""
    places: list[ImportPlace] = []
    for path in paths:
        place = locate(registry, path, source, within)
        if source is None and registry.paths.get(place.root.name) != place.root.path:
            root = next(
                (other.root for other in places if other.root.path == place.root.path), None
            )
            root = root or await _name(runtime, registry, place.root, tell)
            place = replace(place, root=root)
        same_name = [other.root for other in places if other.root.name == place.root.name]
        if any(root != place.root for root in same_name):
            raise Conflict(
                f"Two of the folders would be named {place.root.name!r}. Nothing was imported: "
                "import them one by one, each with a --source NAME of its own."
            )
        places.append(place)
    for place in places:
        registry.remember(place.root, save=remember)
    return places


async def _name(
    runtime: Runtime, registry: Registry, root: Root, tell: Callable[[str], None]
) -> Root:
    """The name for a folder that is not registered at this path: the name of a vanished folder with
    the same files, or its own name if that is free."""
    moved, proved = await moved_roots.recognise(runtime, registry, root.path) or (None, False)
    if moved is not None and (proved or moved.name == root.name):
        tell(f"{root.path} holds what {registry.paths[moved.name]} held: it is {moved.name!r}.")
        return moved
    registered = registry.paths.get(root.name)
    if registered is None:
        await _refuse_forgotten(runtime, root)
    elif registered.is_dir():
        raise taken(root.name, registered)
    elif (await moved_roots.likeness(runtime, root.name, root.path)).documents:
        raise Conflict(
            f"Documents named {root.name!r} come from {registered}, which is not there now, and "
            f"most of them are not in {root.path}. Nothing was imported. If it is that folder "
            f"all the same, say so with --source {root.name}; else give it another name with "
            "--source NAME."
        )
    if moved is not None:
        tell(
            f"{root.path} looks like {registry.paths[moved.name]}, which is gone: if it is that "
            f"folder, import it with --source {moved.name}, or its documents are there twice."
        )
    return root


async def _refuse_forgotten(runtime: Runtime, root: Root) -> None:
    """The memory has documents of that name, but this data dir does not know their folder. Only a
    person can say whether it is the same folder."""
    name = root.name
    async with runtime.database.session() as session:
        prefix = source_ids.address(name, "") + "/"
        is_imported = await session.value(bool, "is_imported", prefix=prefix)
    if is_imported:
        raise Conflict(
            f"The memory has documents of a folder named {name!r}, imported with another DATA_DIR. "
            f"Nothing was imported. If {root.path} is that folder, say so with "
            f"--source {name}; else give it another name with --source NAME."
        )
