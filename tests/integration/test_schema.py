"""The schema in the catalogue is the schema of the contract, and it defends itself."""

import contextlib
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import psycopg.sql
import pytest
from dagster_postgres import DagsterPostgresStorage
from psycopg.rows import dict_row

from memory_core.artifacts.document import (
    ArtifactType,
    RetentionPolicy,
    Sensitivity,
    VisibilityScope,
)
from memory_core.extraction.model import Category
from memory_core.kernel import migrations, queries
from memory_core.kernel.settings import Settings
from stack.services import dagster_storage_url
from tests.integration.schema_contract import (
    CHOICES,
    COLUMNS,
    DERIVED,
    FOREIGN_KEYS,
    INDEXES,
    OTHER_CHECKS,
    PRIMARY_KEYS,
    UNIQUES,
)

Catalogue = psycopg.Connection[dict[str, Any]]


@pytest.fixture(scope="module")
def dsn(services: Settings) -> Iterator[str]:
    """A database of its own, as the migrations and then Dagster's first start make it."""
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE schema_contract")
        migrated = urlunsplit(urlsplit(services.dsn)._replace(path="/schema_contract"))
        migrations.apply(migrated)
        DagsterPostgresStorage(dagster_storage_url(migrated))
        yield migrated
        admin.execute("DROP DATABASE schema_contract WITH (FORCE)")


@pytest.fixture
def catalogue(dsn: str) -> Iterator[Catalogue]:
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that leaves nothing behind."""
    with psycopg.connect(dsn) as opened:
        yield opened
        opened.rollback()


class TestCatalogue:
    def test_every_table_exists(self, catalogue: Catalogue) -> None:
        rows = catalogue.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        assert COLUMNS.keys() <= {row["tablename"] for row in rows}

    @pytest.mark.parametrize("table", COLUMNS)
    def test_every_column_has_its_type_nullability_and_default(
        self, catalogue: Catalogue, table: str
    ) -> None:
        columns = _columns(catalogue, table)
        assert {name: columns.get(name) for name in COLUMNS[table]} == COLUMNS[table]

    @pytest.mark.parametrize("table", COLUMNS)
    def test_further_columns_do_not_stand_in_the_way(
        self, catalogue: Catalogue, table: str
    ) -> None:
        demanding = [
            name
            for name, (_, nullable, default) in _columns(catalogue, table).items()
            if name not in COLUMNS[table]
            and (table, name) not in DERIVED
            and not nullable
            and default is None
        ]
        assert demanding == []

    @pytest.mark.parametrize("table", PRIMARY_KEYS)
    def test_primary_key(self, catalogue: Catalogue, table: str) -> None:
        assert _constraints(catalogue, table, "p") == [
            f"PRIMARY KEY ({', '.join(PRIMARY_KEYS[table])})"
        ]

    @pytest.mark.parametrize("table", UNIQUES)
    def test_unique_constraint(self, catalogue: Catalogue, table: str) -> None:
        assert _constraints(catalogue, table, "u") == [f"UNIQUE ({', '.join(UNIQUES[table])})"]

    @pytest.mark.parametrize(("table", "reference"), sorted(FOREIGN_KEYS))
    def test_foreign_key_cascades(self, catalogue: Catalogue, table: str, reference: str) -> None:
        assert f"{reference} ON DELETE CASCADE" in _constraints(catalogue, table, "f")

    @pytest.mark.parametrize(("table", "column"), sorted(CHOICES))
    def test_check_of_allowed_values(self, catalogue: Catalogue, table: str, column: str) -> None:
        checks = [
            check
            for check in _constraints(catalogue, table, "c")
            if check.startswith(f"CHECK (({column} = ANY (ARRAY[")
        ]
        assert [re.findall(r"'([^']*)'", check) for check in checks] == [CHOICES[table, column]]

    @pytest.mark.parametrize(
        ("table", "column", "values"),
        [
            ("artifact_revision", "artifact_type", ArtifactType),
            ("artifact_revision", "sensitivity", Sensitivity),
            ("artifact_revision", "visibility_scope", VisibilityScope),
            ("artifact_revision", "retention_policy", RetentionPolicy),
            ("semantic_event", "category", Category),
        ],
    )
    def test_the_allowed_values_are_those_of_the_code(
        self, table: str, column: str, values: type[StrEnum]
    ) -> None:
        assert [value.value for value in values] == CHOICES[table, column]

    @pytest.mark.parametrize(("table", "condition"), sorted(OTHER_CHECKS))
    def test_other_check(self, catalogue: Catalogue, table: str, condition: str) -> None:
        plain = [
            re.sub(r"::[a-z ]+|[()]|^CHECK ", "", check)
            for check in _constraints(catalogue, table, "c")
        ]
        assert condition in plain

    @pytest.mark.parametrize("name", INDEXES)
    def test_index(self, catalogue: Catalogue, name: str) -> None:
        assert _index(catalogue, name) == INDEXES[name]

    def test_every_index_can_be_used(self, catalogue: Catalogue) -> None:
        broken = catalogue.execute(
            "SELECT indexrelid::regclass FROM pg_index WHERE NOT (indisvalid AND indisready)"
        ).fetchall()
        assert broken == []

    def test_updated_at_has_its_trigger(self, catalogue: Catalogue) -> None:
        row = catalogue.execute(
            """SELECT pg_get_triggerdef(oid) AS definition, tgenabled FROM pg_trigger
               WHERE tgname = 'update_event_jobs_updated_at'"""
        ).fetchone()
        assert row is not None
        assert row["tgenabled"] == "O"
        assert re.search(
            r"BEFORE UPDATE ON public\.event_jobs FOR EACH ROW "
            r"EXECUTE FUNCTION (public\.)?update_updated_at_column\(\)",
            row["definition"],
        )

    def test_dagster_has_a_schema_of_its_own(self, catalogue: Catalogue) -> None:
        assert catalogue.execute("SELECT to_regnamespace('dagster') AS it").fetchone() != {
            "it": None
        }

    def test_no_extension_is_needed(self, catalogue: Catalogue) -> None:
        # Any Postgres 16 will do, also one where nothing may be installed.
        rows = catalogue.execute("SELECT extname FROM pg_extension").fetchall()
        assert {row["extname"] for row in rows} == {"plpgsql"}


class TestLatestRevision:
    def test_a_second_latest_revision_is_refused(self, connection: psycopg.Connection) -> None:
        _revision(connection, revision_id="rev_1", is_latest=True)
        with pytest.raises(psycopg.errors.UniqueViolation, match="one_latest"):
            _revision(connection, revision_id="rev_2", is_latest=True)

    def test_any_number_of_earlier_ones_is_fine(self, connection: psycopg.Connection) -> None:
        _revision(connection, revision_id="rev_1", is_latest=False)
        _revision(connection, revision_id="rev_2", is_latest=False)
        _revision(connection, revision_id="rev_3", is_latest=True)

    def test_each_artifact_has_its_own(self, connection: psycopg.Connection) -> None:
        _revision(connection, artifact_uid="uid_1")
        _revision(connection, artifact_uid="uid_2")

    def test_an_earlier_one_cannot_be_raised_as_well(self, connection: psycopg.Connection) -> None:
        _revision(connection, revision_id="rev_1", is_latest=False)
        _revision(connection, revision_id="rev_2", is_latest=True)
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("UPDATE artifact_revision SET is_latest = true")

    def test_the_same_revision_twice_is_refused(self, connection: psycopg.Connection) -> None:
        _revision(connection, is_latest=False)
        with pytest.raises(psycopg.errors.UniqueViolation):
            _revision(connection, is_latest=False)


class TestAllowedValues:
    @pytest.mark.parametrize("column", [name for table, name in CHOICES if "revision" in table])
    def test_of_a_revision(self, connection: psycopg.Connection, column: str) -> None:
        with pytest.raises(psycopg.errors.CheckViolation, match=column):
            _revision(connection, **{column: "something else"})

    @pytest.mark.parametrize("status", ["pending", "RUNNING", ""])
    def test_of_a_job(self, connection: psycopg.Connection, status: str) -> None:
        with pytest.raises(psycopg.errors.CheckViolation, match="status"):
            _insert(connection, "event_jobs", artifact_uid="u", revision_id="r", status=status)

    @pytest.mark.parametrize("category", ["decision", "Risk", ""])
    def test_of_an_event(self, connection: psycopg.Connection, category: str) -> None:
        with pytest.raises(psycopg.errors.CheckViolation, match="category"):
            _event(connection, category=category)

    @pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan")])
    def test_of_a_confidence(self, connection: psycopg.Connection, confidence: float) -> None:
        with pytest.raises(psycopg.errors.CheckViolation, match="confidence"):
            _event(connection, confidence=confidence)

    @pytest.mark.parametrize("confidence", [0.0, 1.0])
    def test_the_ends_of_the_range_belong_to_it(
        self, connection: psycopg.Connection, confidence: float
    ) -> None:
        _event(connection, confidence=confidence)

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            (5, 5),  # nothing between
            (6, 5),  # the wrong way round
            (-1, 5),  # before the text
        ],
    )
    def test_of_a_span(self, connection: psycopg.Connection, start: int, end: int) -> None:
        event = _event(connection)
        with pytest.raises(psycopg.errors.CheckViolation):
            _evidence(connection, event, start_char=start, end_char=end)


class TestJobs:
    def test_a_revision_has_one_job_of_a_kind(self, connection: psycopg.Connection) -> None:
        _insert(connection, "event_jobs", artifact_uid="u", revision_id="r")
        with pytest.raises(psycopg.errors.UniqueViolation):
            _insert(connection, "event_jobs", artifact_uid="u", revision_id="r")

    def test_a_new_one_waits_to_be_run_at_once(self, connection: psycopg.Connection) -> None:
        row = connection.execute(
            """INSERT INTO event_jobs (artifact_uid, revision_id) VALUES ('u', 'r')
               RETURNING status, attempts, max_attempts, generation, next_run_at <= now()"""
        ).fetchone()
        assert row == ("PENDING", 0, 5, 1, True)

    @pytest.mark.parametrize(
        "change",
        [
            "attempts = attempts + 1",
            "updated_at = 'epoch'",  # not even a writer who means to can hold it back
        ],
    )
    def test_updated_at_moves_with_every_change(
        self, connection: psycopg.Connection, change: str
    ) -> None:
        _insert(
            connection, "event_jobs", artifact_uid="u", revision_id="r", updated_at="2001-01-01"
        )
        row = connection.execute(
            f"UPDATE event_jobs SET {change} RETURNING updated_at = now()".encode()
        ).fetchone()
        assert row == (True,)


class TestDueDates:
    """Of "quoted words", those from 7 on say when it is due."""

    RIGHT: ClassVar = {"category": "Commitment", "due_time": "2026-03-06", "due_quote": "words",
                       "due_start_char": 7, "due_end_char": 12}  # fmt: skip

    @pytest.fixture(autouse=True)
    def text(self, connection: psycopg.Connection) -> None:
        _revision(connection)
        words = {"artifact_uid": "uid_1", "revision_id": "rev_1", "content": "quoted words"}
        _insert(connection, "revision_text", **words)

    def test_the_words_at_their_offsets_are_accepted(self, connection: psycopg.Connection) -> None:
        _event(connection, **self.RIGHT)

    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param({"due_quote": "swords"}, id="other words"),
            pytest.param({"due_start_char": 6, "due_end_char": 11}, id="another place"),
            pytest.param({"due_end_char": 13}, id="past the end"),
            pytest.param({"due_quote": None}, id="a place without words"),
            pytest.param({"due_time": None}, id="words without a date"),
            pytest.param({"category": "Decision"}, id="a decision"),
        ],
    )
    def test_anything_else_is_refused(
        self, connection: psycopg.Connection, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(psycopg.errors.CheckViolation):
            _event(connection, **(self.RIGHT | wrong))

    def test_the_words_never_change(self, connection: psycopg.Connection) -> None:
        _event(connection, **self.RIGHT)
        connection.execute("UPDATE semantic_event SET due_time = due_time + interval '1 day'")
        with pytest.raises(psycopg.errors.CheckViolation, match="written once"):
            connection.execute("UPDATE semantic_event SET due_start_char = 6, due_end_char = 11")


class TestCascades:
    def test_evidence_goes_with_its_event(self, connection: psycopg.Connection) -> None:
        _revision(connection)
        words = {"artifact_uid": "uid_1", "revision_id": "rev_1", "content": "quoted words"}
        _insert(connection, "revision_text", **words)
        gone, kept = _event(connection), _event(connection)
        _evidence(connection, gone)
        _evidence(connection, gone)
        _evidence(connection, kept)
        connection.execute("DELETE FROM semantic_event WHERE event_id = %s", [gone])
        rows = connection.execute("SELECT event_id FROM event_evidence").fetchall()
        assert rows == [(kept,)]

    def test_evidence_needs_a_text(self, connection: psycopg.Connection) -> None:
        with pytest.raises(psycopg.errors.CheckViolation, match="not the text that stands there"):
            _evidence(connection, _event(connection))

    def test_evidence_needs_an_event(self, connection: psycopg.Connection) -> None:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            _evidence(connection, uuid4())

    def test_the_text_needs_a_revision_and_goes_with_it(
        self, connection: psycopg.Connection
    ) -> None:
        _revision(connection)
        text = {"artifact_uid": "uid_1", "revision_id": "rev_1", "content": "Grüße 🎈"}
        _insert(connection, "revision_text", **text)
        connection.execute("DELETE FROM artifact_revision")
        assert connection.execute("SELECT count(*) FROM revision_text").fetchone() == (0,)
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            _insert(connection, "revision_text", **text)


def test_offsets_in_the_text_are_counted_in_code_points(connection: psycopg.Connection) -> None:
    text, quote = "Grüße 🎈 – we chose freemium.", "chose"
    start = text.index(quote)
    _revision(connection)
    _insert(connection, "revision_text", artifact_uid="uid_1", revision_id="rev_1", content=text)
    row = connection.execute(
        "SELECT substr(content, %s + 1, %s) FROM revision_text", [start, len(quote)]
    ).fetchone()
    assert row == (quote,)


def test_full_text_search_knows_letters_outside_ascii(connection: psycopg.Connection) -> None:
    _event(connection, narrative="Zoë hat die Preisänderung beschlossen")
    row = connection.execute(
        """SELECT count(*) FROM semantic_event
           WHERE to_tsvector('english', narrative) @@ websearch_to_tsquery('english', %s)""",
        ["zoë PREISÄNDERUNG"],
    ).fetchone()
    assert row == (1,)


DEFINITION = re.compile(
    r"(?:\s*--[^\n]*\n)*\s*(?:CREATE|ALTER|DROP|TRUNCATE|LISTEN|NOTIFY|SET|EXPLAIN|REINDEX)\b"
)
PREPARABLE = sorted(
    name for name, text in queries.every().items() if not DEFINITION.match(text.decode())
)


@pytest.mark.parametrize("name", PREPARABLE)
def test_every_named_query_fits_the_schema(connection: psycopg.Connection, name: str) -> None:
    """Postgres itself parses each one: no misspelt table, column or function."""
    text = queries.get(name).decode()
    numbers: dict[str, str] = {}
    for parameter in re.findall(r"%\((\w+)\)[sbt]", text):
        numbers.setdefault(parameter, f"${len(numbers) + 1}")
    numbered = re.sub(r"%\((\w+)\)[sbt]", lambda match: numbers[match[1]], text)
    # Of some parameters only the value that the program passes tells the type.
    with contextlib.suppress(
        psycopg.errors.IndeterminateDatatype, psycopg.errors.AmbiguousFunction
    ):
        connection.execute(f"PREPARE checked AS {numbered.replace('%%', '%')}".encode())


def _columns(catalogue: Catalogue, table: str) -> dict[str, tuple[str, bool, str | None]]:
    rows = catalogue.execute(
        """SELECT attname, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS nullable,
                  pg_get_expr(adbin, adrelid) AS default
           FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
           WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped""",
        [table],
    ).fetchall()
    return {row["attname"]: (row["type"], row["nullable"], row["default"]) for row in rows}


def _constraints(catalogue: Catalogue, table: str, kind: str) -> list[str]:
    rows = catalogue.execute(
        """SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint
           WHERE conrelid = %s::regclass AND contype = %s ORDER BY conname""",
        [table, kind],
    ).fetchall()
    return [row["definition"] for row in rows]


def _index(catalogue: Catalogue, name: str) -> tuple[str, bool, str, str, str | None] | None:
    row = catalogue.execute(
        """SELECT indrelid::regclass::text AS table, indisunique AS unique, amname AS method,
                  pg_get_indexdef(indexrelid) AS definition,
                  pg_get_expr(indpred, indrelid, true) AS predicate
           FROM pg_index
           JOIN pg_class ON pg_class.oid = indexrelid
           JOIN pg_am ON pg_am.oid = relam
           WHERE indexrelid = to_regclass(%s)""",
        [name],
    ).fetchone()
    if row is None:
        return None
    keys = re.search(r"USING \w+ \((.*?)\)(?: WHERE .*)?$", row["definition"])
    assert keys is not None
    return (row["table"], row["unique"], row["method"], keys[1], row["predicate"])


def _insert(connection: psycopg.Connection, table: str, **values: object) -> None:
    names = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, values))
    places = psycopg.sql.SQL(", ").join(map(psycopg.sql.Placeholder, values))
    connection.execute(
        psycopg.sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            psycopg.sql.Identifier(table), names, places
        ),
        values,
    )


def _revision(connection: psycopg.Connection, **changes: object) -> None:
    values = {
        "artifact_uid": "uid_1",
        "revision_id": "rev_1",
        "artifact_id": "art_1",
        "artifact_type": "doc",
        "source_system": "tests",
        "source_id": "1",
        "content_hash": "0" * 64,
        "token_count": 1,
        "is_chunked": False,
        "chunk_count": 1,
    }
    _insert(connection, "artifact_revision", **(values | changes))


def _event(connection: psycopg.Connection, **changes: object) -> object:
    values = {
        "event_id": uuid4(),
        "artifact_uid": "uid_1",
        "revision_id": "rev_1",
        "category": "Decision",
        "narrative": "The team decided.",
        "subject_json": '{"type": "project", "ref": "lantern"}',
        "actors_json": "[]",
        "confidence": 0.9,
        "extraction_run_id": uuid4(),
    }
    _insert(connection, "semantic_event", **(values | changes))
    return (values | changes)["event_id"]


def _evidence(connection: psycopg.Connection, event_id: object, **changes: object) -> None:
    values = {
        "event_id": event_id,
        "artifact_uid": "uid_1",
        "revision_id": "rev_1",
        "start_char": 0,
        "end_char": 5,
        "quote": "quote",
    }
    _insert(connection, "event_evidence", **(values | changes))
