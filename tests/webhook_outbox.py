"""The outbox as tests look at it, and how they move its clock."""

import psycopg


def waiting(sql: psycopg.Connection) -> int:
    row = sql.execute("SELECT count(*) FROM log.event_outbox").fetchone()
    assert row is not None
    return int(row[0])


def ended(sql: psycopg.Connection) -> list[tuple[str, int, str | None]]:
    return sql.execute(
        "SELECT outcome, attempts, error FROM log.webhook_deliveries ORDER BY id"
    ).fetchall()


def put_off(sql: psycopg.Connection) -> tuple[int, float, str]:
    """Attempts, seconds until the next one, and why."""
    row = sql.execute(
        "SELECT retry_count, extract(epoch FROM next_attempt_at - now())::float8, last_error "
        "FROM log.event_outbox WHERE leased_by IS NULL AND last_error IS NOT NULL"
    ).fetchone()
    return row if row is not None else (0, 0.0, "")


def make_due(sql: psycopg.Connection) -> None:
    sql.execute("UPDATE log.event_outbox SET next_attempt_at = now() WHERE leased_by IS NULL")
    sql.execute("UPDATE log.webhook_subscriptions SET not_before = NULL")
    sql.execute("NOTIFY memory_log")
