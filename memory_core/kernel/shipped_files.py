"""Data files of the program: in the checkout's root, or inside a wheel."""

from pathlib import Path

from memory_core.kernel.errors import StackFault

_PACKAGE = Path(__file__).resolve().parent.parent
# `share` exists only in a wheel, which has the checkout's files there (see pyproject.toml).
_PLACES = (_PACKAGE / "share", _PACKAGE.parent)


def shipped(name: str) -> Path:
    for place in _PLACES:
        if (place / name).exists():
            return place / name
    raise StackFault(f"{name} is missing from this installation of the program: install it again.")
