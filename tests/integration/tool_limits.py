"""What each parameter of each tool takes, and what it refuses."""

from typing import Any

# A call of each tool that is right in every parameter.
VALID: dict[str, dict[str, Any]] = {
    "memory_store": {"content": "Prefers tea", "type": "fact", "confidence": 0.5},
    "memory_search": {"query": "tea"},
    "memory_list": {},
    "memory_delete": {"memory_id": "mem_0123456789abcdef"},
    "history_append": {
        "conversation_id": "c", "role": "user", "content": "Hello", "turn_index": 0,
    },
    "history_get": {"conversation_id": "c"},
    "history_delete": {"conversation_id": "c"},
    "artifact_ingest": {
        "artifact_type": "note", "source_system": "notes", "source_id": "n", "content": "Tea.",
    },
    "artifact_search": {"query": "tea"},
    "artifact_get": {"artifact_uid": "uid_0123456789abcdef"},
    "artifact_history": {"artifact_uid": "uid_0123456789abcdef"},
    "artifact_delete": {"artifact_uid": "uid_0123456789abcdef"},
    "hybrid_search": {"query": "tea"},
    "embedding_health": {},
}  # fmt: skip
IDS = {"artifact_uid", "artifact_id", "revision_id", "from_revision", "to_revision", "event_id",
       "job_id", "memory_id"}  # fmt: skip
MAY_BE_MISSING = {"memory_delete", "artifact_get", "artifact_history", "artifact_delete",
                  "history_delete"}  # fmt: skip


HUGE = 10**40
NAN, INF = float("nan"), float("inf")


NOT_A_TEXT: tuple[object, ...] = (7, 1.5, True, ["a"], {"a": 1})
NOT_AN_INT: tuple[object, ...] = ("5", "many", 2.5, True, [1], {"a": 1}, None, NAN, INF, HUGE)
NOT_A_NUMBER: tuple[object, ...] = ("0.5", True, [0.5], {"a": 1}, None, NAN, INF, -INF, HUGE)
NOT_A_BOOL: tuple[object, ...] = ("true", "yes", "", 1, 0, 1.0, [True], {"a": 1}, None)
NOT_A_TIME = ("yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "12:00", "2026-01-01T25:00:00Z",
              "0001-01-01T00:00:00+14:00", "9" * 64)  # fmt: skip
BROKEN_TEXT = ("a\ud800b", "a\udfff")


def text(longest: int, *, shortest: int = 1, optional: bool = False) -> dict[str, Any]:
    bad: list[object] = [*NOT_A_TEXT, *BROKEN_TEXT, "x" * (longest + 1)]
    bad += [""] if shortest else []
    bad += [] if optional else [None]
    good: list[object] = ["x" * max(shortest, 1), "x" * longest]
    return {"good": good, "bad": bad}


def whole(lowest: int, highest: int, *, optional: bool = False) -> dict[str, Any]:
    bad = [lowest - 1, highest + 1, -HUGE, *NOT_AN_INT]
    # In JSON no number and an infinite one are null.
    null = (None, NAN, INF) if optional else ()
    return {
        "good": [lowest, highest, float(lowest)],
        "bad": [value for value in bad if value not in null],
    }


def one_of(*names: str, optional: bool = False) -> dict[str, Any]:
    bad: list[object] = [*NOT_A_TEXT, "", "other", names[0].upper(), f" {names[0]}", *BROKEN_TEXT]
    bad += [] if optional else [None]
    return {"good": list(names), "bad": bad}


def share() -> dict[str, Any]:
    return {"good": [0, 0.0, 1, 1.0, 0.5], "bad": [-0.001, 1.001, -1, 2, *NOT_A_NUMBER]}


def time() -> dict[str, Any]:
    good = ["2026-03-15", "2026-03-15T14:30:00Z", "2026-03-15T14:30:00+02:00", None]
    return {"good": good, "bad": [*NOT_A_TEXT, *BROKEN_TEXT, *NOT_A_TIME, "x" * 65]}


def named(*, optional: bool = False) -> dict[str, Any]:
    """An id: any text may be asked for, and names nothing where it is none of ours."""
    bad: list[object] = [*NOT_A_TEXT]
    bad += [] if optional else ["", None]
    return {"good": ["x", "x" * 201, *BROKEN_TEXT, "a\x00b"], "bad": bad}


BOOL = {"good": [True, False], "bad": NOT_A_BOOL}
ARTIFACT_TYPES = ("email", "doc", "chat", "transcript", "note")
MEMORY_TYPES = ("preference", "fact", "project", "decision")
OPTIONAL_ID = named(optional=True)
OPTIONAL_TYPE = one_of(*ARTIFACT_TYPES, optional=True)
SEARCH_FILTERS = {
    "query": text(500),
    "limit": whole(1, 50),
    "artifact_type": OPTIONAL_TYPE,
    "source_system": text(200, shortest=0, optional=True),
    "time_from": time(),
    "time_to": time(),
}
LIMITS: dict[str, dict[str, dict[str, Any]]] = {
    "memory_store": {
        "content": text(10_000),
        "type": one_of(*MEMORY_TYPES),
        "confidence": share(),
        "conversation_id": text(200, shortest=0, optional=True),
    },
    "memory_search": {
        "query": text(500),
        "limit": whole(1, 20),
        "min_confidence": share(),
        "type": one_of(*MEMORY_TYPES, optional=True),
    },
    "memory_list": {
        "type": one_of(*MEMORY_TYPES, optional=True),
        "limit": whole(1, 100),
        "offset": whole(0, 10_000_000),
    },
    "memory_delete": {"memory_id": named()},
    "history_append": {
        "conversation_id": text(200),
        "role": one_of("user", "assistant", "system"),
        "content": text(50_000),
        "turn_index": whole(0, 2_000_000_000),
    },
    "history_get": {"conversation_id": text(200), "limit": whole(1, 50)},
    "history_delete": {
        "conversation_id": text(200),
        "turn_index": whole(0, 2_000_000_000, optional=True),
    },
    "artifact_ingest": {
        "artifact_type": one_of(*ARTIFACT_TYPES),
        "source_system": text(200),
        # Its upper limit has a test of its own.
        "content": {"good": ["x"], "bad": [*NOT_A_TEXT, *BROKEN_TEXT, "", None, " \t\r\n\u3000"]},
        "source_id": text(1000, shortest=0, optional=True),
        "source_url": text(4000, shortest=0, optional=True),
        "title": text(1000, shortest=0, optional=True),
        "author": text(500, shortest=0, optional=True),
        "participants": {
            "good": [[], ["Ada"], ["x"] * 1000, '["Ada", "Grace"]', None],
            "bad": ["Ada", 7, {"a": 1}, [7], [None], [["Ada"]], ["\ud800"], ["\x00"], ["x"] * 1001],
        },
        "ts": time(),
        "sensitivity": one_of("normal", "sensitive", "highly_sensitive", optional=True),
        "visibility_scope": one_of("me", "team", "org", "custom", optional=True),
        "retention_policy": one_of("forever", "1y", "until_resolved", "custom", optional=True),
    },
    "artifact_search": {**SEARCH_FILTERS, "type": OPTIONAL_TYPE, "full_chunks": BOOL},
    "artifact_get": {
        "artifact_uid": OPTIONAL_ID,
        "revision_id": OPTIONAL_ID,
        "include_content": BOOL,
        "expand_chunks": BOOL,
        "as_of": time(),
    },
    "artifact_history": {"artifact_uid": named(), "as_of": time()},
    "artifact_delete": {"artifact_uid": OPTIONAL_ID},
    "hybrid_search": {
        **SEARCH_FILTERS,
        "include_memory": BOOL,
        "expand_neighbors": BOOL,
        "full_chunks": BOOL,
        "artifact_uid": OPTIONAL_ID,
    },
}  # fmt: skip
PARAMETERS = [(tool, name) for tool, limits in LIMITS.items() for name in limits]
REQUIRED = [
    (tool, name)
    for tool, arguments in VALID.items()
    for name in arguments
    if (tool, name)
    not in {("artifact_ingest", "source_id"), ("artifact_get", "artifact_uid"),
            ("artifact_delete", "artifact_uid")}
]  # fmt: skip
