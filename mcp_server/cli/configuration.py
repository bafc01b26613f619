"""The settings of a command; notices about them are printed on stderr."""

import sys
from typing import Any

from memory_core.kernel.env_file import superseded_notice
from memory_core.kernel.setting_origins import origins
from memory_core.kernel.settings import Settings, load_settings
from stack.memory_in_use import older_memory_notice


def read_settings(**overrides: Any) -> Settings:
    settings = load_settings(**overrides)
    for notice in (superseded_notice(), older_memory_notice(settings)):
        if notice is not None:
            print(f"Note: {notice}", file=sys.stderr)
    return settings


def show(*, changed: bool, as_json: bool) -> None:
    from mcp_server.cli import terminal_tables
    from mcp_server.cli.safe_text import as_json as json_text
    from mcp_server.cli.safe_text import shown
    from mcp_server.cli.terminal_tables import Column

    origins_shown = [one for one in origins(read_settings()) if one.is_set or not changed]
    if as_json:
        rows = [{"name": one.name, "value": one.value, "from": one.source} for one in origins_shown]
        print(json_text({"settings": rows}))
        return
    terminal_tables.show(
        [Column("setting"), Column("value", 3), Column("from", 2)],
        (
            [
                one.name,
                shown(one.value or "–"),
                f"[bold]{shown(one.source)}[/]" if one.is_set else "[dim]default[/]",
            ]
            for one in origins_shown
        ),
    )
