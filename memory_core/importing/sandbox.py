"""Parsers that a hostile file can make run away work in a separate process.

The process gets the bytes on stdin, has limits on memory and time, cannot write files, and answers
with JSON. If it dies, the file has failed, not the import.
"""

import json
import subprocess
import sys
from typing import Any

from memory_core.importing.item import Skip, Unusable
from memory_core.importing.limits import LIMITS
from memory_core.kernel.child_environment import minimal_environment

_ANSWER_BYTES = 60_000_000
# The name under which pipx installed the program.
DISTRIBUTION = "mcp-proved-memory"
_NEEDS = {"pdf": "pypdf", "docx": "python-docx"}


def parse(kind: str, data: bytes) -> dict[str, Any]:
    """The worker's answer for this file. It blocks, so call it in a thread."""
    with subprocess.Popen(
        command_of(kind),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=minimal_environment(),
    ) as process:
        try:
            answer, complaint = process.communicate(data, timeout=LIMITS.parser_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Unusable(
                f"takes longer than {LIMITS.parser_seconds:.0f} s to read: given up"
            ) from None
        except BaseException:  # Ctrl-C must not leave the process behind
            process.kill()
            raise
    if process.returncode != 0:
        raise Unusable(_reason(process.returncode, complaint))
    return checked_answer(kind, answer)


def command_of(kind: str) -> list[str]:
    return [sys.executable, "-I", "-m", "memory_core.importing.sandbox_worker", kind]


def checked_answer(kind: str, answer: bytes) -> dict[str, Any]:
    if len(answer) > _ANSWER_BYTES:
        raise Unusable("holds more text than is read")
    try:
        content = json.loads(answer)
    except ValueError as error:
        raise Unusable("cannot be read: its parser gave no answer") from error
    if missing := content.get("missing"):
        needs = _NEEDS[kind]
        raise Skip(
            f"{missing} files need {needs}: `pipx inject {DISTRIBUTION} {needs}`, or `pip install "
            f"{needs}` into the environment of mcp-memory"
        )
    if reason := content.get("unusable"):
        problem = Skip if content.get("kind") == Skip.kind else Unusable
        raise problem(str(reason)[:300])
    return dict(content)


def _reason(code: int, complaint: bytes) -> str:
    last = complaint.decode(errors="replace").strip().rsplit("\n", 1)[-1][:200]
    if "MemoryError" in last or code == -9:
        return f"needs more than {LIMITS.parser_memory / 1e6:,.0f} MB of memory to read: given up"
    if code < 0:
        return f"cannot be read: its parser was ended by signal {-code}"
    return f"cannot be read: {last or 'its parser failed'}"
