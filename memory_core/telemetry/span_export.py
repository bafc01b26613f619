"""Exports spans if OTEL_EXPORTER_OTLP_ENDPOINT is set; otherwise no OpenTelemetry module is
loaded."""

import importlib
from typing import TYPE_CHECKING

from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings
from memory_core.telemetry import spans

if TYPE_CHECKING:
    from memory_core.telemetry.otel import OtelTracer

_started: "OtelTracer | None" = None


def start(settings: Settings, role: str) -> None:
    """Call it once per process. `role`: the command that the process runs."""
    global _started
    if settings.otel_exporter_otlp_endpoint is None or _started is not None:
        return
    try:
        otel = importlib.import_module("memory_core.telemetry.otel")
    except ImportError as error:
        raise ConfigurationFault(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and the packages that send spans are not "
            "installed. Install them with: pip install 'mcp-proved-memory[telemetry]'"
        ) from error
    _started = otel.OtelTracer(settings.otel_exporter_otlp_endpoint, role)
    spans.export_by(_started)


def is_on() -> bool:
    return _started is not None


def flush() -> None:
    """Send buffered spans before the process ends, for a few seconds at most."""
    if _started is not None:
        _started.flush()
