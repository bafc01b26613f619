"""What a bind beyond loopback opens, in one line for the person who starts it."""

from memory_core.kernel.settings import Settings
from memory_core.web.admission import is_loopback


def warning(settings: Settings, *, dagster: bool = True) -> str | None:
    """None when all is on loopback. `dagster`: whether its web server is started too."""
    opened = [
        f"{variable}={host}"
        for variable, host, concerned in (
            ("MCP_HOST", settings.mcp_host, True),
            ("DAGSTER_HOST", settings.dagster_host, dagster),
        )
        if concerned and not is_loopback(host)
    ]
    if not opened:
        return None
    return (
        f"{' and '.join(opened)}: other machines can connect, and no key is asked for. "
        "They may read, change and delete everything; see docs/securing.md."
    )
