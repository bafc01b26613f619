"""Masking the parameters and the answer of a call: only ids, numbers and our own words are kept.

Every other text becomes its length and a hash: enough to see that two calls asked the same, not
enough to read the question.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import orjson

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
# The exact form of our own ids. Any other value of an id parameter is treated as text.
_ID = re.compile(
    rf"(?:(?:uid|rev|mem|evt|job|evi)_[0-9a-f]{{1,32}}|(?:evt_|job_|evi_)?{_UUID}"
    r"|art_[0-9a-f]{1,16}(?:::chunk::\d{3,6}::[0-9a-f]{8})?)"
)
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_HASH_DIGITS = 16
_LARGEST_NUMBER = 2**53
_LISTED = 20
# Fields of an answer whose texts are our own words.
_OUR_WORDS = frozenset({"status"})


def masked(
    parameters: Mapping[str, Any], names: Collection[str], words: Collection[str] = ()
) -> dict[str, Any]:
    """`known`: the tool's parameter names. Other names are only counted, since a name may be any
    text. `words`: values that the tool itself lists."""
    kept = {name: _masked(value, words) for name, value in parameters.items() if name in names}
    if unknown := len(parameters) - len(kept):
        kept["unknown_parameters"] = unknown
    return kept


def summary(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The ids and numbers of an answer, and the lengths of its lists."""
    kept: dict[str, Any] = {}
    for name, value in answer.items():
        if isinstance(value, list):
            kept[name] = len(value)
        elif isinstance(value, bool | int | float) or is_id(value) or name in _OUR_WORDS:
            kept[name] = value
    return kept


def is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def job_of(*named: Mapping[str, Any] | None) -> str | None:
    """The job id in the parameters or the answer of a call, as Postgres accepts it."""
    for names in named:
        value = (names or {}).get("job_id")
        if isinstance(value, str):
            try:
                return str(UUID(value.removeprefix("job_")))
            except ValueError:
                continue
    return None


def _masked(value: Any, words: Collection[str]) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_NUMBER else {"digits": len(str(value))}
    if isinstance(value, str):
        if value in words or is_id(value) or _MOMENT.fullmatch(value):
            return value
        return {"chars": len(value), "sha256": _hash(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, list) and len(value) <= _LISTED and all(map(is_id, value)):
        return value
    return {"items": len(value), "sha256": _hash(_bytes(value))}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]


def _bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a number or a text that our JSON cannot represent
        return repr(value).encode("utf-8", "surrogatepass")
