"""Whether other machines could connect; refused if clients are not authenticated."""

from memory_core.kernel.admission import is_loopback
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings


def check(settings: Settings, *, dagster: bool = True) -> str | None:
    """One line about what is open to others, or None if everything is on loopback. Raises if it is
    not guarded.

    `dagster`: whether its web server is started too.
    """
    mcp_is_open = not is_loopback(settings.mcp_host)
    dagster_is_open = dagster and not is_loopback(settings.dagster_host)
    if settings.auth == "none" and mcp_is_open:
        raise _refusal(f"MCP_HOST={settings.mcp_host}")
    if settings.auth == "none" and dagster_is_open:
        raise _refusal(f"DAGSTER_HOST={settings.dagster_host}")
    if not dagster_is_open:
        return None
    return (
        f"DAGSTER_HOST={settings.dagster_host}: other machines can connect to the Dagster UI, "
        "which asks for no key. They may read and change everything; see docs/securing.md."
    )


def _refusal(opened: str) -> ConfigurationFault:
    return ConfigurationFault(
        f"{opened} would let other machines connect, and AUTH=none asks none of them who they are: "
        "nothing was started. Leave it on 127.0.0.1 behind a tunnel or a proxy, or set AUTH=keys "
        "and make keys with `mcp-memory keys create`; see docs/securing.md."
    )
