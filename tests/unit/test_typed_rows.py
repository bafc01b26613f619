"""Rows are dataclasses: a renamed column is seen by mypy, not by a user."""

import ast

from tests.query_calls import EFFECTS, KNOWN, ROWS, UNTYPED, VALUES, calls, named_in, sources

# The package that still reads rows as dictionaries.
WITH_DICTIONARIES = "memory_core.search"
# The database layer, which makes connections whose rows are dictionaries.
DATABASE = "memory_core.kernel.database"
# Modules with connections of their own, which read at most one value, by its position.
OWN_CONNECTIONS = {
    DATABASE,
    "memory_assets.notifications",
    "memory_core.kernel.migrations",
    "memory_core.log.following",
    "memory_core.log.worker",
    "stack.probes",
}
# What rows as dictionaries are made or named by.
_DICTIONARY_NAMES = {"Row", "DictRow", "dict_row"}


def test_rows_are_dictionaries_in_one_package_alone() -> None:
    """No row can be subscripted elsewhere: nothing else makes or names a row that is one."""
    found = {
        module
        for module, tree in sources().items()
        if module != DATABASE and any(_is_of_dictionaries(node) for node in ast.walk(tree))
    }

    assert {module for module in found if not module.startswith(WITH_DICTIONARIES)} == set()


def test_every_query_has_a_type_or_is_only_run() -> None:
    checked = {call.query for call in calls() if call.method in ROWS | VALUES | EFFECTS}
    others = {
        module
        for module in sources()
        if module in OWN_CONNECTIONS
        or module.startswith(WITH_DICTIONARIES)
        or _asks_by_variable(module)
    }

    assert KNOWN - checked - set().union(*map(named_in, others)) == set()


def _asks_by_variable(module: str) -> bool:
    """`for name in names: session.run(name)`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"run", "values"}
        and _is_session(node.func.value)
        and bool(node.args)
        and not isinstance(node.args[-1], ast.Constant)
        for node in ast.walk(sources()[module])
    )


def _is_of_dictionaries(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name in _DICTIONARY_NAMES or (
                isinstance(node, ast.Attribute) and name in UNTYPED and _is_session(node.value)
            )
        case _:
            return False


def _is_session(node: ast.expr) -> bool:
    """`session`, `self._session`, `Session(connection)`."""
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called).rpartition(".")[2].strip("_").lower() == "session"
