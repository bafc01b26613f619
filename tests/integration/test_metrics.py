"""GET /metrics: what operators watch, cheap to ask for, and every name that deploy/ uses."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from mcp import Client
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql as sql_text

from benchmarks.bench_queue import fill
from mcp_server.http import application
from mcp_server.server import build_server
from memory_core.kernel import queries
from memory_core.kernel.database import Database
from memory_core.kernel.prices import Price
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.telemetry.prometheus import PREFIX, PrometheusMetrics
from memory_core.telemetry.table_counters import TableCounters
from tests.pipeline_client import Pipeline
from tests.tool_client import ToolClient

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = re.compile(rf"\b(?:{PREFIX}|process)_[a-z0-9_]+")
# Of the process that serves: the parts that only Linux tells are not in every test environment.
SUFFIXES = ("_bucket", "_sum", "_count")


def samples(text: bytes) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    by_name: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            by_name.setdefault(sample.name, {})[labels] = sample.value
    return by_name


def families(text: bytes) -> set[str]:
    """As queries may name them, also those without a sample yet."""
    return set(re.findall(r"^# TYPE (\S+) ", text.decode(), re.MULTILINE))


@pytest.fixture
async def browser(settings: Settings, runtime: Runtime) -> AsyncIterator[httpx.AsyncClient]:
    app = application(build_server(settings, runtime=runtime), settings)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3000") as client:
        yield client


async def test_the_route_answers_in_the_format_of_prometheus(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    measured = samples(answer.content)
    assert measured["mcp_memory_postgres_up"] == {(): 1.0}
    assert measured["process_resident_memory_bytes"][()] > 1e6
    assert (("status", "PENDING"),) in measured["mcp_memory_jobs"]
    assert measured["mcp_memory_pool_pool_max"][()] >= 1


async def test_a_foreign_host_is_refused_as_on_every_route(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/metrics", headers={"host": "evil.example"})
    assert answer.status_code == 421 or answer.status_code == 403
    assert b"mcp_memory" not in answer.content


async def test_calls_are_counted_by_tool_and_outcome(settings: Settings, runtime: Runtime) -> None:
    before = samples(await PrometheusMetrics(runtime).text()).get("mcp_memory_calls_total", {})
    async with Client(build_server(settings, runtime=runtime)) as client:
        await ToolClient(client)("memory_list")
        await ToolClient(client).refusal("memory_list", offset=-1)
    after = samples(await PrometheusMetrics(runtime).text())
    for outcome in ("ok", "VALIDATION_ERROR"):
        label = (("kind", "tool"), ("name", "memory_list"), ("outcome", outcome))
        assert after["mcp_memory_calls_total"][label] == before.get(label, 0) + 1
    label = (("kind", "tool"), ("name", "memory_list"))
    assert after["mcp_memory_call_seconds_count"][label] >= 2


async def test_without_postgres_the_process_tells_of_itself(settings: Settings) -> None:
    from pydantic import SecretStr

    away = SecretStr("postgresql://nobody@127.0.0.1:1/none")
    runtime = Runtime(settings.model_copy(update={"events_db_dsn": away}))
    measured = samples(await PrometheusMetrics(runtime).text())
    assert measured["mcp_memory_postgres_up"] == {(): 0.0}
    assert "process_cpu_seconds_total" in measured


async def test_what_extraction_did_since_the_last_look_is_added(
    openai: Pipeline, tools: ToolClient, database: Database
) -> None:
    counters = TableCounters({"gpt-4o": Price(2.0, 10.0)})
    async with database.session() as session:
        await counters.read(session)
    note = {"artifact_type": "note", "source_system": "notes"}
    await tools("artifact_ingest", **note, content="Decision: we launch in May.")
    await openai.extract()
    async with database.session() as session:
        await counters.read(session, delay=-1.0)
        await counters.read(session, delay=-1.0)  # nothing is counted twice
    assert counters.transitions["NONE", "PENDING"] == 1
    assert counters.transitions["PENDING", "PROCESSING"] == 1
    assert counters.transitions["PROCESSING", "DONE"] == 1
    assert sum(counters.model_calls.values()) == 1
    assert sum(counters.events.values()) == 1
    [(model, kind)] = [key for key in counters.tokens if key[1] == "prompt"]
    assert counters.tokens[model, kind] > 0


# --- at size ---------------------------------------------------------------------------------

SCRAPED = [
    ("jobs_by_status", {}),
    ("oldest_pending_job", {}),
    ("outbox_by_status", {}),
    ("telemetry_positions", {}),
    ("job_transitions_since", {"delay": 5.0}),
    ("model_calls_since", {"delay": 5.0}),
    ("extractions_since", {"delay": 5.0}),
]
LARGE = {"event_jobs", "job_event", "model_call", "extraction", "event_outbox", "artifact_revision"}
DONE = 20_000


@pytest.fixture
def long_history(settings: Settings) -> Settings:
    """Thousands of jobs that are done, ten that wait."""
    fill(settings.dsn, 1, DONE)
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE event_jobs SET status = 'DONE', finished_at = now() WHERE job_id NOT IN "
            "(SELECT job_id FROM event_jobs LIMIT 10)"
        )
        connection.execute(
            "INSERT INTO job_event (job_id, next_status, ts) "
            "SELECT job_id, 'PENDING', now() - interval '1 day' FROM event_jobs"
        )
        connection.execute(
            "INSERT INTO model_call (job_id, generation, kind, model, outcome, latency_ms, "
            "called_at) SELECT job_id, 1, 'extract', 'm', 'ok', 1, now() - interval '1 day' "
            "FROM event_jobs"
        )
        connection.execute(
            "INSERT INTO extraction (artifact_uid, revision_id, job_id, generation, run_id, "
            "requested_by, extractor, model, extract_version, merge_version, chunks, cache_hits, "
            "events, finished_at) SELECT artifact_uid, revision_id, job_id, 1, 'r', 'ingest', "
            "'rules', 'm', '1', '1', 1, 0, 0, now() - interval '1 day' FROM event_jobs"
        )
        for table in ("event_jobs", "job_event", "model_call", "extraction"):
            connection.execute(sql_text.SQL("VACUUM ANALYZE {}").format(sql_text.Identifier(table)))
    return settings


def scans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if plan.get("Relation Name") in LARGE:
        yield plan
    for child in plan.get("Plans", []):
        yield from scans(child)


@pytest.mark.parametrize(("query", "given"), SCRAPED)
def test_a_scrape_reads_what_waits_and_what_is_new(
    long_history: Settings, query: str, given: dict[str, Any]
) -> None:
    with psycopg.connect(long_history.dsn, autocommit=True) as connection:
        after: Any = datetime.now(UTC)
        if query in ("job_transitions_since", "model_calls_since"):
            positions = queries.get("telemetry_positions")
            row = connection.execute(positions).fetchone()
            assert row is not None
            after = row[0] if query == "job_transitions_since" else row[1]
        explained = connection.execute(
            b"EXPLAIN (ANALYZE, FORMAT JSON) " + queries.get(query), {**given, "after": after}
        ).fetchone()
    assert explained is not None
    for scan in scans(explained[0][0]["Plan"]):
        read = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        assert read <= 100, scan


# --- what deploy/ names ----------------------------------------------------------------------


def named_in_dashboard() -> set[str]:
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    exprs = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(exprs) > 20
    return {name for expr in exprs for name in NAME.findall(expr)}


def named_in_alerts() -> set[str]:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    exprs = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    assert len(exprs) > 8
    return {name for expr in exprs for name in NAME.findall(expr)}


@pytest.mark.parametrize("named", [named_in_dashboard, named_in_alerts])
async def test_every_metric_that_deploy_names_exists(runtime: Runtime, named: Any) -> None:
    text = await PrometheusMetrics(runtime).text()
    names = families(text) | set(samples(text))
    names |= {f"{name}{suffix}" for name in names for suffix in SUFFIXES}
    assert named() - names == set()


async def test_the_dashboard_shows_every_metric_of_ours(runtime: Runtime) -> None:
    text = await PrometheusMetrics(runtime).text()
    ours = {name for name in families(text) if name.startswith(PREFIX)} - {
        "mcp_memory_info",
        "mcp_memory_postgres_up",
        "mcp_memory_projection_led",
    }
    named = named_in_dashboard()
    assert {n for n in ours if n not in named and f"{n}_bucket" not in named} == set()
