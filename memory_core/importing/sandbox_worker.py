"""The process that `sandbox` starts for each risky file: bytes in, JSON out."""

import json
import resource
import sys
from typing import Any

from memory_core.importing.item import Unusable
from memory_core.importing.limits import LIMITS


def main() -> None:
    confine()
    kind = sys.argv[1]
    data = sys.stdin.buffer.read()
    try:
        answer = _parse(kind, data)
    except Unusable as error:
        answer = {"unusable": str(error), "kind": error.kind}
    except ModuleNotFoundError:
        answer = {"missing": kind.upper()}
    sys.stdout.write(json.dumps(answer))


def confine() -> None:
    seconds = int(LIMITS.parser_seconds) + 1
    for limit, value in (
        (resource.RLIMIT_AS, LIMITS.parser_memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):  # macOS cannot limit the address space
            continue


def _parse(kind: str, data: bytes) -> dict[str, Any]:
    if kind == "pdf":
        from memory_core.importing.formats import pdf

        return pdf.extract(data)
    if kind == "docx":
        from memory_core.importing.formats import docx

        return docx.extract(data)
    if kind == "mail":
        from memory_core.importing.formats import mail

        return mail.extract(data)
    if kind in ("json", "subtitles", "users"):
        from memory_core.importing.formats import structured

        return structured.extract(kind, data)
    from memory_core.importing.formats import html

    text, title = html.parse(data.decode())
    return {"text": text, "title": title}


if __name__ == "__main__":
    main()
