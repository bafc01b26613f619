"""Takes the pictures of docs/operating.md again, from a real stack with the demo's documents.

    .venv/bin/python docs/make_screenshots.py

Needs Chromium on the PATH (Debian: apt-get install chromium) and about two minutes. The model is
the tests' scripted provider: no key, no network.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests" / "e2e")]

from operating import Operator  # noqa: E402
from pipeline import Json, told  # noqa: E402
from playwright.sync_api import Page, expect  # noqa: E402
from stacks import eventually, scripted_stack  # noqa: E402

from memory_core.processing.stages import STAGES  # noqa: E402
from tests.browser import chromium, open_page  # noqa: E402
from tests.pipeline_client import bump  # noqa: E402
from tests.scripted_provider import AuthError, ScriptedProvider  # noqa: E402

IMAGES = PROJECT / "docs" / "images"
GROUP = "/locations/__repository__@memory/asset-groups/semantic_events/lineage"
FAILING = "parking"
DOCUMENTS_PER_REPORT = 3


def main() -> None:
    executable = chromium()
    if executable is None:
        sys.exit("Chromium is not installed (Debian: apt-get install chromium); nothing was made.")
    IMAGES.mkdir(exist_ok=True)
    with _stack() as operator:
        keys = _prepare(operator)
        url = operator.stack.state.dagster_url
        assert url is not None
        with open_page(url, executable) as page:
            # The first page of all takes longest: it loads the whole UI.
            page.goto(GROUP)
            expect(page.get_by_text("stored_events").first).to_be_visible(timeout=60_000)
            for name, scene in _scenes(operator, keys).items():
                scene(page)
                _settle(page)
                page.screenshot(path=IMAGES / f"{name}.png")
                print(f"docs/images/{name}.png", flush=True)


@contextmanager
def _stack() -> Iterator[Operator]:
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as folder,
        scripted_stack(
            Path(folder) / "data",
            ScriptedProvider(latency=0.2),
            PROMPTS_DIR=_prompts(Path(folder)),
            MODEL_PRICES="gpt-4o=2.50/10.00",
        ) as (stack, provider),
    ):
        yield Operator(stack, provider)


def _prompts(folder: Path) -> str:
    (folder / "prompts").mkdir()
    return str(folder / "prompts")


def _raise_prompt(operator: Operator) -> None:
    """As a deployment does: a new file, and a new code server."""
    bump(Path(operator.stack.variables["PROMPTS_DIR"]), extract=2)
    ready = operator.stack.times_ready("dagster-code")
    os.kill(operator.stack.pid_of("dagster-code"), signal.SIGKILL)
    eventually(lambda: operator.stack.times_ready("dagster-code") > ready, what="a code server")


def _prepare(operator: Operator) -> dict[str, str]:
    """Documents in, one that fails, figures as they grow, a run by hand, a backfill."""
    operator.stop_schedules()
    operator.provider.enqueue(AuthError(only=told(FAILING)))
    documents = []
    for entry in json.loads((PROJECT / "demo" / "manifest.json").read_text("utf-8")):
        content = (PROJECT / "demo" / entry.pop("file")).read_bytes().decode()
        documents.append({**entry, "content": content})
    ingested: list[Json] = []
    for at in range(0, len(documents), DOCUMENTS_PER_REPORT):
        some = operator.ingest_all(documents[at : at + DOCUMENTS_PER_REPORT])
        for document, one in zip(documents[at:], some, strict=False):
            operator.wait_for(one, "FAILED" if document["title"] == FAILING else "DONE")
        ingested += some
        operator.wait_finished(operator.launch("report_health"))
    titles = [document["title"] for document in documents]
    good, failed = ingested[0], ingested[titles.index(FAILING)]
    keys = {"good": operator.partition(good), "failed": operator.partition(failed)}
    operator.wait_finished(
        operator.launch("__ASSET_JOB", assets=STAGES[2:], partition=keys["good"])
    )
    chosen = [operator.partition(one) for one in ingested[1:6]]
    backfill = operator.launch_backfill(STAGES[2:], chosen)
    deadline = time.monotonic() + 90
    while operator.backfill_status(backfill) == "REQUESTED" and time.monotonic() < deadline:
        time.sleep(0.5)
    operator.wait_idle()
    if operator.backfill_status(backfill) != "COMPLETED_SUCCESS":
        runs = operator.runs(tags=[{"key": "dagster/backfill", "value": backfill}])
        sys.exit("\n".join(f"{run['status']}: {operator.said(run['runId'])}" for run in runs))
    # Last: a run that materialises an asset shows its checks as skipped.
    for job in ("verify_events_are_fresh", "integrity", "keep_house"):
        operator.wait_finished(operator.launch(job))
    return keys


def _scenes(operator: Operator, keys: dict[str, str]) -> dict[str, Callable[[Page], None]]:
    def partition(key: str) -> str:
        return f"/assets/stored_events?view=partitions&partition={key}"

    def lineage(page: Page) -> None:
        run_id = operator.launch("__ASSET_JOB", assets=STAGES, partition=keys["failed"])
        operator.wait_finished(run_id)
        page.set_viewport_size({"width": 1280, "height": 520})
        page.goto(GROUP)

    def asset(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto("/assets/stored_events")

    def revision(page: Page) -> None:
        page.set_viewport_size({"width": 1120, "height": 820})
        page.goto(partition(keys["good"]))

    def failed(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 700})
        page.goto(partition(keys["failed"]))
        expect(page.get_by_text("View logs").first).to_be_visible(timeout=60_000)

    def materialize(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(partition(keys["good"]))
        _settle(page)
        page.get_by_role("button", name="Materialize").first.click()
        expect(page.get_by_role("button", name="Launch 1 run")).to_be_visible()

    def runs(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 840})
        page.goto("/runs")

    def backfill(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 500})
        page.goto("/runs?view=backfills")
        page.get_by_text("Backfills", exact=True).first.click()

    def checks(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto("/assets/stored_events?view=checks")

    def plots(page: Page) -> None:
        page.set_viewport_size({"width": 1120, "height": 1080})
        page.goto("/assets/pipeline_health")
        _settle(page)
        page.get_by_text("Plots", exact=True).first.click()

    def upkeep(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 960})
        page.goto("/assets/housekeeping")

    def automation(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto("/automation")

    def trial(page: Page) -> None:
        _raise_prompt(operator)
        # The web server notices a new code server a little later.
        eventually(
            lambda: operator.stale_status("stored_events", keys["good"]) == "STALE",
            what="stale partitions",
        )
        operator.wait_finished(operator.launch("try_prompt"))
        page.set_viewport_size({"width": 1120, "height": 900})
        page.goto("/assets/prompt_trial")
        page.get_by_text("Show Markdown").first.click(timeout=60_000)
        # The dialog opens at its end, where its button is.
        page.get_by_text("Trial: openai").last.scroll_into_view_if_needed()

    def stale(page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 520})
        page.goto(partition(keys["good"]))
        page.get_by_text("Unsynced").first.hover(timeout=60_000)

    return {
        scene.__name__: scene
        for scene in (
            failed,
            revision,
            materialize,
            runs,
            backfill,
            checks,
            plots,
            upkeep,
            automation,
            # Last, when what failed has been done again and all is green.
            lineage,
            asset,
            # A prompt changes.
            trial,
            stale,
        )
    }


def _settle(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    # Dagster fades and lays out after its last answer; nothing on the page says when.
    page.wait_for_timeout(1500)


if __name__ == "__main__":
    main()
