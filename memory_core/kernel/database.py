"""Postgres: a pool, named queries, and the one place where connection failures become our own.

Every connection works for a principal: it has the application's role and sees only what that
principal may see. Only code that declares itself as the system works as the owner of the tables.
"""

import select
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

import orjson
import psycopg
from psycopg.rows import AsyncRowFactory, RowMaker, dict_row, scalar_row
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from memory_core.kernel import principal, queries
from memory_core.kernel.errors import Conflict, PostgresUnavailable
from memory_core.kernel.principal import Principal

R = TypeVar("R")
CONNECT_SECONDS = 5.0
_PAGE = 256


class Session:
    """A connection in use. Its methods take names of queries."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection
        self.appended = False  # whether this transaction appended to the log

    async def expect(self, query: str, /, **parameters: Any) -> int:
        """The planner's row estimate for an EXPLAIN query. It takes a fraction of a millisecond."""
        [explained] = await self.value(list, query, **parameters)
        rows: int = explained["Plan"]["Plan Rows"]
        return rows

    async def rows(self, kind: type[R], query: str, /, **parameters: Any) -> list[R]:
        """All rows of a query. The columns must be the fields of `kind`, in their order."""
        cursor = await self._execute(_fields_row(kind), query, parameters)
        return await cursor.fetchall()

    async def row(self, kind: type[R], query: str, /, **parameters: Any) -> R | None:
        cursor = await self._execute(_fields_row(kind), query, parameters)
        return await cursor.fetchone()

    async def only(self, kind: type[R], query: str, /, **parameters: Any) -> R:
        """The one row of a query that always returns one."""
        row = await self.row(kind, query, **parameters)
        assert row is not None, f"{query} gave no row"
        return row

    async def value(self, kind: type[R], query: str, /, **parameters: Any) -> R:
        """The one value of a query that always returns one."""
        value = await self.maybe(kind, query, **parameters)
        assert value is not None, f"{query} gave no value"
        return value

    async def maybe(self, kind: type[R], query: str, /, **parameters: Any) -> R | None:
        """The one value of a query, or None for no row or NULL."""
        cursor = await self._execute(scalar_row, query, parameters)
        value = await cursor.fetchone()
        assert value is None or isinstance(value, kind), f"{query} gave {type(value).__name__}"
        return value

    async def values(self, kind: type[R], query: str, /, **parameters: Any) -> list[R]:
        """The values of a query with one column, which is never NULL."""
        cursor = await self._execute(scalar_row, query, parameters)
        return await cursor.fetchall()

    async def _execute(
        self, factory: AsyncRowFactory[R], query: str, parameters: dict[str, Any]
    ) -> psycopg.AsyncCursor[R]:
        cursor = self.connection.cursor(row_factory=factory)
        return await cursor.execute(queries.get(query), parameters)

    async def pages(
        self, kind: type[R], query: str, /, **parameters: Any
    ) -> AsyncIterator[list[R]]:
        """The rows of a query, some hundred at a time. Needs a transaction."""
        async with self.connection.cursor(name=query, row_factory=_fields_row(kind)) as cursor:
            await cursor.execute(queries.get(query), parameters)
            while page := await cursor.fetchmany(_PAGE):
                yield page
                if len(page) < _PAGE:
                    return

    async def run(self, query: str, /, **parameters: Any) -> int:
        """Execute; returns the number of affected rows."""
        cursor = await self.connection.execute(queries.get(query), parameters)
        return cursor.rowcount


def _fields_row(kind: type[R]) -> AsyncRowFactory[R]:
    """Build dataclass rows by position, which takes half the time of keyword arguments. The names
    are compared once per result, so that no value lands in another field."""

    def make_maker(cursor: psycopg.AsyncCursor[Any]) -> RowMaker[R]:
        result = cursor.pgresult
        assert result is not None
        columns = tuple([(result.fname(n) or b"").decode() for n in range(result.nfields)])
        shape: Any = kind
        expected = shape.__match_args__
        assert columns == expected, f"{kind.__name__} has {expected}, the query gives {columns}"
        enums = _enums(shape)
        if not enums:
            return lambda values: kind(*values)
        return lambda values: kind(
            *[enums[n](value) if n in enums else value for n, value in enumerate(values)]
        )

    return make_maker


@cache
def _enums(kind: Any) -> dict[int, type[Enum]]:
    """The enum fields by position: Postgres returns their values as text."""
    types = get_type_hints(kind)
    return {
        n: types[name]
        for n, name in enumerate(kind.__match_args__)
        if isinstance(types[name], type) and issubclass(types[name], Enum)
    }


def columns(row: object) -> dict[str, Any]:
    """A row as a dictionary, for answers that repeat it."""
    names: tuple[str, ...] = row.__match_args__  # type: ignore[attr-defined]
    return {name: getattr(row, name) for name in names}


class Database:
    def __init__(
        self,
        dsn: str,
        *,
        max_connections: int = 10,
        connect_seconds: float = CONNECT_SECONDS,
        system: str | None = None,
        unasked: str | None = None,
    ) -> None:
        """`system`: why it sees the rows of all principals. `unasked`: why it does so outside of a
        request."""
        self.dsn = dsn
        self._system, self._unasked = system, unasked
        # The principal that each connection worked for last.
        self._served: WeakKeyDictionary[psycopg.AsyncConnection[Any], Principal] = (
            WeakKeyDictionary()
        )
        # Called after each commit that appended to the log.
        self.on_append: list[Callable[[], None]] = []
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=max_connections,
            open=False,
            timeout=connect_seconds,
            # The pool waits longer and longer between attempts. After so long it gives up, and the
            # next session tries at once: a server that is back is found without delay.
            reconnect_timeout=connect_seconds,
            check=self._check,
            configure=_tune,
            kwargs={"row_factory": dict_row, "connect_timeout": 5, "autocommit": True},
        )

    async def open(self) -> None:
        await self._pool.open(wait=False)

    async def close(self) -> None:
        await self._pool.close(timeout=2)

    @property
    def pool_stats(self) -> dict[str, int]:
        """Named as in psycopg's pool: pool_size, pool_available, requests_waiting …"""
        return self._pool.get_stats()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A connection in autocommit mode, for single statements."""
        with postgres_faults():
            async with self._connection() as connection:
                session = Session(connection)
                yield session
        self._notify_append(session)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        with postgres_faults():
            async with self._connection() as connection, connection.transaction():
                session = Session(connection)
                yield session
        self._notify_append(session)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection that works for the current principal. Its settings are sent only if it
        worked for another principal before."""
        asking = principal.current()
        why = self._system or (self._unasked if principal.named() is None else None)
        if why is not None and asking.system is None:
            asking = replace(asking, system=why)
        async with self._pool.connection() as connection:
            if self._served.get(connection) != asking:
                self._served.pop(connection, None)
                await connection.execute(queries.get("serve_principal"), _identity(asking))
                self._served[connection] = asking
            yield connection

    async def _check(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Replace connections that died with a restarted server before they are used. This only
        looks for unread data, because a query would cost a round trip: a server sends data by
        itself only when it shuts down."""
        polled = select.poll()
        polled.register(connection.fileno(), select.POLLIN)
        if not polled.poll(0):
            return
        try:
            await AsyncConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            # All others died with it. The pool would notice one after the other, and wait longer
            # and longer in between.
            await self._pool.check()
            raise

    def _notify_append(self, session: Session) -> None:
        if session.appended:
            for listener in self.on_append:
                listener()


def _identity(asking: Principal) -> dict[str, str]:
    """The session settings of a principal. The system has none: it keeps the role of its login."""
    is_system = asking.system is not None
    return {
        "role": "none" if is_system else "memory_app",
        "tenant": str(asking.tenant_id),
        "user": asking.user,
        "marks": "" if is_system else _array(asking.marks),
    }


def _array(items: list[str]) -> str:
    """An array of texts in Postgres syntax."""
    quoted = (item.replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return "{" + ",".join(f'"{item}"' for item in quoted) + "}"


async def _tune(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(queries.get("tune_connection"))
    set_json_loads(orjson.loads, connection)


@contextmanager
def postgres_faults() -> Iterator[None]:
    """Turn "the server is not there" into our own fault. Other SQL errors are bugs and pass
    through."""
    try:
        yield
    except (psycopg.errors.DiskFull, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise PostgresUnavailable(
            "Postgres takes no writes now (its disk is full, or it is read-only); nothing was "
            "written. Reading still works. Make room or switch it back, then try again.",
            details={"cause": type(error).__name__},
        ) from error
    except psycopg.errors.SerializationFailure as error:
        raise Conflict(
            "Another change to the same document or memory came first; nothing was written. "
            "Read it again and try again.",
            details={"cause": type(error).__name__},
        ) from error
    except (PoolTimeout, PoolClosed, psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise PostgresUnavailable(
            "Postgres does not answer; nothing was written. Is the stack running "
            "(`mcp-memory up`), or is EVENTS_DB_DSN right? Try again in a moment.",
            details={"cause": type(error).__name__},
        ) from error
