"""Named queries: every SQL statement of the product is in `sql/queries/*.sql`.

A file belongs to the package whose name it begins with, and only that package uses its statements.
Each statement is under a line `-- name: what_it_is`, with comment lines that say what it is for.
`queries.get("claim_jobs")` is its text. A part that several statements share is a
`-- fragment: name`, included by a line `-- include: name`.
"""

import re
from functools import cache
from importlib import resources

_HEADER = re.compile(r"^-- (name|fragment): (\w+)[ \t]*$", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*-- include: (\w+)[ \t]*$", re.MULTILINE)


def get(name: str) -> bytes:
    """The statement of that name. An unknown name is a programming error."""
    return every()[name]


@cache
def every() -> dict[str, bytes]:
    """All statements by their names."""
    statements: dict[str, str] = {}
    fragments: dict[str, str] = {}
    for file in sorted(resources.files("sql").joinpath("queries").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        for kind, name, text in parse(file.read_text(encoding="utf-8")):
            if name in statements or name in fragments:
                raise ValueError(f"query {name!r} is defined twice; the second is in {file.name}")
            (statements if kind == "name" else fragments)[name] = text
    return {name: _complete(text, fragments).encode() for name, text in statements.items()}


def _complete(text: str, fragments: dict[str, str]) -> str:
    """The text with its fragments, and their fragments, included."""
    return _INCLUDE.sub(lambda match: _complete(fragments[match[1]], fragments), text)


def parse(text: str) -> list[tuple[str, str, str]]:
    """Kind, name and text of each part of a file."""
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    return [
        (header[1], header[2], text[header.end() : end].strip().rstrip(";"))
        for header, end in zip(headers, ends, strict=True)
    ]
