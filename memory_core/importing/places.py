"""Places: from the paths that a person gives to roots with names, checked against the memory."""

from pathlib import Path

from memory_core.errors import Conflict
from memory_core.importing import identity
from memory_core.importing.roots import Place, Registry, locate
from memory_core.runtime import Runtime


async def admit(
    runtime: Runtime,
    registry: Registry,
    paths: list[Path],
    *,
    source: str | None = None,
    within: Path | None = None,
    remember: bool = True,
) -> list[Place]:
    """All of them, or a Conflict and nothing is imported."""
    places: list[Place] = []
    for path in paths:
        place = locate(registry, path, source, within)
        known = registry.paths.get(place.root.name)
        same_run = [other.root for other in places if other.root.name == place.root.name]
        if any(root != place.root for root in same_run):
            raise Conflict(
                f"Two of the folders would be named {place.root.name!r}. Nothing was imported: "
                "import them one by one, each with a --source NAME of its own."
            )
        if known is None and source is None and not same_run:
            await _refuse_forgotten(runtime, place)
        places.append(place)
    if remember:
        for place in places:
            registry.remember(place.root)
    return places


async def _refuse_forgotten(runtime: Runtime, place: Place) -> None:
    """The memory has documents of that name, but this data dir does not know where they came
    from: the same folder, or another one? Only a person can tell."""
    name = place.root.name
    async with runtime.database.session() as session:
        row = await session.one("is_imported", prefix=identity.address(name, "") + "/")
    assert row is not None
    if row["found"]:
        raise Conflict(
            f"The memory has documents of a folder named {name!r}, imported with another DATA_DIR. "
            f"Nothing was imported. If {place.root.path} is that folder, say so with "
            f"--source {name}; else give it another name with --source NAME."
        )
