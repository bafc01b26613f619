"""The UI as a person sees it, in a real browser: no dialog in the way, and a click that works."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from memory_core.processing.stages import STAGES
from tests.browser import chromium, open_page
from tests.e2e.operating import Operator
from tests.e2e.pipeline import Json, asks_about
from tests.e2e.stacks import eventually, scripted_stack
from tests.patience import PATIENCE
from tests.scripted_provider import AuthError

CHROMIUM = chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
)
MILLISECONDS = PATIENCE * 1000
LINEAGE = "/locations/__repository__@memory/asset-groups/semantic_events/lineage"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with scripted_stack(tmp_path_factory.mktemp("browser")) as (stack, provider):
        yield Operator(stack, provider)


@pytest.fixture
def page(operator: Operator) -> Iterator[Page]:
    assert CHROMIUM is not None
    assert operator.stack.state.dagster_url is not None
    # A session of its own each: what greets a visitor for the first time would greet this one.
    with open_page(operator.stack.state.dagster_url, CHROMIUM) as page:
        page.set_default_timeout(MILLISECONDS)
        expect.set_options(timeout=MILLISECONDS)
        yield page


@pytest.fixture(scope="module")
def refused(operator: Operator) -> Json:
    """A revision that failed, and one that is done.

    Ingested before any page is open: Playwright's own event loop, once it runs, leaves no room for
    another in this thread.
    """
    operator.provider.enqueue(AuthError(only=asks_about("Kick-off minutes")))
    ingested = operator.ingest("Decision: begin on Monday.", title="Kick-off minutes")
    operator.wait_for(ingested, "FAILED")
    operator.wait_done(operator.ingest("Decision: spend less.", title="Budget"))
    operator.wait_idle()
    return ingested


def nothing_covers(page: Page) -> None:
    expect(page.get_by_role("dialog")).to_have_count(0)
    covering = page.evaluate(
        """() => {
            const root = document.querySelector('#root') ?? document.body;
            const at = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
            return at !== null && !root.contains(at) && at !== document.documentElement;
        }"""
    )
    assert not covering, "something lies over the middle of the page"


def test_the_lineage_shows_the_five_assets(page: Page) -> None:
    page.goto(LINEAGE)

    for stage in STAGES:
        expect(page.get_by_text(stage, exact=True).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    nothing_covers(page)


def test_a_failed_revision_is_found_by_its_name_and_turns_green_after_a_click(
    operator: Operator, refused: Json, page: Page
) -> None:
    key = operator.partition(refused)
    assert key.startswith("kick-off-minutes:")

    page.goto(f"/assets/stored_events?view=partitions&partition={key}")
    # The page cuts long names in their middle: the title is what a person goes by.
    named = page.get_by_text(re.compile(r"^kick-off-minutes:")).filter(visible=True)
    expect(named.first).to_be_visible()
    expect(page.get_by_text("Failed (1)")).to_be_visible()
    nothing_covers(page)

    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 partition")
    page.get_by_role("button", name="Launch 1 run").click()

    eventually(lambda: operator.job(refused)["status"] == "DONE", what="the job")
    expect(page.get_by_text("Failed (0)")).to_be_visible()
    expect(page.get_by_text("Materialized (2)")).to_be_visible()
    assert operator.job(refused)["origin"] == "ui"
    assert len(operator.events(refused)) == 1
    page.reload()
    expect(page.get_by_text("Kick-off minutes", exact=True).filter(visible=True)).to_have_count(1)
    # What the event says is its quote, which is therefore shown once.
    expect(page.get_by_text("Decision: begin on Monday.").filter(visible=True)).to_have_count(1)
    nothing_covers(page)


def test_another_page_cannot_change_dagster_or_listen_to_it(operator: Operator, page: Page) -> None:
    dagster = str(operator.stack.state.dagster_url)
    before = operator.runs_of_people()
    answered: list[int] = []
    page.on("response", lambda answer: answered.append(answer.status))
    location = 'repositoryLocationName: \\"memory\\"'
    mutation = f"mutation {{ shutdownRepositoryLocation({location}) {{ __typename }} }}"
    page.route("http://evil.example/", lambda route: route.fulfill(body="<p>A page.</p>"))
    page.goto("http://evil.example/")

    opened = page.evaluate(
        """async ([url, mutation]) => {
            const address = `${url}/graphql?query=${encodeURIComponent(mutation)}`;
            const image = new Image();
            const shown = new Promise(done => { image.onload = image.onerror = done; });
            image.src = address;
            await shown;
            const send = what => fetch(address, what).catch(() => null);
            await send({mode: 'no-cors'});
            await send({mode: 'no-cors', method: 'POST', body: 'x'});
            const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-ws');
            return await new Promise(done => {
                socket.onopen = () => done(true);
                socket.onerror = () => done(false);
            });
        }""",
        [dagster, mutation],
    )

    assert opened is False
    assert set(answered) <= {200, 403}, answered
    assert answered.count(403) == len(answered) - 1, "only the page itself was answered"
    assert operator.runs_of_people() == before
    assert operator.stack.times_ready("dagster-code") == 1


def test_a_run_is_watched_live_and_its_debug_file_downloaded(
    operator: Operator, refused: Json, page: Page
) -> None:
    run_id = operator.runs()[0]["runId"]
    received: list[str | bytes] = []
    page.on("websocket", lambda one: one.on("framereceived", lambda frame: received.append(frame)))

    page.goto(f"/runs/{run_id}")
    expect(page.get_by_text(run_id[:8]).first).to_be_visible()
    page.wait_for_function("() => document.body.innerText.includes('RUN_SUCCESS')")
    with page.expect_download() as download:
        page.evaluate("url => { location.href = url }", f"/download_debug/{run_id}")

    assert any("connection_ack" in str(frame) for frame in received)
    assert any('"data"' in str(frame) for frame in received)
    assert download.value.failure() is None
