"""The services of the stack: each child's command line, environment and readiness probe."""

import os
import shutil
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import SecretStr

from memory_core.kernel.errors import StackFault
from memory_core.kernel.settings import Settings
from memory_core.kernel.shipped_files import shipped
from stack import ports, probes, sockets, stack_state
from stack.child import SAFE_PATH, ChildSpec
from stack.layout import Layout
from stack.orphans import MARKER
from stack.postgres import EmbeddedPostgres, identity
from stack.stack_state import Mode, StackState

CODE_MODULE = "memory_assets.definitions"
CODE_SERVER = "memory_assets.dagster_internals.code_server"
DAEMON = "memory_assets.dagster_internals.daemon"
WEB_SERVER = "memory_assets.dagster_internals.web_server"
PRIVATE_CHROMA = "stack.private_chroma"
_CHROMA_SOCKET = "chroma.sock"
# The code server trusts every client and shows it its environment, so it has a socket instead of a
# port.
_CODE_SOCKET = "code.sock"
# LOG_LEVEL as the servers name it. Chroma logs every request at its level "info".
_POSTGRES_LEVELS = {"DEBUG": "debug1", "INFO": "warning", "WARNING": "warning", "ERROR": "error"}
_CHROMA_LEVELS = {
    "DEBUG": "info",
    "INFO": "info,chroma_frontend=warn",
    "WARNING": "warn",
    "ERROR": "error",
}
# Settings that Dagster's web server and daemon do not need: they call no model, and search nothing.
_OF_MODELS_AND_INDEX = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "EXTRACTOR", "EMBEDDER", "CHROMA_HOST"),
    "OTEL_EXPORTER_OTLP_ENDPOINT",
)
_RUN_LEVEL = "python_log_level: INFO"


@dataclass(frozen=True, slots=True)
class StackPlan:
    """Everything that is decided before the first process starts."""

    settings: Settings  # with every address filled in
    children: tuple[ChildSpec, ...]
    state: StackState


def plan(settings: Settings, layout: Layout, mode: Mode) -> StackPlan:
    children: list[ChildSpec] = []
    dsn, host, port = settings.events_db_dsn, settings.chroma_host, settings.chroma_port
    if dsn is None:
        server = EmbeddedPostgres(layout.postgres)
        dsn = SecretStr(server.dsn)
        children.append(_postgres(server, layout, settings))
    chroma_socket = _chroma_socket(settings, layout)
    if host is None and chroma_socket is not None:
        host = f"unix:{chroma_socket}"
        children.append(_private_chroma(chroma_socket, layout, settings))
    elif host is None:
        host, port = ports.LOOPBACK, _chroma_port(settings, layout)
        children.append(_chroma(host, port, layout, settings))
    mcp_port = dagster_port = 0
    if mode == "full":
        mcp_port = ports.claim("MCP_PORT", settings.mcp_port, settings.mcp_host)
        dagster_port = ports.claim("DAGSTER_PORT", settings.dagster_port, settings.dagster_host)
    resolved = settings.model_copy(
        update={
            "events_db_dsn": dsn,
            "chroma_host": host,
            "chroma_port": port,
            "mcp_port": mcp_port or settings.mcp_port,
            "dagster_port": dagster_port or settings.dagster_port,
        }
    )
    needs = tuple(child.name for child in children)
    if mode == "full":
        children += _dagster(resolved, layout, needs)
        children.append(_worker(resolved, layout, needs))
        children.append(_mcp(resolved, layout, needs))
    own = {MARKER: str(layout.root), **SAFE_PATH}
    return StackPlan(
        settings=resolved,
        children=tuple(
            replace(child, environment={**child.environment, **own}) for child in children
        ),
        state=StackState(
            pid=os.getpid(),
            mode=mode,
            postgres_dsn=dsn.get_secret_value() if settings.events_db_dsn is None else None,
            chroma_port=port if settings.chroma_host is None and not chroma_socket else None,
            chroma_socket=str(chroma_socket) if chroma_socket else None,
            mcp_url=mcp_url(resolved) if mode == "full" else None,
            dagster_url=dagster_url(resolved) if mode == "full" else None,
        ),
    )


def mcp_url(settings: Settings) -> str:
    return f"http://{_reachable(settings.mcp_host)}:{settings.mcp_port}/mcp"


def health_url(settings: Settings) -> str:
    return f"http://{_reachable(settings.mcp_host)}:{settings.mcp_port}/health"


def dagster_url(settings: Settings) -> str:
    return f"http://{_reachable(settings.dagster_host)}:{settings.dagster_port}"


def dagster_storage_url(dsn: str) -> str:
    """Our own database, with Dagster's tables in a separate schema."""
    parts = urlsplit(dsn)
    option = "options=" + quote("-csearch_path=dagster")
    query = f"{parts.query}&{option}" if parts.query else option
    return urlunsplit(parts._replace(scheme="postgresql", query=query))


def _postgres(server: EmbeddedPostgres, layout: Layout, settings: Settings) -> ChildSpec:
    level = _POSTGRES_LEVELS[settings.log_level]
    return ChildSpec(
        name="postgres",
        title=f"Postgres {server.version}",
        command=[*server.command(), *("-c", f"log_min_messages={level}")],
        log=layout.log_of("postgres"),
        probe=lambda _: probes.postgres(server.dsn),
        identity=identity(server.account),
        inherits=False,
        stop_signal=signal.SIGINT,
        # Its last checkpoint may take long; a killed server would recover at the next start.
        stop_timeout=10.0,
        prepare=server.prepare,
        notice=server.notice,
    )


def _chroma_socket(settings: Settings, layout: Layout) -> Path | None:
    """None if Chroma is elsewhere, if the user wants a port, and on systems other than Linux."""
    wants_a_port = "chroma_port" in settings.model_fields_set
    if settings.chroma_host is not None or wants_a_port or sys.platform != "linux":
        return None
    return sockets.folder(layout.root / "chroma-socket", _CHROMA_SOCKET) / _CHROMA_SOCKET


def _chroma_port(settings: Settings, layout: Layout) -> int:
    """The port that the user chose, else the last one (clients may still know it), else any."""
    if "chroma_port" in settings.model_fields_set:
        return ports.claim("CHROMA_PORT", settings.chroma_port)
    last = stack_state.last_written(layout)
    if last and last.chroma_port and ports.is_free(last.chroma_port):
        return last.chroma_port
    return ports.free_port()


def _chroma(host: str, port: int, layout: Layout, settings: Settings) -> ChildSpec:
    return ChildSpec(
        name="chroma",
        title="Chroma",
        command=[*_chroma_command(layout), *("--host", host), *("--port", str(port))],
        log=layout.log_of("chroma"),
        probe=lambda _: probes.chroma(host, port),
        environment={
            "ANONYMIZED_TELEMETRY": "False",
            "RUST_LOG": _CHROMA_LEVELS[settings.log_level],
        },
        inherits=False,
    )


def _private_chroma(socket: Path, layout: Layout, settings: Settings) -> ChildSpec:
    spec = _chroma("", 0, layout, settings)
    return replace(
        spec,
        command=[sys.executable, "-I", "-m", PRIVATE_CHROMA, str(socket), *_chroma_command(layout)],
        probe=lambda _: probes.chroma(f"unix:{socket}", 0),
        prepare=lambda: sockets.make_private(socket.parent),
    )


def _chroma_command(layout: Layout) -> list[str]:
    return [script("chroma"), "run", *("--path", str(layout.chroma))]


def _dagster(settings: Settings, layout: Layout, needs: tuple[str, ...]) -> list[ChildSpec]:
    socket = sockets.folder(layout.root / "dagster-socket", _CODE_SOCKET) / _CODE_SOCKET
    graphql = f"{dagster_url(settings)}/graphql"
    workspace = shipped("workspace.yaml")
    (layout.dagster_home / "dagster.yaml").write_text(_instance(settings))
    environment = {
        **settings.environment(),
        "DAGSTER_HOME": str(layout.dagster_home),
        "DAGSTER_PG_URL": dagster_storage_url(settings.dsn),
        "DAGSTER_CODE_SOCKET": str(socket),
    }
    keyless = environment | dict.fromkeys(_OF_MODELS_AND_INDEX, "")
    return [
        ChildSpec(
            name="dagster-code",
            title="Dagster code server",
            command=[
                *(sys.executable, "-m", CODE_SERVER),
                *("-m", CODE_MODULE),
                *("--socket", str(socket)),
                "--use-python-environment-entry-point",
            ],
            log=layout.log_of("dagster-code"),
            probe=lambda _: probes.code_server(socket),
            environment=environment,
            depends_on=needs,
            prepare=lambda: sockets.make_private(socket.parent),
        ),
        ChildSpec(
            name="dagster-webserver",
            title="Dagster UI",
            command=[
                *(sys.executable, "-m", WEB_SERVER),
                *("-w", str(workspace)),
                *("-h", settings.dagster_host),
                *("-p", str(settings.dagster_port)),
            ],
            log=layout.log_of("dagster-webserver"),
            probe=lambda _: probes.webserver(graphql),
            environment=keyless,
            inherits=False,
            depends_on=("dagster-code",),
        ),
        ChildSpec(
            name="dagster-daemon",
            title="Dagster daemon",
            command=[sys.executable, "-m", DAEMON, "run", "-w", str(workspace)],
            log=layout.log_of("dagster-daemon"),
            probe=lambda started: probes.daemon(graphql, since=started),
            environment=keyless,
            inherits=False,
            depends_on=("dagster-code",),
        ),
    ]


def _instance(settings: Settings) -> str:
    """Dagster's configuration file, which cannot take a log level from a variable."""
    shipped_text = shipped("dagster.yaml").read_text()
    return shipped_text.replace(_RUN_LEVEL, f"python_log_level: {settings.log_level}")


def _worker(settings: Settings, layout: Layout, needs: tuple[str, ...]) -> ChildSpec:
    return ChildSpec(
        name="worker",
        title="Worker",
        command=[sys.executable, "-m", "mcp_server.cli", "worker"],
        log=layout.log_of("worker"),
        probe=lambda started: probes.worker(settings.dsn, since=started),
        environment=settings.environment(),
        depends_on=needs,
    )


def _mcp(settings: Settings, layout: Layout, needs: tuple[str, ...]) -> ChildSpec:
    return ChildSpec(
        name="mcp-server",
        title="MCP server",
        command=[sys.executable, "-m", "mcp_server.cli", "serve"],
        log=layout.log_of("mcp-server"),
        probe=lambda _: probes.mcp(health_url(settings)),
        environment=settings.environment(),
        depends_on=needs,
    )


def script(name: str) -> str:
    """A console script of our own environment."""
    installed = Path(sys.executable).with_name(name)
    if installed.exists():
        return str(installed)
    path = shutil.which(name)
    if path is None:
        raise StackFault(f"The program {name!r} is not installed: install mcp-memory again.")
    return path


def _reachable(host: str) -> str:
    """A server that listens on all addresses is reached on loopback."""
    if host in {"0.0.0.0", "::", ""}:
        return ports.LOOPBACK
    return f"[{host}]" if ":" in host else host
