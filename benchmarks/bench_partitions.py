"""The cost of fifty thousand partitions: sensor tick, run start, the asset's page, retiring them.

    python -m benchmarks.bench_partitions

The same stack with a hundred keys and then with fifty thousand, side by side. SQL creates the keys
in between, with a materialisation each: the measured steps do not read their events.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import dagster as dg
import httpx
import psycopg
from mcp import Client
from psycopg.rows import dict_row
from rich.console import Console
from rich.table import Table

from memory_assets.partition_retirement import retire
from memory_core.kernel.database import Database
from memory_core.processing.stages import STAGES
from stack.layout import Layout
from stack.process import running_stack
from stack.services import dagster_storage_url
from stack.stack_state import StackState

FEW, MANY = 100, 50_000
ROUNDS, RUNS = 5, 3
RANGE = 20  # revisions of a run over several keys
BAR = 1.5
PATIENCE_SECONDS = 120.0
_RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_LOCATION = {"repositoryLocationName": "memory", "repositoryName": "__repository__"}

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""
_STATS = """
query Stats($id: ID!) {
  runOrError(runId: $id) {
    ... on Run { status stats { ... on RunStatsSnapshot { launchTime endTime } } }
  }
}"""
_SENSOR = """
query Sensor($selector: SensorSelector!) {
  sensorOrError(sensorSelector: $selector) { ... on Sensor { sensorState { id } } }
}"""
_STOP_SENSOR = "mutation Stop($id: String!) { stopSensor(id: $id) { __typename } }"
# What the browser requests on the Partitions tab, in the order of cost.
_HEALTH = """
query PartitionHealthQuery($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      partitionKeysByDimension { name type partitionKeys }
      assetPartitionStatuses {
        ... on DefaultPartitionStatuses {
          materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions
        }
      }
    }
  }
}"""
_DETAIL = """
query AssetPartitionDetailQuery($key: AssetKeyInput!, $partition: String!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      staleStatus(partition: $partition)
      assetMaterializations(partitions: [$partition], limit: 1) {
        runId metadataEntries { label }
      }
    }
  }
}"""


@dataclass(frozen=True)
class Seconds:
    tick: float
    run_of_one: float
    run_of_range: float
    page: float
    partition: float


class Bench:
    def __init__(self, state: StackState, folder: Path) -> None:
        assert state.postgres_dsn is not None
        assert state.mcp_url is not None
        self._state = state
        self._dsn = state.postgres_dsn
        self._postgres = psycopg.connect(self._dsn, autocommit=True, row_factory=dict_row)
        os.environ |= {
            "DAGSTER_HOME": str(Layout(folder).dagster_home),
            "DAGSTER_PG_URL": dagster_storage_url(self._dsn),
            "EVENTS_DB_DSN": self._dsn,
            "EXTRACTOR": "rules",
            "EMBEDDER": "local",
        }
        self._instance = dg.DagsterInstance.get()

    # --- preparing ---------------------------------------------------------------------------

    def ingest(self) -> None:
        async def send() -> None:
            async with Client(self._state.mcp_url or "") as client:
                for number in range(FEW):
                    answer = await client.call_tool(
                        "artifact_ingest",
                        {
                            "artifact_type": "note",
                            "source_system": "bench",
                            "title": f"Note {number}",
                            "content": f"Decisions\n- We go with plan {number}.\n",
                        },
                    )
                    assert not answer.is_error, answer.content

        asyncio.run(send())
        self._wait(
            lambda: not self._rows("SELECT 1 FROM event_jobs WHERE status <> 'DONE' LIMIT 1")
        )

    def stop_sensor(self) -> None:
        """Stop the sensor, so that all ticks are ours."""
        selector = {**_LOCATION, "sensorName": "pending_jobs"}
        sensor = self._graphql(_SENSOR, selector=selector)["sensorOrError"]["sensorState"]
        self._graphql(_STOP_SENSOR, id=sensor["id"])

    def add_keys(self) -> None:
        with self._postgres.transaction():
            self._postgres.execute(
                """INSERT INTO dagster.dynamic_partitions (partitions_def_name, partition)
                   SELECT 'revisions', format('filler-%%s:uid_%%s:rev_%%s', n, md5(n::text), n)
                   FROM generate_series(1, %s) AS n""",
                [MANY - FEW],
            )
            self._postgres.execute(
                """INSERT INTO dagster.event_logs
                       (run_id, event, dagster_event_type, timestamp, asset_key, partition)
                   SELECT 'filler', '{}', 'ASSET_MATERIALIZATION', now(), '["stored_events"]',
                          partition
                   FROM dagster.dynamic_partitions WHERE partition LIKE 'filler-%%'"""
            )
        self._postgres.execute("ANALYZE dagster.dynamic_partitions; ANALYZE dagster.event_logs")

    # --- measuring ---------------------------------------------------------------------------

    def measure(self) -> Seconds:
        keys = [
            row["partition"]
            for row in self._rows(
                "SELECT partition FROM dagster.dynamic_partitions "
                "WHERE partition NOT LIKE 'filler-%%' ORDER BY id"
            )
        ]
        key = {"path": ["stored_events"]}
        return Seconds(
            tick=self._median(self._tick),
            run_of_one=median(self._run(keys[0], keys[0]) for _ in range(RUNS)),
            run_of_range=median(self._run(keys[0], keys[RANGE - 1]) for _ in range(RUNS)),
            page=self._median(lambda: self._graphql(_HEALTH, key=key)),
            partition=self._median(lambda: self._graphql(_DETAIL, key=key, partition=keys[0])),
        )

    def _tick(self) -> None:
        """A tick with a hundred jobs to request runs for."""
        from memory_assets.memory_resource import MemoryResource
        from memory_assets.sensors import pending_jobs

        self._postgres.execute("UPDATE event_jobs SET status = 'PENDING', next_run_at = now()")
        self._postgres.execute("DELETE FROM job_request")
        try:
            context = dg.build_sensor_context(instance=self._instance)
            result = pending_jobs(context, memory=MemoryResource())
            assert isinstance(result, dg.SensorResult)
            assert len(result.run_requests or []) == 1
        finally:
            self._postgres.execute("UPDATE event_jobs SET status = 'DONE'")

    def _run(self, first: str, last: str) -> float:
        """From the launch of the process to the end of a run over these keys."""
        tags = [{"key": "dagster/partition", "value": first}]
        if first != last:
            tags = [{"key": _RANGE_TAGS[0], "value": first}, {"key": _RANGE_TAGS[1], "value": last}]
        params = {
            "selector": {
                **_LOCATION,
                "pipelineName": "__ASSET_JOB",
                "assetSelection": [{"path": [stage]} for stage in STAGES],
            },
            "mode": "default",
            "runConfigData": "{}",
            "executionMetadata": {"tags": tags},
        }
        run_id = self._graphql(_LAUNCH, params=params)["launchPipelineExecution"]["run"]["runId"]

        def run() -> Any:
            return self._graphql(_STATS, id=run_id)["runOrError"]

        self._wait(lambda: run()["status"] in {"SUCCESS", "FAILURE"})
        assert run()["status"] == "SUCCESS"
        stats = run()["stats"]
        return float(stats["endTime"] - stats["launchTime"])

    def retire(self) -> float:
        async def away() -> None:
            database = Database(
                self._dsn, max_connections=1, unasked="a benchmark looks at what is stored"
            )
            await database.open()
            try:
                result = await retire(database, FEW)
            finally:
                await database.close()
            assert result.live == FEW, result

        begun = time.perf_counter()
        asyncio.run(away())
        return time.perf_counter() - begun

    @staticmethod
    def _median(action: Callable[[], object]) -> float:
        action()  # caches and connections are warm in production as well
        seconds = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - begun)
        return median(seconds)

    def _rows(self, statement: str) -> list[dict[str, Any]]:
        return self._postgres.execute(statement.replace("%%", "%")).fetchall()  # type: ignore[arg-type]

    def _wait(self, question: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not question():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {PATIENCE_SECONDS:g} s")
            time.sleep(0.05)

    def _graphql(self, query: str, **variables: object) -> Any:
        answer = httpx.post(
            f"{self._state.dagster_url}/graphql",
            json={"query": query, "variables": variables},
            timeout=120,
            trust_env=False,
        )
        body = answer.json()
        assert "errors" not in body, body["errors"]
        return body["data"]


_OURS = {
    "tick": "a sensor tick that requests a run for 100 jobs",
    "run_of_one": "a run over one revision, process start to end",
    "run_of_range": f"a run over a range of {RANGE} revisions",
}
_DAGSTERS = {
    "page": "the Partitions tab: all keys and their states",
    "partition": "the page of one partition",
}


def main() -> None:
    offline = {"EXTRACTOR": "rules", "EMBEDDER": "local", "LOG_LEVEL": "WARNING"}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder), offline) as (_, state),
    ):
        bench = Bench(state, Path(folder))
        bench.ingest()
        bench.stop_sensor()
        few = bench.measure()
        bench.add_keys()
        many = bench.measure()
        seconds = bench.retire()
    table = Table("what", f"{FEW} keys", f"{MANY:,} keys", "ratio", "bar")
    for name, meaning in (_OURS | _DAGSTERS).items():
        before, after = getattr(few, name), getattr(many, name)
        ratio = after / before
        bar = "Dagster's own"
        if name in _OURS:
            bar = f"{'[green]✓[/]' if ratio <= BAR else '[red]✗[/]'} ≤ {BAR:g}"
        table.add_row(meaning, f"{before:.3f} s", f"{after:.3f} s", f"{ratio:.2f}", bar)
    table.add_section()
    table.add_row(
        f"retiring {MANY - FEW:,} keys",
        "",
        f"{seconds:.2f} s",
        "",
        f"{(MANY - FEW) / seconds:,.0f}/s",
    )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
