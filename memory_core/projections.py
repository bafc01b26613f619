"""All projections and duties that the worker hosts."""

from memory_core.index.index_projection import IndexProjection
from memory_core.log.host import Host
from memory_core.log.projection import Projection
from memory_core.log.worker import Duty
from memory_core.runtime import Runtime
from memory_core.webhooks.delivery import Webhooks
from memory_core.webhooks.sender import Sender


def projections(runtime: Runtime) -> list[Projection]:
    return [IndexProjection(runtime)]


def duties(runtime: Runtime) -> list[Duty]:
    sender = Sender(allow_private=runtime.settings.webhook_allow_private)
    return [Webhooks(runtime.database, sender)]


def make_host(runtime: Runtime) -> Host:
    """A worker inside this process."""
    return Host(runtime.database, lambda: projections(runtime), lambda: duties(runtime))
