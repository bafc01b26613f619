"""Resource notifications: subscribed clients are notified which documents and events changed.

They come from the log, which every server follows while it has a subscribed client. A notification
means "read it again", so none is kept for a client that is away.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp_types import (
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from mcp_server.earlier_clients import EarlierClient
from mcp_server.failures import protocol_error
from mcp_server.tool import MemoryServer
from memory_core.access.audiences import Audience, audiences_by_id
from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.kernel.principal import Principal
from memory_core.log.change import Change, ChangeType
from memory_core.log.follower import RESOURCE_NOTIFICATIONS, Follower
from memory_core.log.log_reader import of_aggregate

MAX_STREAMS = 1_024
MAX_URIS = 10_000  # per client
MAX_URIS_OF_ALL = 100_000
_COME_AND_GO = {
    *(ChangeType.ARTIFACT_CREATED, ChangeType.ARTIFACT_RELABELLED),
    *(ChangeType.ARTIFACT_DELETED, ChangeType.ARTIFACT_EXPIRED),
}
_GONE = {ChangeType.ARTIFACT_DELETED, ChangeType.ARTIFACT_EXPIRED}
_LISTEN = "subscriptions/listen"
Context = ServerRequestContext[Any, Any]


class Subscribers:
    """Between the log and the clients: each client is notified only of what its principal may see.
    Even the fact that an address changed would reveal that something is there."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Principal, Callable[[ServerEvent], None]]] = {}

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = (principal.current(), listener)

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    async def publish(self, event: ServerEvent) -> None:
        """Events about the server itself go to all clients."""
        for _, listener in list(self._listeners.values()):
            listener(event)

    def tell(self, audience: Audience, event: ServerEvent) -> None:
        for who, listener in list(self._listeners.values()):
            if audience.has(who):
                listener(event)


class ResourceNotifications:
    def __init__(self, subscribers: Subscribers, opened: Callable[[], Awaitable[Database]]) -> None:
        self._subscribers = subscribers
        self._opened = opened
        self._follower = Follower(RESOURCE_NOTIFICATIONS, opened, self._take)
        self._listening = ListenHandler(
            subscribers, max_subscriptions=MAX_STREAMS, max_buffered_events=MAX_URIS
        )
        self._wanted: Counter[str] = Counter()  # addresses, over all clients

    def register(self, server: MemoryServer) -> None:
        server.serve(_LISTEN, SubscriptionsListenRequestParams, self._listening)
        server.serve("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.serve("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        server.announce_resource_changes()
        server.middleware.append(self._watch)

    def end(self) -> None:
        """End the notification streams; their clients subscribe again and read again."""
        self._listening.close()

    async def _watch(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Follow the log before a client gets the confirmation of its subscription."""
        if ctx.method == _LISTEN:
            async with self._subscribed(_addresses(ctx)):
                return await call_next(ctx)
        if ctx.method == "resources/list" and EarlierClient.is_one(ctx):
            await self._earlier_client(ctx)
        return await call_next(ctx)

    @asynccontextmanager
    async def _subscribed(self, addresses: Iterable[str]) -> AsyncIterator[None]:
        wanted = set(addresses)
        self._refuse_too_many(len(wanted), len(wanted))
        self._wanted.update(wanted)
        try:
            async with self._following():
                yield
        finally:
            self._no_longer(wanted)

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        try:
            async with self._follower.used():
                yield
        except MemoryFault as fault:
            raise protocol_error(fault) from fault

    async def _earlier_client(self, context: Context) -> EarlierClient:
        """A client of an earlier protocol, from its first request until it leaves."""
        client = EarlierClient.of(context)
        async with client.beginning:
            if not client.is_following:
                await client.keep(self._following())
                client.is_following = True
                client.on_leaving(self._subscribers.subscribe(client.tell))
                client.on_leaving(lambda: self._no_longer(client.addresses))
        return client

    async def _subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        client = await self._earlier_client(context)
        if params.uri not in client.addresses:
            self._refuse_too_many(len(client.addresses) + 1, 1)
            client.addresses.add(params.uri)
            self._wanted[params.uri] += 1
        return EmptyResult()

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        client = await self._earlier_client(context)
        if params.uri in client.addresses:
            client.addresses.discard(params.uri)
            self._no_longer([params.uri])
        return EmptyResult()

    def _no_longer(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            self._wanted[address] -= 1
            if not self._wanted[address]:
                del self._wanted[address]

    def _refuse_too_many(self, of_client: int, more: int) -> None:
        if of_client > MAX_URIS or self._wanted.total() + more > MAX_URIS_OF_ALL:
            raise protocol_error(
                InvalidInput(
                    f"A client can subscribe to {MAX_URIS:,} resources, all clients of a server "
                    f"together to {MAX_URIS_OF_ALL:,}. Subscribe to fewer, or follow GET /changes."
                )
            )

    async def _take(self, changes: Sequence[Change]) -> None:
        audiences = await self._audiences_of(changes)
        for change in changes:
            if (audience := audiences.get(change.audience_id)) is None:
                continue  # its tenant was deleted
            for address in await self._changed(change):
                if address in self._wanted:
                    self._subscribers.tell(audience, ResourceUpdated(uri=address))
                    await asyncio.sleep(0)  # let the streams send what waits in them
            if change.event_type in _COME_AND_GO:
                self._subscribers.tell(audience, ResourcesListChanged())

    async def _audiences_of(self, changes: Sequence[Change]) -> dict[int, Audience]:
        database = await self._opened()
        async with database.session() as session:
            return await audiences_by_id(session, {change.audience_id for change in changes})

    async def _changed(self, change: Change) -> set[str]:
        if not self._wanted:
            return set()
        addresses = addresses_of(change)
        if change.event_type in _GONE:
            # The deletion also removed revisions and events that only earlier changes name.
            database = await self._opened()
            async with database.session() as session:
                earlier = await of_aggregate(session, change.aggregate_type, change.aggregate_id)
            addresses.update(*(addresses_of(one) for one in earlier))
        return addresses


def addresses_of(change: Change) -> set[str]:
    """The addresses of the resources that a change names."""
    uid = change.payload.get("artifact_uid")
    if uid is None or change.event_type == ChangeType.JOB_REQUESTED:
        return set()
    addresses = {f"memory://timeline/{uid}"}
    if change.event_type == ChangeType.EVENTS_REPLACED:
        for kind in ("added", "removed", "kept"):
            for event_id in change.payload.get(kind, ()):
                addresses |= {f"memory://event/{event_id}", f"memory://event/evt_{event_id}"}
        return addresses
    addresses.add(f"memory://artifact/{uid}")
    if revision := change.payload.get("revision_id"):
        addresses.add(f"memory://artifact/{uid}/{revision}")
    return addresses


def _addresses(context: Context) -> list[str]:
    """The addresses as the client sent them. Invalid values are refused later."""
    asked = (context.params or {}).get("notifications")
    listed = asked.get("resourceSubscriptions") if isinstance(asked, dict) else None
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
