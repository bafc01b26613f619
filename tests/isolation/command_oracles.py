"""Every command is of one kind: asked as a user, or the operator's."""

from collections.abc import Callable, Iterator

import typer

from tests.isolation.asking import Asking

Arguments = Callable[[Asking], list[str]]


def names(app: typer.Typer, before: tuple[str, ...] = ()) -> Iterator[str]:
    for command in app.registered_commands:
        own = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        yield " ".join((*before, own))
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from names(group.typer_instance, (*before, str(group.name)))


def _document(ask: Asking) -> str:
    return ask.any_document().uid


def _event(ask: Asking) -> str:
    events = [one for one in ask.world.events.values() if not one.document.is_gone]
    return ask.rng.choice(events).event_id


def _job(ask: Asking) -> str:
    return ask.rng.choice(list(ask.any_document().jobs))


# Asked as a user; with arguments at random.
PERSONAL: dict[str, Arguments] = {
    "search": lambda ask: [ask.some_words()],
    "people": lambda ask: [ask.some_name()],
    "documents list": lambda ask: [],
    "documents show": lambda ask: [_document(ask)],
    "events search": lambda ask: [ask.some_words()],
    "events show": lambda ask: [_event(ask)],
    "events diff": lambda ask: [_document(ask)],
    "events timeline": lambda ask: [ask.some_words()],
    "events commitments": lambda ask: [],
    "jobs show": lambda ask: [_job(ask)],
    "jobs list": lambda ask: [],
}
# They change something of a user's own, through tools that have oracles.
THROUGH_TOOLS = {"jobs cancel", "jobs retry", "reextract", "ingest"}
# For who runs the installation, whose data dir it is: of all tenants together.
OPERATORS = {
    *("up", "services", "serve", "worker", "migrate", "doctor", "import-v2", "reindex", "status"),
    *("config", "connect", "trace", "demo"),
    *(f"backfill {name}" for name in ("plan", "start", "status", "pause", "resume", "cancel")),
    *("backfill trial", "log tail", "log state", "log rebase"),
    *(f"projections {name}" for name in ("status", "pause", "resume", "rebuild")),
    *(f"deadletters {name}" for name in ("list", "show", "retry", "resolve")),
    *("keys create", "keys list", "keys revoke"),
    *(f"tenants {name}" for name in ("create", "list", "suspend", "resume", "delete")),
    *("retention preview", "retention run"),
    *(f"webhooks {name}" for name in ("add", "list", "remove", "test", "rotate", "deliveries")),
}
