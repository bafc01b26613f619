"""What an operator does and sees: the pipeline, and the pages of Dagster about it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from tests.e2e.pipeline import LOCATION, Json, Pipeline

_BACKFILL = """
mutation Backfill($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
    ... on PartitionKeysNotFoundError { message }
  }
}"""
_BACKFILL_STATUS = """
query Status($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } }
}"""
_LOG = """
query Log($id: ID!) {
  logsForRun(runId: $id) {
    ... on EventConnection { events { ... on MessageEvent { message }
      ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } } } }
  }
}"""
_EVENTS = """
query Events($key: AssetKeyInput!, $partitions: [String!]) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      assetMaterializations(partitions: $partitions, limit: 1) {
        runId
        metadataEntries {
          label
          ... on IntMetadataEntry { intValue }
          ... on FloatMetadataEntry { floatValue }
          ... on TextMetadataEntry { text }
          ... on MarkdownMetadataEntry { mdStr }
          ... on UrlMetadataEntry { url }
        }
      }
    }
  }
}"""
_KEYS = """
query Keys($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode { partitionKeysByDimension { partitionKeys } }
  }
}"""
_STALE = """
query Stale($key: AssetKeyInput!, $partition: String!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode { staleStatus(partition: $partition) }
  }
}"""
_SCHEDULES = """
query Schedules($repository: RepositorySelector!) {
  schedulesOrError(repositorySelector: $repository) {
    ... on Schedules { results { scheduleState { id status } } }
  }
}"""
_STOP = """
mutation Stop($id: String!) { stopRunningSchedule(id: $id) { __typename } }"""


class Operator(Pipeline):
    """A pipeline whose UI is used."""

    def stop_schedules(self) -> None:
        schedules = self.stack.graphql(_SCHEDULES, repository=LOCATION)["schedulesOrError"]
        for schedule in schedules["results"]:
            answer = self.stack.graphql(_STOP, id=schedule["scheduleState"]["id"])
            kind = answer["stopRunningSchedule"]["__typename"]
            assert kind == "ScheduleStateResult", answer

    # --- asking ------------------------------------------------------------------------------

    def launch_backfill(self, assets: Sequence[str], partitions: Sequence[str]) -> str:
        params = {
            "assetSelection": [{"path": [asset]} for asset in assets],
            "partitionNames": list(partitions),
        }
        answer = self.stack.graphql(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def launch_check(self, asset: str, check: str) -> str:
        selection = [{"assetKey": {"path": [asset]}, "name": check}]
        return self.launch(
            "__ASSET_JOB", more={"assetSelection": [], "assetCheckSelection": selection}
        )

    def command(self, *words: str) -> str:
        """`mcp-memory …` on the data dir of the stack."""
        done = subprocess.run(
            [sys.executable, "-m", "mcp_server.cli", *words],
            env={**os.environ, **self.stack.variables, "DATA_DIR": str(self.stack.data_dir)},
            cwd=self.stack.data_dir,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # --- seeing ------------------------------------------------------------------------------

    def backfill_status(self, backfill: str) -> str:
        answer = self.stack.graphql(_BACKFILL_STATUS, id=backfill)["partitionBackfillOrError"]
        return str(answer["status"])

    def tags(self, run_id: str) -> dict[str, str]:
        [run] = self.runs(runIds=[run_id])
        return {tag["key"]: tag["value"] for tag in run["tags"]}

    def runs_of_people(self) -> list[str]:
        """Runs that no sensor and no schedule has requested."""
        ours = {"dagster/sensor_name", "dagster/schedule_name"}
        return sorted(
            run["runId"]
            for run in self.runs()
            if not ours.intersection(tag["key"] for tag in run["tags"])
        )

    def said(self, run_id: str) -> str:
        """Everything that the log of the run says."""
        events = self.stack.graphql(_LOG, id=run_id)["logsForRun"]["events"]
        return "\n".join(str(event) for event in events)

    def _last(self, asset: str, partition: str | None) -> Json:
        node = self.stack.graphql(
            _EVENTS, key={"path": [asset]}, partitions=[partition] if partition else None
        )["assetNodeOrError"]
        [event] = node["assetMaterializations"]
        launched: Json = event
        return launched

    def metadata(self, asset: str, partition: str | None = None) -> dict[str, Any]:
        entries = self._last(asset, partition)["metadataEntries"]
        return {entry.pop("label"): next(iter(entry.values()), None) for entry in entries}

    def maker(self, asset: str, partition: str) -> str:
        """The run that the page of a partition names."""
        return str(self._last(asset, partition)["runId"])

    def live_partitions(self) -> list[str]:
        node = self.stack.graphql(_KEYS, key={"path": ["stored_events"]})["assetNodeOrError"]
        [dimension] = node["partitionKeysByDimension"]
        keys: list[str] = dimension["partitionKeys"]
        return keys

    def stale_status(self, asset: str, partition: str) -> str:
        node = self.stack.graphql(_STALE, key={"path": [asset]}, partition=partition)
        return str(node["assetNodeOrError"]["staleStatus"])

    # --- time passes ---------------------------------------------------------------------------

    def age_runs(self, run_ids: Sequence[str], *, days: int) -> None:
        self.sql(
            """UPDATE dagster.runs
               SET create_timestamp = create_timestamp - make_interval(days => %s),
                   update_timestamp = update_timestamp - make_interval(days => %s),
                   start_time = start_time - 86400 * %s, end_time = end_time - 86400 * %s
               WHERE run_id = ANY(%s)""",
            *[days] * 4,
            list(run_ids),
        )

    def pretend_a_run_never_ended(self) -> str:
        """A copy of some run, said to wait in the queue of another deployment."""
        run_id = str(uuid4())
        self.sql(
            """INSERT INTO dagster.runs (run_id, snapshot_id, pipeline_name, status, run_body,
                                         partition, partition_set, create_timestamp,
                                         update_timestamp)
               SELECT %s, snapshot_id, pipeline_name, 'MANAGED',
                      replace(replace(run_body, run_id, %s), '"SUCCESS"', '"MANAGED"'),
                      partition, partition_set, create_timestamp, update_timestamp
               FROM dagster.runs WHERE status = 'SUCCESS' ORDER BY id LIMIT 1""",
            run_id,
            run_id,
        )
        return run_id
