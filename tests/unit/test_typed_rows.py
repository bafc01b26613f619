"""Rows are dataclasses: a renamed column is seen by mypy, not by a user."""

import ast
from collections.abc import Callable

from tests.query_calls import EFFECTS, KNOWN, ROWS, VALUES, calls, named_in, sources

# Modules with connections of their own, which read at most one value, by its position.
OWN_CONNECTIONS = {
    "memory_assets.postgres_notifications",
    "memory_core.kernel.database",
    "memory_core.kernel.migrations",
    "memory_core.log.follower",
    "memory_core.log.worker",
    "stack.probes",
}
# Modules with a function that is given the name of a query.
BY_PARAMETER = {
    "memory_core.index.consistency",
    "memory_core.index.writer",
    "memory_core.search.event_matching",
}
# Modules that run statements of their own on a session's connection, and read nothing.
OWN_STATEMENTS = {"memory_core.upkeep.vacuum"}


def test_every_query_has_a_type_or_is_only_run() -> None:
    checked = {call.query for call in calls() if call.method in ROWS | VALUES | EFFECTS}
    others = set().union(*map(named_in, OWN_CONNECTIONS | BY_PARAMETER))

    assert KNOWN - checked - others == set()


def test_no_row_is_a_dictionary() -> None:
    """Nothing but a session's connection would give one, and none reads from that."""
    naming = {module for module in sources() if _has(module, _is_dict_row)}
    executing = {module for module in sources() if _has(module, _is_executed_by_hand)}

    assert naming == {"memory_core.kernel.database"}
    assert executing == OWN_STATEMENTS


def _has(module: str, is_it: Callable[[ast.AST], bool]) -> bool:
    return any(is_it(node) for node in ast.walk(sources()[module]))


def _is_dict_row(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.alias) and "dict_row" in ast.unparse(node)


def _is_executed_by_hand(node: ast.AST) -> bool:
    """`session.connection.execute(…)`."""
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith(
        "session.connection.execute"
    )
