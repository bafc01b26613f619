"""Schema migrations: `sql/migrations/NNN_name.sql`, applied in order, once each.

It is safe if several processes start at once (advisory lock), if one is killed half-way (each file
is one transaction), and if an applied file is edited afterwards (checksums).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources

import psycopg

from memory_core.kernel import queries
from memory_core.kernel.database import postgres_faults
from memory_core.kernel.errors import ConfigurationFault

# Any constant that nothing else in the database uses.
_ADVISORY_LOCK = 0x6D656D6F7279
_CONNECT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    statements: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.statements.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations that this version of the program contains, in order."""
    folder = resources.files("sql").joinpath("migrations")
    scripts = [
        Migration(int(file.name.split("_", 1)[0]), file.name, file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    ]
    scripts.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in scripts]
    if numbers != list(range(1, len(scripts) + 1)):
        raise ConfigurationFault(f"sql/migrations must be numbered 1, 2, 3 …; found {numbers}")
    return scripts


def apply(
    dsn: str,
    migrations: Sequence[Migration] | None = None,
    *,
    begins: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Bring the database up to date. Returns the names of the applied files.

    `begins` is called with each name before the file is applied. The duration depends on the size
    of the memory, so there is no time-out.
    """
    wanted = shipped() if migrations is None else list(migrations)
    with _connected(dsn) as connection:
        connection.execute(queries.get("lock_migrations"), {"key": _ADVISORY_LOCK})
        try:
            connection.execute(queries.get("create_migration_table"))
            done = _applied(connection)
            _refuse_edited(wanted, done)
            missing = [item for item in wanted if item.number not in done]
            for item in missing:
                begins(item.name)
                _apply_one(connection, item)
            return [item.name for item in missing]
        finally:
            connection.execute(queries.get("unlock_migrations"), {"key": _ADVISORY_LOCK})


def notice(name: str) -> str:
    """The message for a person who waits for a migration."""
    return f"Migrating the memory: {name} …, this can take minutes."


def pending(dsn: str) -> list[str]:
    """The shipped migrations that the database lacks. Changes nothing."""
    with _connected(dsn) as connection:
        row = connection.execute(queries.get("migration_table_exists")).fetchone()
        done = _applied(connection) if row and row[0] else {}
    wanted = shipped()
    _refuse_edited(wanted, done)
    return [migration.name for migration in wanted if migration.number not in done]


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection]:
    with (
        postgres_faults(),
        psycopg.connect(dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS) as connection,
    ):
        yield connection


def _applied(connection: psycopg.Connection) -> dict[int, tuple[str, str]]:
    rows = connection.execute(queries.get("applied_migrations")).fetchall()
    return {number: (name, checksum) for number, name, checksum in rows}


def _refuse_edited(wanted: Sequence[Migration], done: dict[int, tuple[str, str]]) -> None:
    for migration in wanted:
        if migration.number in done and done[migration.number][1] != migration.checksum:
            raise ConfigurationFault(
                f"sql/migrations/{migration.name} was edited after it had been applied to this "
                "database. Restore the file as it was and put the change into a new, "
                "higher-numbered file."
            )
    newer = sorted(set(done) - {migration.number for migration in wanted})
    if newer:
        name = done[newer[-1]][0]
        raise ConfigurationFault(
            f"The database has migration {name}, which this version of the program does not "
            "know. Run the newer version, or restore a backup from before it."
        )


def _apply_one(connection: psycopg.Connection, migration: Migration) -> None:
    try:
        with connection.transaction():
            connection.execute(migration.statements.encode())
            connection.execute(
                queries.get("record_migration"),
                {
                    "number": migration.number,
                    "name": migration.name,
                    "checksum": migration.checksum,
                },
            )
    except psycopg.ProgrammingError as error:
        raise ConfigurationFault(
            f"sql/migrations/{migration.name} failed and nothing of it was kept: "
            f"{str(error).splitlines()[0]}"
        ) from error
