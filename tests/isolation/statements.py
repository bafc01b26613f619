"""The application's own SQL, sent directly in the application's role: each named query with ids and
words of what the principal may not see."""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg

from memory_core.kernel import queries
from tests.isolation.asking import Leak
from tests.isolation.filling import Filled
from tests.isolation.principals import TENANTS, Person
from tests.isolation.world import Document, Memory

_PARAMETER = re.compile(rb"%\((\w+)\)[sbt]")
_WRITES = re.compile(rb"\b(INSERT INTO|UPDATE|DELETE FROM)\b")
_ID = re.compile(r"(^|_)(id|ids|uid|uids|owner|owners|artifact)$")
# What changes the connection itself, or waits.
_ASIDE = {"serve_principal", "tune_connection", "listen_to_log", "let_names_go"}
# Words and names of a tenant: the queries that read them show those of chunks and events that are
# seen.
_OF_TENANT = {"word_of_tenant", "name_of_tenant"}
_READABLE = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('public', 'log') AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
  AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1
"""
# Tables whose rows no one but those who see them may change.
_CONTENT = (
    *("artifact_revision", "revision_text", "revision_chunk", "semantic_event", "event_evidence"),
    *("event_jobs", "memory", "history_turn", "log.webhook_subscriptions"),
)


@dataclass
class Sent:
    """How the queries went, by name."""

    answered: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)


class Statements:
    def __init__(self, filled: Filled, dsn: str) -> None:
        self._filled = filled
        self._dsn = dsn
        self.names = sorted(set(queries.every()) - _ASIDE)

    def send(self, who: Person, rng: random.Random) -> Sent:
        """All queries as one principal; nothing of it stays."""
        sent = Sent()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("SET statement_timeout = '10s'; SET lock_timeout = '1s'")
            before = self._digest(connection, who)
            for name in self.names:
                for variant in ("foreign", "common"):
                    self._send(connection, who, name, variant, rng, sent, before)
        return sent

    def look_at_tables(self, who: Person) -> None:
        """All that the role may read, as it is: exactly what the principal sees."""
        world = self._filled.world
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(queries.get("serve_principal"), _settings(who))
            for (table,) in connection.execute(_READABLE).fetchall():
                rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()
                text = " ".join(row for (row,) in rows)
                # A change stays with those who saw what changed at that time.
                leaked = world.leaks(who, text, is_history=table == "log.events")
                if leaked and table not in _OF_TENANT:
                    raise Leak(f"{table} told {who} of {sorted(leaked)[:5]}")
            self._look_at_entries(connection, who)
            self._look_at_words(connection, who)

    def _look_at_entries(self, connection: psycopg.Connection[Any], who: Person) -> None:
        world = self._filled.world
        wanted = {document.uid for document in world.documents(who)}
        rows = connection.execute("SELECT DISTINCT artifact_uid FROM visible_chunk").fetchall()
        if (got := {uid for (uid,) in rows}) != wanted:
            raise Leak(f"chunks of {who}: too many {got - wanted}, missing {wanted - got}")
        events = {event.event_id for event in world.latest_events(who)}
        rows = connection.execute("SELECT event_id FROM visible_event WHERE is_latest").fetchall()
        if (got := {str(id_) for (id_,) in rows}) != events:
            raise Leak(f"events of {who}: too many {got - events}, missing {events - got}")

    def _look_at_words(self, connection: psycopg.Connection[Any], who: Person) -> None:
        """Words in nothing that is seen are as unknown as those that nothing has."""
        documents = self._filled.world.documents()
        words = {word for one in documents if not one.is_seen_by(who) for word in one.words}
        rows = connection.execute(
            queries.get("count_words_of_chunks"), {"words": [f"'{word}'" for word in words]}
        ).fetchall()
        if leaked_words := [word for word, found in rows if found]:
            raise Leak(f"{who} learns that others have {leaked_words[:5]}")

    def _send(
        self,
        connection: psycopg.Connection[Any],
        who: Person,
        name: str,
        variant: str,
        rng: random.Random,
        sent: Sent,
        before: str,
    ) -> None:
        text = queries.get(name)
        try:
            with connection.transaction(force_rollback=True):
                types = _types(connection, name, text)
                given = {
                    parameter: self._value(parameter, type_, who, variant, rng)
                    for parameter, type_ in types.items()
                }
                connection.execute(queries.get("serve_principal"), _settings(who))
                cursor = connection.execute(text, given)
                rows = cursor.fetchall() if cursor.description else []
                sent.answered.add(name)
                leaked = self._filled.world.leaks(who, str(rows), str(given), is_history=True)
                if leaked:
                    raise Leak(f"{name} {given} told {who} of {leaked}: {str(rows)[:1000]}")
                if (
                    not text.lstrip().upper().startswith((b"SELECT", b"EXPLAIN"))
                    and cursor.rowcount
                ):
                    connection.execute("SELECT set_config('role', 'none', true)")
                    if self._digest(connection, who) != before:
                        raise Leak(f"{name} {given} changed what {who} may not see")
        except psycopg.errors.InsufficientPrivilege:
            sent.forbidden.add(name)
        except psycopg.Error as error:
            sent.failed[name] = f"{type(error).__name__}: {error}"[:200]

    def _digest(self, connection: psycopg.Connection[Any], who: Person) -> str:
        """Of all rows that the principal may not see."""
        foreign = list(self._filled.world.foreign(who))
        uids = [item.uid for item in foreign if isinstance(item, Document)]
        memories = [item.memory_id for item in foreign if isinstance(item, Memory)]
        parts = []
        for table in _CONTENT:
            where, values = "artifact_uid = ANY (%s)", [uids]
            if table == "memory":
                where, values = "memory_id = ANY (%s)", [memories]
            elif table in {"history_turn", "log.webhook_subscriptions"}:
                where, values = "tenant_id <> %s", [TENANTS[who.tenant]]
            row = connection.execute(
                f"SELECT md5(coalesce(string_agg(t::text, '' ORDER BY t::text), '')) "
                f"FROM {table} t WHERE {where}",
                values,
            ).fetchone()
            parts.append(str(row))
        return " ".join(parts)

    def _value(
        self, name: str, type_: str, who: Person, variant: str, rng: random.Random
    ) -> object:
        foreign = [item for item in self._filled.world.foreign(who) if not item.is_gone]
        documents = [item for item in foreign if isinstance(item, Document)]
        words = [rng.choice(sorted(item.words)) for item in foreign if item.words]
        if variant == "common":
            words = ["launch", "report"]
        if type_.endswith("[]"):
            return list(self._listed(name, type_[:-2], documents, words, variant))
        if type_ == "uuid" and "tenant" in name:
            return rng.choice(list(TENANTS.values()))
        values: dict[str, object] = {
            "uuid": UUID(rng.choice(list(rng.choice(documents).jobs))),
            "boolean": rng.random() < 0.5,
            "timestamp with time zone": datetime.now(UTC) if rng.random() < 0.3 else None,
            "jsonb": "{}",
            "json": "{}",
            "tsquery": rng.choice(words),
            "interval": "1 day",
            "bytea": b"",
            "xid8": "0",
        }
        if type_ in {"integer", "bigint", "smallint", "double precision", "real", "numeric"}:
            return 100
        if type_ in values:
            return values[type_]
        return rng.choice(documents).uid if _ID.search(name) else rng.choice(words)

    def _listed(
        self, name: str, type_: str, documents: list[Document], words: list[str], variant: str
    ) -> Iterator[object]:
        if type_ == "uuid":
            for document in documents:
                yield from (UUID(job) for job in document.jobs)
            yield from (UUID(one) for one, e in self._filled.world.events.items()
                        if e.document in documents)  # fmt: skip
        elif type_ == "text" and "revision" in name:
            yield from (revision for document in documents for revision in document.contents)
        elif type_ == "text" and (_ID.search(name) or variant == "foreign"):
            yield from (document.uid for document in documents)
            yield from (f"'{word}'" if "word" in name else word for word in words)
        elif type_ == "text":
            yield from words


def _settings(who: Person) -> dict[str, str]:
    marks = ",".join(f'"{mark}"' for mark in who.principal.marks)
    tenant = str(TENANTS[who.tenant])
    return {"role": "memory_app", "tenant": tenant, "user": who.user, "marks": "{" + marks + "}"}


def _types(connection: psycopg.Connection[Any], name: str, text: bytes) -> dict[str, str]:
    """As Postgres understands the parameters of a query."""
    order = list(dict.fromkeys(_PARAMETER.findall(text)))
    if not order:
        return {}
    numbered = _PARAMETER.sub(lambda m: b"$%d" % (order.index(m[1]) + 1), text)
    with suppress(psycopg.Error), connection.transaction():
        connection.execute(b"PREPARE asked AS " + numbered.replace(b"%%", b"%"))
        row = connection.execute(
            "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'asked'"
        ).fetchone()
        connection.execute("DEALLOCATE asked")
        assert row is not None
        return dict(zip((one.decode() for one in order), row[0], strict=True))
    return {one.decode(): "text" for one in order}
