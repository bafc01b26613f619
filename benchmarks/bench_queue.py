"""Claiming jobs from a queue of ten thousand, compared with a queue of a million.

    python -m benchmarks queue

The specification requires a claim within 50 ms. Nine of ten jobs are done; every tenth of the
others waits for its back-off. A claim is what a run does: find due jobs, then take 20 of them.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import quantiles

import psycopg
from rich.console import Console
from rich.table import Table

from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.queue import jobs
from stack.connection import connected

SIZES = (10_000, 1_000_000)
ROUNDS = 40
AT_ONCE = 20
TARGET_MS = 50.0
TARGET_RATIO = 2.0
_REVISIONS = """
INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type, source_system,
                               source_id, content_hash, token_count, is_chunked, chunk_count,
                               partition_key)
SELECT 'uid_' || n, 'rev_' || n, 'art_' || n, 'note', 'bench', n::text, n::text, 100, false, 0,
       'note ' || n
FROM generate_series(%(first)s::int, %(last)s::int) n"""
_JOBS = """
INSERT INTO event_jobs (artifact_uid, revision_id, status, next_run_at, created_at, finished_at)
SELECT 'uid_' || n, 'rev_' || n, CASE WHEN n %% 10 = 0 THEN 'PENDING' ELSE 'DONE' END,
       now() + CASE WHEN n %% 100 = 0 THEN interval '1 hour' ELSE interval '-1 hour' END,
       now() - interval '1 day' + n * interval '1 millisecond',
       CASE WHEN n %% 10 <> 0 THEN now() END
FROM generate_series(%(first)s::int, %(last)s::int) n"""


def fill(dsn: str, first: int, last: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Without triggers: their rows are not measured here.
        connection.execute("SET session_replication_role = replica")
        for statement in (_REVISIONS, _JOBS):
            connection.execute(statement, {"first": first, "last": last})
        connection.execute("VACUUM ANALYZE artifact_revision, event_jobs")


async def claim_times(dsn: str) -> list[float]:
    """Milliseconds per claim."""
    database = Database(dsn, max_connections=2, unasked="a benchmark looks at what is stored")
    await database.open()
    times = []
    try:
        for number in range(ROUNDS):
            begun = time.perf_counter()
            due = await jobs.claimable(database, limit=AT_ONCE)
            claimed = await jobs.claim(
                database, [job.partition_key for job in due], f"run {number}"
            )
            times.append((time.perf_counter() - begun) * 1000)
            assert len(claimed) == AT_ONCE, f"claimed {len(claimed)} of {len(due)}"
    finally:
        await database.close()
    return times


def main() -> None:
    console = Console()
    table = Table("jobs", "p50 ms", "p95 ms")
    p95: list[float] = []
    with tempfile.TemporaryDirectory(prefix="memory-bench-", ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None, data_dir=Path(folder), embedder="local", extractor="rules"
        )
        with connected(settings) as resolved:
            filled = 0
            for size in SIZES:
                fill(resolved.dsn, filled + 1, size)
                filled = size
                times = asyncio.run(claim_times(resolved.dsn))
                p95.append(quantiles(times, n=20)[18])
                table.add_row(f"{size:,}", f"{quantiles(times, n=2)[0]:.1f}", f"{p95[-1]:.1f}")
    console.print(table)
    console.print(
        f"p95 at {SIZES[1]:,}: {p95[1]:.1f} ms (bar {TARGET_MS:g}); "
        f"{p95[1] / p95[0]:.2f} × that at {SIZES[0]:,} (bar {TARGET_RATIO:g})"
    )
