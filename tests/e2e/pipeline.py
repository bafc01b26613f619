"""The extraction pipeline as a test sees it: documents in over MCP, the queue and the events in
Postgres, runs and partitions in Dagster, calls at the scripted provider."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psutil
import psycopg
from mcp import Client
from psycopg.rows import dict_row

from memory_core.processing.stages import STAGES
from tests.e2e.stacks import Stack, eventually
from tests.patience import PATIENCE
from tests.scripted_provider import Body, ScriptedProvider, last_user_message

Json = dict[str, Any]
Row = dict[str, Any]
LOCATION = {"repositoryLocationName": "memory", "repositoryName": "__repository__"}

_STATUSES = """
query Statuses($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      assetPartitionStatuses {
        ... on DefaultPartitionStatuses { materializedPartitions failedPartitions }
      }
    }
  }
}"""
_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}"""
_RUN = """
query Run($id: ID!) {
  runOrError(runId: $id) { ... on Run { status tags { key value } startTime endTime } }
}"""
_RUNS = """
query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter) { ... on Runs { results { runId status tags { key value } } } }
}"""
_CHECKS = """
query Checks($key: AssetKeyInput!, $name: String!) {
  assetCheckExecutions(assetKey: $key, checkName: $name, limit: 50) {
    runId status evaluation { success metadataEntries { label } }
  }
}"""
_TICKS = """
query Ticks($sensor: SensorSelector!) {
  sensorOrError(sensorSelector: $sensor) {
    ... on Sensor { sensorState { ticks(limit: 50) { timestamp status } } }
  }
}"""


class Pipeline:
    """A stack whose model is the scripted provider."""

    def __init__(self, stack: Stack, provider: ScriptedProvider) -> None:
        self.stack = stack
        self.provider = provider

    # --- the tools, as an assistant uses them -------------------------------------------------

    def call(self, tool: str, /, **arguments: Any) -> Json:
        """The structured answer of a call that must succeed."""

        async def ask() -> Json:
            async with Client(self.stack.mcp_url) as client:
                answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            assert answer.structured_content is not None
            return answer.structured_content

        return asyncio.run(ask())

    def wait_for_job(self, job_id: str, *statuses: str) -> Json:
        """What job_status says as soon as it is one of these."""

        def reached() -> Json | None:
            job = self.call("job_status", job_id=job_id)
            return job if job["status"] in statuses else None

        status: Json = eventually(reached, within=PATIENCE, what=f"{job_id} {statuses}")
        return status

    # --- documents in ------------------------------------------------------------------------

    def ingest(self, content: str, **details: Any) -> Json:
        [result] = self.ingest_all([{"content": content, **details}])
        return result

    def ingest_all(self, documents: Sequence[Mapping[str, Any]], *, at_once: int = 1) -> list[Json]:
        async def send() -> list[Json]:
            slots = asyncio.Semaphore(at_once)

            async def one(document: Mapping[str, Any]) -> Json:
                arguments = {"artifact_type": "note", "source_system": "test", **document}
                async with slots:
                    answer = await client.call_tool("artifact_ingest", arguments)
                assert not answer.is_error, answer.content
                assert answer.structured_content is not None
                return answer.structured_content

            async with Client(self.stack.mcp_url) as client:
                return await asyncio.gather(*(one(document) for document in documents))

        return asyncio.run(send())

    @contextmanager
    def queue_closed(self) -> Iterator[None]:
        """Nothing becomes due meanwhile, neither what is ingested nor what is to be tried again;
        at the end all of it is, at once and together."""
        self.sql(
            """CREATE FUNCTION not_yet() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN NEW.next_run_at := '9000-01-01'; RETURN NEW; END $$"""
        )
        self.sql(
            "CREATE TRIGGER not_yet BEFORE INSERT OR UPDATE ON event_jobs "
            "FOR EACH ROW WHEN (NEW.status = 'PENDING') EXECUTE FUNCTION not_yet()"
        )
        try:
            yield
        finally:
            self.sql("DROP FUNCTION not_yet CASCADE")
            self.sql("UPDATE event_jobs SET next_run_at = now() WHERE next_run_at = '9000-01-01'")

    # --- Postgres ----------------------------------------------------------------------------

    def connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(self.stack.dsn, autocommit=True, row_factory=dict_row)

    def sql(self, statement: str, *parameters: Any) -> list[Row]:
        with self.connect() as connection:
            cursor = connection.execute(statement, parameters)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def locked(self, table: str, mode: str = "SHARE") -> Iterator[None]:
        """Parks a run at a place of our choice. In this mode reads pass and writers wait."""
        with self.connect() as connection:
            connection.execute("BEGIN")
            connection.execute(f"LOCK TABLE {table} IN {mode} MODE")
            try:
                yield
            finally:
                connection.close()

    @contextmanager
    def parked_before_the_claim(self, content: str, **details: Any) -> Iterator[Json]:
        """A document whose run wants to claim it and cannot. No process can change a job."""
        daemon = psutil.Process(self.stack.pid_of("dagster-daemon"))
        with ExitStack() as lock:
            # No run begins between the document and the lock.
            daemon.suspend()
            try:
                ingested = self.ingest(content, **details)
                lock.enter_context(self.locked("event_jobs"))
            finally:
                daemon.resume()
            eventually(
                lambda: self.waits_for("event_jobs", "SET max_attempts"),
                what="a run that wants to claim",
            )
            yield ingested

    def waits_for(self, table: str, doing: str = "") -> bool:
        """Whether a session is parked at the lock on this table, with a statement that has these
        words."""
        rows = self.sql(
            "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE NOT granted AND relation = %s::regclass AND strpos(query, %s) > 0",
            table,
            doing,
        )
        return bool(rows)

    def job(self, ingested: Json) -> Row:
        [row] = self.sql("SELECT * FROM event_jobs WHERE job_id = %s", ingested["job_id"])
        return row

    def wait_for(self, ingested: Json, status: str, *, within: float = PATIENCE) -> Row:
        def reached() -> Row | None:
            row = self.job(ingested)
            return row if row["status"] == status else None

        return eventually_up(reached, within=within, what=f"{ingested['job_id']} {status}")

    def wait_done(self, *ingested: Json, within: float = PATIENCE) -> list[Row]:
        return [self.wait_for(one, "DONE", within=within) for one in ingested]

    def settle(self, *ingested: Json, within: float = PATIENCE) -> list[Row]:
        """Wait until all are DONE, without the patience that back-off asks for."""

        def done() -> bool:
            self.hurry()
            return all(self.job(one)["status"] == "DONE" for one in ingested)

        eventually_up(done, within=within, what="all jobs DONE")
        return [self.job(one) for one in ingested]

    def hurry(self) -> None:
        """Back-off is over."""
        self.sql(
            "UPDATE event_jobs SET next_run_at = now() WHERE status = 'PENDING' "
            "AND next_run_at > now() AND next_run_at < '9000-01-01'"
        )

    def age_request(self, ingested: Json) -> None:
        """The request for a run is old enough for a look at whether that run has ended."""
        self.sql(
            "UPDATE job_request SET requested_at = requested_at - interval '1 hour' "
            "WHERE job_id = %s",
            ingested["job_id"],
        )

    def request_again(self, ingested: Json, *, bypass_cache: bool = False) -> None:
        """As a forced re-extraction does, whichever run holds the job."""
        self.sql(
            """UPDATE event_jobs SET status = 'PENDING', generation = generation + 1, attempts = 0,
                      next_run_at = now(), locked_at = NULL, locked_by = NULL, bypass_cache = %s
               WHERE job_id = %s""",
            bypass_cache,
            ingested["job_id"],
        )

    def events(self, ingested: Json) -> list[Row]:
        """Events of a revision in the order of their evidence, with it."""
        rows = self.sql(
            """SELECT e.event_id, e.category, e.narrative, e.subject_json, e.actors_json,
                      e.event_time, e.confidence, e.created_at,
                      (SELECT jsonb_agg(jsonb_build_object('start', v.start_char,
                              'end', v.end_char, 'quote', v.quote, 'chunk_id', v.chunk_id)
                              ORDER BY v.start_char, v.end_char)
                       FROM event_evidence v WHERE v.event_id = e.event_id) AS evidence
               FROM semantic_event e WHERE artifact_uid = %s AND revision_id = %s""",
            ingested["artifact_uid"],
            ingested["revision_id"],
        )
        assert all(row["evidence"] for row in rows), "an event without evidence"
        return sorted(rows, key=lambda row: (row["evidence"][0]["start"], row["category"]))

    def story(self, ingested: Json) -> list[tuple[Any, ...]]:
        """What the events say, apart from ids: equal for equal texts of two artifacts."""
        return [
            (
                row["category"],
                row["narrative"],
                row["subject_json"],
                row["actors_json"],
                row["event_time"],
                row["confidence"],
                [(item["start"], item["end"], item["quote"]) for item in row["evidence"]],
            )
            for row in self.events(ingested)
        ]

    def extraction(self, ingested: Json) -> Row:
        [row] = self.sql(
            "SELECT * FROM extraction WHERE artifact_uid = %s AND revision_id = %s",
            ingested["artifact_uid"],
            ingested["revision_id"],
        )
        return row

    def partition(self, ingested: Json) -> str:
        [row] = self.sql(
            "SELECT partition_key FROM artifact_revision "
            "WHERE artifact_uid = %s AND revision_id = %s",
            ingested["artifact_uid"],
            ingested["revision_id"],
        )
        return str(row["partition_key"])

    # --- the provider ------------------------------------------------------------------------

    def calls_by_chunk(self, title: str) -> Counter[str]:
        """How often each passage of the documents of this title was asked about."""
        return Counter(
            last_user_message(call.body)
            for call in self.provider.chats
            if asks_about(title)(call.body)
        )

    # --- Dagster -----------------------------------------------------------------------------

    def partitions(self, asset: str) -> tuple[set[str], set[str]]:
        """Keys of an asset that are shown green, and those shown red."""
        data = self.stack.graphql(_STATUSES, key={"path": [asset]})
        statuses = data["assetNodeOrError"]["assetPartitionStatuses"]
        return set(statuses["materializedPartitions"]), set(statuses["failedPartitions"])

    def is_green(self, ingested: Json, stages: Sequence[str] = STAGES) -> bool:
        key = self.partition(ingested)
        shown = [self.partitions(stage) for stage in stages]
        return all(key in green and key not in red for green, red in shown)

    def run_status(self, run_id: str) -> str:
        return str(self.stack.graphql(_RUN, id=run_id)["runOrError"]["status"])

    def wait_finished(self, run_id: str) -> str:
        finished = {"SUCCESS", "FAILURE", "CANCELED"}
        eventually(lambda: self.run_status(run_id) in finished, what=f"run {run_id} to end")
        return self.run_status(run_id)

    def runs(self, **filters: Any) -> list[Json]:
        runs: list[Json] = self.stack.graphql(_RUNS, filter=filters)["runsOrError"]["results"]
        return runs

    def active_runs(self) -> list[Json]:
        return self.runs(statuses=["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"])

    def runs_of(self, ingested: Json) -> list[Json]:
        """Runs for this revision alone."""
        tag = {"key": "dagster/partition", "value": self.partition(ingested)}
        return self.runs(tags=[tag])

    def launch(
        self,
        job: str,
        *,
        assets: Sequence[str] = (),
        partition: str | None = None,
        more: Json | None = None,
    ) -> str:
        """As the UI does. `more` goes into the selector."""
        selector: Json = {**LOCATION, "pipelineName": job, **(more or {})}
        if assets:
            selector |= {"assetSelection": [{"path": [asset]} for asset in assets]}
        tags = [{"key": "dagster/partition", "value": partition}] if partition else []
        params = {
            "selector": selector,
            "mode": "default",
            "runConfigData": "{}",
            "executionMetadata": {"tags": tags},
        }
        launched = self.stack.graphql(_LAUNCH, params=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def check_results(self, name: str) -> list[Json]:
        answer = self.stack.graphql(_CHECKS, key={"path": ["stored_events"]}, name=name)
        executions: list[Json] = answer["assetCheckExecutions"]
        return executions

    def ticks(self, sensor: str = "pending_jobs") -> list[float]:
        """When the sensor was evaluated, oldest first."""
        data = self.stack.graphql(_TICKS, sensor={**LOCATION, "sensorName": sensor})
        ticks = data["sensorOrError"]["sensorState"]["ticks"]
        return sorted(float(tick["timestamp"]) for tick in ticks)

    def wake_sensors(self) -> None:
        """They look now. Without a notification of a job they do so every half a minute."""
        self.sql("SELECT pg_notify('event_jobs', '')")

    def run_processes(self) -> list[psutil.Process]:
        """The processes of runs: forked from the one that the code server keeps for that."""
        return [run for keeper in self.run_keepers() for run in keeper.children()]

    def kill_runs(self) -> list[psutil.Process]:
        victims = self.run_processes()
        assert victims, "no run to kill"
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        return victims

    def run_keepers(self) -> list[psutil.Process]:
        """What runs are forked from."""
        server = psutil.Process(self.stack.pid_of("dagster-code"))
        return [child for child in server.children() if "forkserver" in _command(child)]

    def wait_idle(self) -> None:
        """No run under way and none of their processes left."""
        eventually(
            lambda: not self.active_runs() and not self.run_processes(), what="the end of all runs"
        )


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def eventually_up(question: Callable[[], Any], *, within: float, what: str) -> Any:
    """As `eventually`, and a Postgres that is down counts as no as well."""

    def asked() -> Any:
        try:
            return question()
        except psycopg.OperationalError as error:
            raise OSError("Postgres is down") from error

    return eventually(asked, within=within, what=what)


def asks_about(title: str, words: str = "") -> Callable[[Body], bool]:
    """Matches extraction calls for documents of this title, and of passages with these words."""

    def matches(body: Body) -> bool:
        return title_of(body) == title and words in last_user_message(body)

    return matches


def title_of(body: Body) -> str | None:
    """The title of the document that an extraction call is about."""
    messages = [json.loads(message["content"]) for message in body["messages"][1:-1]]
    return next((message["title"] for message in messages if message.get("title")), None)


_WORDS = (
    "harbour",
    "ledger",
    "willow",
    "copper",
    "signal",
    "meadow",
    "anchor",
    "lantern",
    "gravel",
    "compass",
    "orchard",
    "velvet",
    "timber",
    "falcon",
    "marble",
    "kettle",
    "saddle",
    "beacon",
    "thicket",
    "quarry",
)
_PEOPLE = ("Alice Morgan", "Bruno Keller", "Chen Wei", "Dora Santos")


def sentences(seed: int, count: int) -> list[str]:
    """Of ten, about three tell of something; each is unlike all others."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        a, b, c = rng.sample(_WORDS, 3)
        code = f"{a[:2]}{rng.randrange(10_000):04d}"
        telling = (
            f"Decision: the {a} {b} team goes with {c} {code}.",
            f"{rng.choice(_PEOPLE)} will bring the {a} {c} list {code} to the {b} review.",
            f"The {a} {code} is a risk when the {b} is under load with {c}.",
        )
        plain = f"The {a} and the {b} stood beside the {c} as in note {code} of that week."
        made.append(telling[number // 3 % 3] if number % 3 == 0 else plain)
    return made


def document(seed: int, count: int = 6, *, paragraph: int = 5) -> str:
    """A seeded text of `count` sentences; 18 of them make about 300 tokens."""
    made = sentences(seed, count)
    parts = [" ".join(made[at : at + paragraph]) for at in range(0, count, paragraph)]
    return "\n\n".join(parts) + "\n"
