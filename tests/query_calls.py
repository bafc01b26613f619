"""Which named queries production code asks for, read from its source."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memory_core.kernel import queries
from tests.documented import ROOT

PACKAGES = ("memory_core", "memory_assets", "mcp_server", "stack")
KNOWN = frozenset(
    name
    for file in (ROOT / "sql" / "queries").glob("*.sql")
    for kind, name, _ in queries.parse(file.read_text(encoding="utf-8"))
    if kind == "name"
)
# Methods of a session that give dataclasses, and those that give the values of one column.
ROWS = frozenset({"rows", "row", "only", "pages"})
VALUES = frozenset({"value", "maybe", "values"})
# A statement whose result is not read, and an explained one.
EFFECTS = frozenset({"run", "expect"})


@dataclass(frozen=True, slots=True)
class Call:
    """A named query as the code asks for it."""

    module: str
    method: str
    kind: str | None  # the class of its rows or values
    query: str
    given: dict[str, ast.expr]
    annotations: dict[str, str]  # of the parameters of the function that asks
    is_chosen: bool  # from several names that stand in the function
    is_complete: bool  # no `**parameters`

    def __str__(self) -> str:
        return f"{self.module}: {self.query}"

    @property
    def type(self) -> Any:
        """The class of its rows or values."""
        assert self.kind is not None
        builtins = {"int": int, "str": str, "bool": bool, "float": float, "dict": dict}
        return builtins.get(self.kind) or getattr(importlib.import_module(self.module), self.kind)


@cache
def sources() -> dict[str, ast.Module]:
    """Production modules by name."""
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return {_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in files}


@cache
def calls() -> tuple[Call, ...]:
    return tuple(
        call
        for module, tree in sources().items()
        for call in _calls(module, tree, Scope({}, frozenset()))
        if call.query in KNOWN
    )


def named_in(module: str) -> set[str]:
    """The queries whose names stand in a module, as arguments or in lists of them."""
    texts = (node.value for node in ast.walk(sources()[module]) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str)} & KNOWN


def _name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a function says of the calls in it."""

    annotations: dict[str, str]
    # Queries whose names stand in it other than in a call: `query = "few" if … else "many"`.
    chosen: frozenset[str]


def _calls(module: str, node: ast.AST, scope: Scope) -> Iterator[Call]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        scope = _scope(node, scope)
    elif isinstance(node, ast.Call):
        yield from _asked(module, node, scope)
    for child in ast.iter_child_nodes(node):
        yield from _calls(module, child, scope)


def _scope(node: ast.FunctionDef | ast.AsyncFunctionDef, outer: Scope) -> Scope:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    own = {one.arg: ast.unparse(one.annotation) for one in arguments if one.annotation}
    within = list(ast.walk(node))
    # What is assigned in the function may have another type than it came with.
    assigned = {
        name.id for name in within if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    annotations = {**outer.annotations, **own}
    direct = {
        id(argument) for call in within if isinstance(call, ast.Call) for argument in call.args
    }
    chosen = {
        text.value
        for text in within
        if isinstance(text, ast.Constant) and id(text) not in direct and text.value in KNOWN
    }
    return Scope(
        {name: told for name, told in annotations.items() if name not in assigned},
        frozenset(str(query) for query in chosen),
    )


def _asked(module: str, node: ast.Call, scope: Scope) -> Iterator[Call]:
    """The calls of a session, or of a class that has one: one for each query that it may be."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=[ast.Name(id=kind), query]) if (
            name.strip("_") in ROWS | VALUES
        ):
            method = name.strip("_")
        case ast.Call(func=ast.Attribute(attr=method), args=[query]) if method in EFFECTS:
            kind = ""
        case _:
            return
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    for one in [query.value] if isinstance(query, ast.Constant) else sorted(scope.chosen):
        yield Call(
            module=module,
            method=method,
            kind=kind or None,
            query=str(one),
            given=given,
            annotations=scope.annotations,
            is_chosen=not isinstance(query, ast.Constant),
            is_complete=len(given) == len(node.keywords),
        )
