"""The actions of `mcp-memory deadletters …`."""

import getpass

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import with_transaction
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.log import deadletters

_STATUSES = ("failed", "retrying", "resolved")


def list_(projection: str | None, status: str | None, limit: int, *, as_json: bool) -> None:
    if status is not None and status not in _STATUSES:
        raise InvalidInput(f"{status!r} is no status: choose {', '.join(_STATUSES)}.")

    letters, total = with_transaction(
        lambda session: deadletters.find(session, projection=projection, status=status, limit=limit)
    )
    if as_json:
        print(json_text({"total": total, "dead_letters": [one.as_json() for one in letters]}))
        return
    if not letters:
        print("There are none.")
        return
    columns = [Column(name) for name in ("id", "projection", "type", "status", "tries", "since")]
    terminal_tables.show(
        [*columns, Column("error", 1)],
        (
            [
                str(one.id),
                shown(one.projection),
                shown(one.change.event_type),
                one.status,
                str(one.retry_count),
                f"{one.first_failed_at:%Y-%m-%d %H:%M}",
                shown(one.error_message),
            ]
            for one in letters
        ),
    )


def show(id_: int) -> None:
    letter = with_transaction(lambda session: deadletters.get(session, id_))
    print(json_text(letter.as_json()))


def retry(ids: list[int] | None, *, every: bool, projection: str | None) -> None:
    chosen = _chosen(ids, every=every, projection=projection)
    number = with_transaction(
        lambda session: deadletters.retry(session, chosen, projection=projection, by=_user())
    )
    _require_some(number, chosen)
    print(f"{number} will be tried again by the worker; `deadletters list` shows how.")


def resolve(ids: list[int] | None, *, every: bool, projection: str | None) -> None:
    chosen = _chosen(ids, every=every, projection=projection)
    number = with_transaction(
        lambda session: deadletters.resolve(session, chosen, projection=projection, by=_user())
    )
    _require_some(number, chosen)
    print(f"{number} resolved.")


def _chosen(ids: list[int] | None, *, every: bool, projection: str | None) -> list[int] | None:
    """The ids of the chosen dead letters; None means all that are open."""
    if ids:
        return ids
    if every or projection is not None:
        return None
    raise InvalidInput("Say which: their numbers, --projection NAME, or --all.")


def _require_some(number: int, chosen: list[int] | None) -> None:
    if chosen and not number:
        named = ", ".join(str(id_) for id_ in chosen)
        raise NotFound(
            f"No dead letter {named} is open: nothing was changed. `mcp-memory deadletters list` "
            "shows those that are."
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
