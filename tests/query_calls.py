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
# What gives dictionaries.
UNTYPED = frozenset({"all", "one"})


@dataclass(frozen=True, slots=True)
class Call:
    """A named query as the code asks for it."""

    module: str
    method: str
    kind: str | None  # the class of its rows or values
    query: str
    given: dict[str, ast.expr]
    annotations: dict[str, str]  # of the parameters of the function that asks
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
        for call in _calls(module, tree, annotations={})
        if call.query in KNOWN
    )


def named_in(module: str) -> set[str]:
    """The queries whose names stand in a module, as arguments or in lists of them."""
    texts = (node.value for node in ast.walk(sources()[module]) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str)} & KNOWN


def _name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def _calls(module: str, node: ast.AST, annotations: dict[str, str]) -> Iterator[Call]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        told = {one.arg: ast.unparse(one.annotation) for one in arguments if one.annotation}
        # What is assigned in the function may have another type than it came with.
        changed = {
            name.id
            for name in ast.walk(node)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        annotations = {**annotations, **told}
        annotations = {name: told for name, told in annotations.items() if name not in changed}
    elif isinstance(node, ast.Call) and (call := _call(module, node, annotations)) is not None:
        yield call
    for child in ast.iter_child_nodes(node):
        yield from _calls(module, child, annotations)


def _call(module: str, node: ast.Call, annotations: dict[str, str]) -> Call | None:
    match node:
        case ast.Call(
            func=ast.Attribute(attr=name),
            args=[ast.Name(id=kind), ast.Constant(value=str(query))],
        ) if name.strip("_") in ROWS | VALUES:
            method = name.strip("_")  # of a session, or of a class that has one
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(query))]) if (
            method in EFFECTS | UNTYPED
        ):
            kind = ""
        case _:
            return None
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    return Call(
        module, method, kind or None, query, given, annotations, len(given) == len(node.keywords)
    )
