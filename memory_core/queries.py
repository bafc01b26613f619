"""Named queries: every SQL statement of the product lives in `sql/queries/*.sql`.

A file holds any number of statements, each under a line `-- name: what_it_is`, with comment
lines that say what it is for. `queries.get("claim_jobs")` is its text.
"""

from functools import cache
from importlib import resources

_MARKER = "-- name:"


def get(name: str) -> bytes:
    """The statement of that name. An unknown name is a programming error."""
    return _all()[name]


@cache
def _all() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for file in sorted(resources.files("sql").joinpath("queries").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        for name, statement in _parse(file.read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"query {name!r} is defined twice; the second is in {file.name}")
            found[name] = statement.encode()
    return found


def _parse(text: str) -> list[tuple[str, str]]:
    queries = []
    for block in text.split(_MARKER)[1:]:
        name, _, statement = block.partition("\n")
        queries.append((name.strip(), statement.strip().rstrip(";")))
    return queries
