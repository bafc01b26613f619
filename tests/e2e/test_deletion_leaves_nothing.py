"""What is deleted is nowhere: in no table of any schema and in no file of the data dir, but for the
pages that Postgres has freed and its write-ahead log."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core.kernel.child_environment import minimal_environment
from tests.e2e.pipeline import Json, Pipeline, asks_about
from tests.e2e.stacks import eventually, scripted_stack
from tests.scripted_provider import Held

# One for each place that a document has: the failure says which was forgotten.
PLACES = ("title", "text", "author", "participant", "sourceid", "url", "key", "folder", "file",
          "memory", "turn", "conversation")  # fmt: skip
TOKENS = {place: f"qv7x{place}" for place in PLACES}
TITLE = f"{TOKENS['title']} é"
# Where a document is told of while it is there: what follows would prove nothing otherwise.
TOLD = {
    "public.revision_text", "public.semantic_event", "public.extraction_cache",
    "dagster.runs", "dagster.run_tags", "dagster.event_logs", "dagster.asset_keys",
    "dagster.dynamic_partitions", "dagster.job_ticks",
}  # fmt: skip
# How many passages have which word is counted again by the hourly upkeep.
COUNTED = {"public.word_change", "public.word_frequency"}
KEPT = "Decision: the harbour ledger stays where it is."


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("forgetting")
    with scripted_stack(folder / "data", EMBEDDER="openai") as (stack, provider):
        yield Pipeline(stack, provider)


def content(words: str) -> str:
    return (
        f"Decision: we go with {TOKENS['text']} {words}.\n\n"
        f"{TOKENS['author'].title()} will send the {TOKENS['text']} list to Bruno Keller.\n"
    )


def by_tool(pipeline: Pipeline) -> Json:
    return pipeline.ingest(
        content("from Monday"),
        title=TITLE,
        author=TOKENS["author"].title(),
        participants=[f"{TOKENS['participant'].title()} Smith", "Bruno Keller"],
        source_id=f"notes/{TOKENS['sourceid']}",
        source_url=f"https://example.org/{TOKENS['url']}",
        idempotency_key=TOKENS["key"],
    )


def by_command(pipeline: Pipeline, folder: Path) -> None:
    file = folder / TOKENS["folder"] / f"{TOKENS['file']}.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"# {TOKENS['title']}\n\n{content('at the end')}", encoding="utf-8")
    command = [sys.executable, "-m", "mcp_server.cli", "ingest", str(folder)]
    environment = {**minimal_environment(), "DATA_DIR": str(pipeline.stack.data_dir)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=90)


def rows_with_tokens(pipeline: Pipeline) -> dict[str, list[str]]:
    """The tables that tell of one, and what of."""
    tables = pipeline.sql(
        "SELECT schemaname || '.' || quote_ident(tablename) AS name FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    )
    pattern = "|".join(TOKENS.values())
    traces: dict[str, list[str]] = {}
    for table in tables:
        rows = pipeline.sql(
            f"SELECT t::text AS row FROM {table['name']} t WHERE t::text ~* %s", pattern
        )
        if rows:
            traces[table["name"]] = [named_in(row["row"].lower().encode()) for row in rows]
    return traces


def named_in(content: bytes) -> str:
    return ", ".join(place for place, token in TOKENS.items() if token.encode() in content)


def files_with_tokens(data_dir: Path) -> dict[str, str]:
    files = {}
    for path in sorted(path for path in data_dir.rglob("*") if path.is_file()):
        name = path.relative_to(data_dir)
        if name.parts[:2] in {("postgres", "base"), ("postgres", "pg_wal")}:
            continue
        try:
            told_of = named_in(path.read_bytes().lower()) or named_in(str(name).lower().encode())
        except FileNotFoundError:
            continue
        if told_of:
            files[str(name)] = told_of
    return files


def everything(pipeline: Pipeline) -> dict[str, Any]:
    return {**rows_with_tokens(pipeline), **files_with_tokens(pipeline.stack.data_dir)}


def uids(pipeline: Pipeline) -> list[str]:
    rows = pipeline.sql("SELECT DISTINCT artifact_uid FROM artifact_revision WHERE title <> 'kept'")
    return [row["artifact_uid"] for row in rows]


def test_documents_memories_and_turns_leave_nothing(pipeline: Pipeline, tmp_path: Path) -> None:
    kept = pipeline.ingest(KEPT, title="kept")
    by_tool(pipeline)
    by_command(pipeline, tmp_path / "vault")
    memory = pipeline.call(
        "memory_store", content=f"Likes {TOKENS['memory']}", type="fact", confidence=0.9,
        conversation_id=TOKENS["conversation"],
    )  # fmt: skip
    pipeline.call(
        "history_append", conversation_id=TOKENS["conversation"], role="user",
        content=TOKENS["turn"], turn_index=0,
    )  # fmt: skip
    eventually(lambda: all(job["status"] == "DONE" for job in jobs(pipeline)), what="all events")
    pipeline.wait_idle()
    before = everything(pipeline)
    assert before.keys() >= TOLD

    for uid in uids(pipeline):
        assert pipeline.call("artifact_delete", artifact_uid=uid)["indexed"]
    pipeline.call("memory_delete", memory_id=memory["memory_id"])
    pipeline.call("history_delete", conversation_id=TOKENS["conversation"])

    assert everything(pipeline).keys() <= COUNTED
    assert pipeline.wait_finished(pipeline.launch("keep_house")) == "SUCCESS"
    assert everything(pipeline) == {}
    assert pipeline.call("artifact_get", artifact_uid=kept["artifact_uid"])["content"] == KEPT
    assert pipeline.events(kept)


def jobs(pipeline: Pipeline) -> list[dict[str, Any]]:
    return pipeline.sql("SELECT status FROM event_jobs")


def test_what_a_run_writes_of_a_document_deleted_meanwhile_goes_with_the_next_upkeep(
    pipeline: Pipeline,
) -> None:
    answer = Held(only=asks_about(TITLE))
    pipeline.provider.enqueue(answer)
    ingested = by_tool(pipeline)
    eventually(lambda: pipeline.job(ingested)["status"] == "PROCESSING", what="a run")

    pipeline.call("artifact_delete", artifact_uid=ingested["artifact_uid"])
    answer.gate.set()
    pipeline.wait_idle()
    assert pipeline.wait_finished(pipeline.launch("keep_house")) == "SUCCESS"

    assert everything(pipeline) == {}


def test_a_document_that_has_expired_goes_with_the_next_upkeep(pipeline: Pipeline) -> None:
    kept = pipeline.ingest(KEPT, title="kept")
    gone = by_tool(pipeline)
    eventually(lambda: all(job["status"] == "DONE" for job in jobs(pipeline)), what="all events")
    pipeline.wait_idle()
    pipeline.sql(
        "UPDATE artifact_revision SET retention_policy = 'custom', expires_at = now() "
        "WHERE artifact_uid = %s RETURNING 1",
        gone["artifact_uid"],
    )

    assert pipeline.wait_finished(pipeline.launch("keep_house")) == "SUCCESS"

    assert uids(pipeline) == []
    assert pipeline.call("artifact_get", artifact_uid=kept["artifact_uid"])["content"] == KEPT
    expired = pipeline.sql(
        "SELECT payload ->> 'artifact_uid' AS uid FROM log.events "
        "WHERE event_type = 'artifact.expired'"
    )
    assert [row["uid"] for row in expired] == [gone["artifact_uid"]]
