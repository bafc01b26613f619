"""What Postgres does for a call of the product: each of its statements, with its parameters, is
recorded and explained afterwards."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.bench_events import recorded
from memory_core.kernel import queries

BIG = {
    *("semantic_event", "event_entry", "event_evidence", "event_actor", "actor_name"),
    *("artifact_revision", "revision_entity", "event_jobs", "revision_chunk", "revision_text"),
}


# What the worker asks in the same process, while a test looks at its own statements.
OF_THE_WORKER = {"index_difference", "texts_to_embed", "owners_of_index", "owners_with_entries"}


@dataclass(frozen=True, slots=True)
class Scan:
    query: str
    table: str
    node: str
    indexes: frozenset[str]
    rows: int  # read, whether they then passed a filter or not


class Explained(list[Scan]):
    def indexes(self, table: str, query: str | None = None) -> set[str]:
        scans = [s for s in self if s.table == table and query in (None, s.query)]
        return {index for scan in scans for index in scan.indexes}

    def rows(self, table: str, query: str | None = None) -> int:
        return sum(s.rows for s in self if s.table == table and query in (None, s.query))

    @property
    def counting(self) -> str:
        """The statement that counted: few matches are counted as they are read."""
        asked = {scan.query for scan in self}
        [name] = asked & {"count_events", "ranked_with_total"}
        return name


async def explain(looking: psycopg.Connection, work: Callable[[], Awaitable[Any]]) -> Explained:
    """Do it, then explain each statement it took. A seq scan on a big table is never right."""
    with recorded() as statements:
        await work()
    names = {queries.get(name): name for name in queries.every()}
    explained = Explained()
    with looking.transaction():
        looking.execute(queries.get("tune_connection"))
        for statement, parameters in statements:
            if names[statement].startswith("expected_") or names[statement] in OF_THE_WORKER:
                continue
            prefix = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "
            [(plan,)] = looking.execute(prefix + statement, parameters).fetchall()
            explained += _scans(names[statement], plan[0]["Plan"])
    for scan in explained:
        assert scan.node != "Seq Scan" or scan.table not in BIG, scan
    return explained


def _scans(query: str, node: dict[str, Any]) -> Iterator[Scan]:
    inner = node.get("Plans", [])
    if "Relation Name" in node:
        removed = node.get("Rows Removed by Filter", 0) + node.get(
            "Rows Removed by Index Recheck", 0
        )
        rows = (node["Actual Rows"] + removed) * node["Actual Loops"]
        indexes = {node["Index Name"]} if "Index Name" in node else set()
        indexes |= {name for child in inner for name in _bitmap_indexes(child)}
        yield Scan(query, node["Relation Name"], node["Node Type"], frozenset(indexes), rows)
    for child in inner:
        yield from _scans(query, child)


def _bitmap_indexes(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Bitmap Index Scan":
        yield node["Index Name"]
    for child in node.get("Plans", []):
        yield from _bitmap_indexes(child)
