"""From ingest to DONE: where the seconds of one small document go.

    python -m benchmarks.bench_latency

It uses the rules extractor, so that no model is waited for. The stages are computed from times that
the queue and Dagster record themselves.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psycopg
from mcp import Client
from psycopg.rows import dict_row
from rich.console import Console
from rich.table import Table

from stack.process import running_stack
from stack.stack_state import StackState

# A steady trickle of single notes.
NOTES = 20
EVERY_SECONDS = 2.0
TOTAL_BAR_SECONDS = 1.5
OURS_BAR_SECONDS = 1.0
PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.005
_STATS = """
query Stats($id: ID!) {
  runOrError(runId: $id) {
    ... on Run {
      stats { ... on RunStatsSnapshot { enqueuedTime launchTime startTime endTime } }
    }
  }
}"""
# What the process that runs are forked from spends once on importing our modules and Dagster.
_IMPORTS = """
import json, sys, time
seconds = []
for name in ("dagster", "memory_assets.definitions"):
    begun = time.perf_counter()
    __import__(name)
    seconds.append(time.perf_counter() - begun)
print(json.dumps(seconds))
"""


@dataclass(frozen=True)
class Stages:
    """Seconds."""

    ingest: float  # the call of artifact_ingest
    tick: float  # job visible → run requested
    queue: float  # requested → launched
    process: float  # launched → run started: interpreter, Dagster, our modules
    claim: float  # run started → job claimed
    work: float  # claimed → DONE

    @property
    def total(self) -> float:
        return self.tick + self.queue + self.process + self.claim + self.work


class Stopwatch:
    def __init__(self, state: StackState) -> None:
        assert state.postgres_dsn is not None
        assert state.mcp_url is not None
        self._state = state
        self._mcp_url = state.mcp_url
        self._postgres = psycopg.connect(state.postgres_dsn, autocommit=True, row_factory=dict_row)

    async def measure(self, number: int) -> Stages:
        async with Client(self._mcp_url) as client:
            begun = time.perf_counter()
            answer = await client.call_tool("artifact_ingest", _document(number))
            ingest = time.perf_counter() - begun
        assert answer.structured_content is not None
        job = await self._follow(answer.structured_content["job_id"])
        stats = self._stats(job["locked_by"])
        visible, claimed, done = (job[name] for name in ("visible", "claimed", "done"))
        return Stages(
            ingest=ingest,
            tick=stats["enqueuedTime"] - visible,
            queue=stats["launchTime"] - stats["enqueuedTime"],
            process=stats["startTime"] - stats["launchTime"],
            claim=claimed - stats["startTime"],
            work=done - claimed,
        )

    async def _follow(self, job_id: str) -> dict[str, Any]:
        """Follow the job until it is DONE. `locked_at` is reset by then, so it is read before."""
        claimed: float | None = None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            job = self._postgres.execute(
                """SELECT status, locked_by, extract(epoch FROM created_at)::float8 AS visible,
                          extract(epoch FROM locked_at)::float8 AS claimed,
                          extract(epoch FROM updated_at)::float8 AS done
                   FROM event_jobs WHERE job_id = %s""",
                [job_id],
            ).fetchone()
            assert job is not None
            claimed = job["claimed"] or claimed
            if job["status"] == "DONE":
                return {**job, "claimed": claimed}
            await asyncio.sleep(_POLL_SECONDS)
        raise TimeoutError(f"job {job_id} was not done within {PATIENCE_SECONDS:g} s")

    def _stats(self, run_id: str) -> dict[str, float]:
        answer = httpx.post(
            f"{self._state.dagster_url}/graphql",
            json={"query": _STATS, "variables": {"id": run_id}},
            timeout=30,
            trust_env=False,
        )
        stats: dict[str, float] = answer.json()["data"]["runOrError"]["stats"]
        return stats


def _document(number: int) -> dict[str, str]:
    return {
        "artifact_type": "note",
        "source_system": "bench",
        "source_id": f"latency-{number}",
        "title": f"Stand-up {number}",
        "content": f"Decisions\n- We go with Postgres for round {number}.\n\nAction items\n"
        f"- Alice Morgan will write the migration by 2024-06-{number + 1:02}.\n",
    }


def import_seconds() -> tuple[float, float]:
    """Seconds to import Dagster alone, and our modules in addition."""
    answer = subprocess.run(
        [sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True
    )
    dagster, ours = json.loads(answer.stdout.splitlines()[-1])
    return dagster, ours


def measure() -> list[Stages]:
    offline = {"EXTRACTOR": "rules", "EMBEDDER": "local", "LOG_LEVEL": "WARNING"}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder), offline) as (_, state),
    ):
        stopwatch = Stopwatch(state)

        async def after(number: int) -> Stages:
            await asyncio.sleep(number * EVERY_SECONDS)
            return await stopwatch.measure(number)

        async def trickle() -> list[Stages]:
            return await asyncio.gather(*(after(number) for number in range(NOTES)))

        return asyncio.run(trickle())


_MEANINGS = {
    "ingest": "artifact_ingest itself",
    "tick": "job visible → run requested (daemon, sensor)",
    "queue": "requested → launched (daemon)",
    "process": "launched → run started (fork, Dagster's own preparation)",
    "claim": "run started → job claimed",
    "work": "claimed → DONE",
}


def main() -> None:
    rounds = measure()
    dagster, ours = import_seconds()
    table = Table("stage", "what", "median", "best", "worst")
    for field in fields(Stages):
        seconds = [getattr(one, field.name) for one in rounds]
        table.add_row(
            field.name,
            _MEANINGS[field.name],
            *(f"{value:.2f} s" for value in (median(seconds), min(seconds), max(seconds))),
        )
    totals = [one.total for one in rounds]
    table.add_section()
    table.add_row(
        "total",
        "job visible → DONE",
        *(f"{value:.2f} s" for value in (median(totals), min(totals), max(totals))),
    )
    fast = "[green]✓[/]" if median(totals) <= TOTAL_BAR_SECONDS else "[red]✗[/]"
    bar = f"{NOTES} notes, one every {EVERY_SECONDS:g} s"
    table.add_row("", bar, f"≤ {TOTAL_BAR_SECONDS:g} s {fast}", "", "")
    own = median(one.claim + one.work for one in rounds)
    verdict = "[green]✓[/]" if own <= OURS_BAR_SECONDS else "[red]✗[/]"
    table.add_section()
    table.add_row(
        "ours",
        f"claim and work (imports, once per server: ours {ours:.2f} s, Dagster's {dagster:.2f} s)",
        f"{own:.2f} s",
        f"≤ {OURS_BAR_SECONDS:g} s",
        verdict,
    )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
