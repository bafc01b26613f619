"""Importing a file by its path: only over stdio, and only below INGEST_ROOTS."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_server.tool import write_tool
from memory_core.importing.file_walk import is_own
from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import Import, Options, survey
from memory_core.importing.report import OUTCOMES
from memory_core.importing.roots import Registry
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.runtime import Runtime

_LISTED = 100


class ImportedItem(BaseModel):
    path: str
    source_id: str | None = None
    artifact_uid: str | None = None
    reason: str | None = None


class FileIngested(BaseModel):
    created: list[ImportedItem] = Field(description="path, source_id, artifact_uid, reason")
    revised: list[ImportedItem]
    unchanged: list[ImportedItem]
    skipped: list[ImportedItem]
    failed: list[ImportedItem]
    counts: dict[str, int] = Field(description="Of all; each list has at most 100.")


async def artifact_ingest_file(
    runtime: Runtime,
    path: Annotated[
        str,
        Field(min_length=1, max_length=4000, description="Absolute."),
    ],
) -> FileIngested:
    """Remember a file of the user's: text, Markdown, HTML, mail, mailbox, subtitles, chat
    export, PDF or DOCX, below the folders that the user allowed (INGEST_ROOTS). Again after
    a change, it becomes a new revision. Example:
    artifact_ingest_file(path="/home/me/notes/kickoff.md")
    """
    settings = runtime.settings
    real, root = allowed(path, settings.allowed_roots, without=settings.data_dir)
    await runtime.open()
    registry = Registry(runtime.settings.data_dir)
    places = await admit(runtime, registry, [real], within=root)
    surveyed = await asyncio.to_thread(survey, places, registry, runtime.settings.data_dir)
    options = Options(jobs=1, within=root)
    report = await Import(runtime, options, asyncio.Event()).run(surveyed)
    if report.stopped is not None:
        raise MemoryFault(report.stopped)
    content = report.as_json()
    listed = {outcome: content[outcome][:_LISTED] for outcome in OUTCOMES}
    return FileIngested(**listed, counts=report.counts)


def allowed(
    path: str, roots: tuple[Path, ...], *, without: Path | None = None
) -> tuple[Path, Path]:
    """The file's real path and the allowed folder that contains it. Every other path gets the same
    error, so that the error does not reveal whether a file exists. `without`: our own data dir."""
    if not roots:
        raise InvalidInput(
            "No folder may be read: the user allows some with INGEST_ROOTS. Nothing was imported.",
            details={"parameter": "path"},
        )
    given = Path(path).expanduser()
    try:
        real = given.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        real = None
    for root in roots:
        if given.is_absolute() and real is not None and real.is_relative_to(root):
            if real.is_file() and not is_own(real, without):
                return real, root
            break
    raise InvalidInput(
        f"{path!r} is not a file below the folders that the user allowed: "
        f"{', '.join(map(str, roots))}. Nothing was imported.",
        details={"parameter": "path", "allowed": [str(root) for root in roots]},
    )


TOOLS = (write_tool("Ingest a file", artifact_ingest_file),)
