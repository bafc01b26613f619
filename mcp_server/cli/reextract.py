"""`mcp-memory reextract`: ask for a revision's events again, or for all that failed."""

from typing import Any

from rich.markup import escape

from mcp_server.cli import terminal_tables
from mcp_server.cli.command_wording import in_commands
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import counted
from mcp_server.cli.session import OpenMemory, with_memory, with_operator
from memory_core.events import reextraction
from memory_core.events.reextraction import Reextraction
from memory_core.kernel.database import columns
from memory_core.kernel.errors import InvalidInput
from memory_core.queue.answers import Answers


def run(
    document: str | None,
    revision: str | None,
    *,
    failed: bool,
    code: str | None,
    force: bool,
    as_json: bool,
) -> None:
    answers = Answers.NEW if force else Answers.KNOWN
    if failed == (document is not None):
        raise InvalidInput("Name a DOCUMENT, or give --failed for all that failed.")
    if code is not None and not failed:
        raise InvalidInput("--code limits --failed: give both, or name a DOCUMENT alone.")
    if failed:
        number = with_operator(
            lambda memory: reextraction.reextract_failed(memory.runtime, code, answers)
        )
        summary: dict[str, Any] = {"jobs": number}
        if not number and not as_json:
            print("No job has failed" + (f" with {code}." if code else "."))
            return
        message = f"{counted(number, 'failed job')} will be tried again."
    else:
        assert document is not None
        done = with_memory(lambda memory: _ask(memory, document, revision, answers))
        summary = {"message": done.message, "job": columns(done.job)}
        message = (
            f"{in_commands(done.message)}\n{done.job.status}  {done.job.artifact_uid} "
            f"{done.job.revision_id}"
        )
    if as_json:
        print(json_text(summary))
        return
    out = terminal_tables.console()
    out.print(escape(message), soft_wrap=True)
    out.print("[dim]mcp-memory jobs --watch shows how it goes[/]")


async def _ask(
    memory: OpenMemory, document: str, revision: str | None, answers: Answers
) -> Reextraction:
    uid = await memory.document(document)
    return await reextraction.reextract(
        memory.runtime, uid, await memory.revision(uid, revision), answers=answers
    )
