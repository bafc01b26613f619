"""event_diff: what two revisions of a document have in common and what not."""

import pytest

from tests.integration.planted_events import Event, Garden, ingest
from tests.tool_client import Json, ToolClient

KEPT = Event("The team decided to use Postgres.", time="2026-01-01", actors=("Alice Chen",))
OPENING = Event("The beta opens on 24 March.", category="Commitment", time="2026-03-24")
LATER = Event("The beta opens on 7 April.", category="Commitment", time="2026-04-07")
DROPPED = Event("Elena Petrova fears that the free plan loses money.", category="QualityRisk")
NEW = Event("Customers praised the darker colours of the tables.", category="Feedback")


def narratives(events: list[Json]) -> list[str]:
    return [event["narrative"] for event in events]


async def test_added_removed_changed_and_kept(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(KEPT, OPENING, DROPPED, source_id="plan")
    second = await garden.document(KEPT, LATER, NEW, source_id="plan")

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert (diff["from_revision"], diff["to_revision"]) == (first.revision, second.revision)
    assert narratives(diff["added"]) == [NEW.narrative]
    assert narratives(diff["removed"]) == [DROPPED.narrative]
    assert narratives(diff["kept"]) == [KEPT.narrative]
    [changed] = diff["changed"]
    assert changed["before"]["narrative"] == OPENING.narrative
    assert changed["after"]["narrative"] == LATER.narrative
    fields = {change["field"]: (change["before"], change["after"]) for change in changed["changes"]}
    assert set(fields) == {"narrative", "due_time", "quotes"}
    assert fields["narrative"] == (OPENING.narrative, LATER.narrative)
    assert fields["quotes"] == ([OPENING.words], [LATER.words])
    assert fields["due_time"][0].startswith("2026-03-24")
    assert fields["due_time"][1].startswith("2026-04-07")
    assert diff["job_statuses"] == {first.revision: "DONE", second.revision: "DONE"}


async def test_every_event_comes_with_its_evidence(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(KEPT, OPENING, DROPPED, source_id="plan")
    await garden.document(KEPT, LATER, NEW, source_id="plan")

    diff = await tools("event_diff", artifact_uid=first.uid)

    events = [*diff["added"], *diff["removed"], *diff["kept"]]
    events += [event for item in diff["changed"] for event in (item["before"], item["after"])]
    for event in events:
        document = await tools(
            "artifact_get", artifact_uid=first.uid, revision_id=event["revision_id"]
        )
        [evidence] = event["evidence"]
        start, end = evidence["start_char"], evidence["end_char"]
        assert document["content"][start:end] == evidence["quote"]


async def test_the_text_around_the_changes(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(KEPT, OPENING, source_id="plan")
    second = await garden.document(KEPT, LATER, source_id="plan")

    lines = (await tools("event_diff", artifact_uid=first.uid))["text_diff"].splitlines()

    assert lines[:2] == [f"--- {first.revision}", f"+++ {second.revision}"]
    assert f"-{OPENING.words}" in lines
    assert f"+{LATER.words}" in lines
    assert f" {KEPT.words}" in lines


async def test_actors_subject_and_confidence_are_compared(
    garden: Garden, tools: ToolClient
) -> None:
    first = await garden.document(KEPT, source_id="plan", content=f"One. {KEPT.words}")
    other = Event(
        KEPT.narrative, time=KEPT.time, actors=("Bob Ray",), subject="storage", confidence=0.5
    )
    await garden.document(other, source_id="plan", content=f"Two. {KEPT.words}")

    diff = await tools("event_diff", artifact_uid=first.uid)

    [changed] = diff["changed"]
    assert {change["field"] for change in changed["changes"]} == {
        "actors", "subject", "confidence",
    }  # fmt: skip


async def test_another_category_is_another_event(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(
        Event("It was moved.", category="Change"), source_id="plan", content="One. It was moved."
    )
    await garden.document(
        Event("It was moved.", category="Decision"), source_id="plan", content="Two. It was moved."
    )

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert [event["category"] for event in diff["added"]] == ["Decision"]
    assert [event["category"] for event in diff["removed"]] == ["Change"]
    assert diff["changed"] == diff["kept"] == []


async def test_by_default_the_two_newest_of_three(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(KEPT, source_id="plan")
    second = await garden.document(OPENING, source_id="plan")
    third = await garden.document(NEW, source_id="plan")

    newest = await tools("event_diff", artifact_uid=first.uid)
    whole = await tools(
        "event_diff",
        artifact_uid=first.uid,
        from_revision=first.revision,
        to_revision=third.revision,
    )
    up_to = await tools("event_diff", artifact_uid=first.uid, to_revision=second.revision)
    since = await tools("event_diff", artifact_uid=first.uid, from_revision=first.revision)
    backwards = await tools(
        "event_diff",
        artifact_uid=first.uid,
        from_revision=third.revision,
        to_revision=first.revision,
    )

    def ends(diff: Json) -> tuple[str, str]:
        return diff["from_revision"], diff["to_revision"]

    assert ends(newest) == (second.revision, third.revision)
    assert ends(whole) == ends(since) == (first.revision, third.revision)
    assert ends(up_to) == (first.revision, second.revision)
    assert ends(backwards) == (third.revision, first.revision)
    assert narratives(backwards["added"]) == [KEPT.narrative]


async def test_from_the_latest_there_is_nothing_to_compare_with(
    garden: Garden, tools: ToolClient
) -> None:
    await garden.document(KEPT, source_id="plan")
    latest = await garden.document(NEW, source_id="plan")

    error = await tools.refusal(
        "event_diff", artifact_uid=latest.uid, from_revision=latest.revision
    )

    assert error["error_code"] == "VALIDATION_ERROR"
    assert "latest" in error["error"]


async def test_up_to_a_revision_whose_predecessor_was_restored(
    garden: Garden, tools: ToolClient
) -> None:
    """A, B, A: what B changed is still what it changed of A."""
    first = await garden.document(KEPT, source_id="plan")
    second = await garden.document(OPENING, source_id="plan")
    await ingest(tools, KEPT.words, source_id="plan")

    diff = await tools("event_diff", artifact_uid=first.uid, to_revision=second.revision)

    assert (diff["from_revision"], diff["to_revision"]) == (first.revision, second.revision)


async def test_events_with_the_same_quote_are_told_apart_by_what_they_tell(
    garden: Garden, tools: ToolClient
) -> None:
    budget = Event("The budget was approved.", quote="Approved.")
    hiring = Event("The hiring plan was approved.", quote="Approved.")
    first = await garden.document(budget, hiring, source_id="plan", content="One. Approved.")
    await garden.document(
        Event("The hiring plan was approved in full.", quote="Approved."),
        Event("The budget was approved at last.", quote="Approved."),
        source_id="plan",
        content="Two. Approved.",
    )

    diff = await tools("event_diff", artifact_uid=first.uid)

    pairs = {item["before"]["narrative"]: item["after"]["narrative"] for item in diff["changed"]}
    assert pairs == {
        "The budget was approved.": "The budget was approved at last.",
        "The hiring plan was approved.": "The hiring plan was approved in full.",
    }


async def test_the_order_of_actors_is_no_change(garden: Garden, tools: ToolClient) -> None:
    text = "They met."
    first = await garden.document(
        Event(text, actors=("Alice Chen", "Bob Ray")), source_id="plan", content=f"One. {text}"
    )
    await garden.document(
        Event(text, actors=("Bob Ray", "Alice Chen")), source_id="plan", content=f"Two. {text}"
    )

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert narratives(diff["kept"]) == [text]


async def test_events_come_with_the_title_of_their_document(
    garden: Garden, tools: ToolClient
) -> None:
    first = await garden.document(KEPT, source_id="plan", title="The plan")
    await garden.document(KEPT, NEW, source_id="plan", title="The plan")

    diff = await tools("event_diff", artifact_uid=first.uid)
    listed = await tools("event_list_for_revision", artifact_uid=first.uid)

    titles = {event["title"] for event in (*diff["added"], *diff["kept"], *listed["events"])}
    assert titles == {"The plan"}


@pytest.mark.parametrize("text", ["words " * 20_000, "line of text\n" * 30 + "another\n" * 9_000])
async def test_a_long_text_gives_a_short_diff(tools: ToolClient, text: str) -> None:
    stored = await ingest(tools, f"One. {text}", source_id="long")
    await ingest(tools, f"Two. {text[::-1]}", source_id="long")

    diff = await tools("event_diff", artifact_uid=stored["artifact_uid"])

    assert 0 < len(diff["text_diff"]) < 50_000
    assert "more" in diff["text_diff"].splitlines()[-1]


async def test_what_was_restored_is_the_newest(garden: Garden, tools: ToolClient) -> None:
    """A, B, A: from B to A."""
    first = await garden.document(KEPT, source_id="plan")
    second = await garden.document(OPENING, source_id="plan")
    await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        source_id="plan",
        content=KEPT.words,
    )

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert (diff["from_revision"], diff["to_revision"]) == (second.revision, first.revision)
    assert narratives(diff["added"]) == [KEPT.narrative]
    assert narratives(diff["removed"]) == [OPENING.narrative]


async def test_a_revision_that_is_not_extracted_yet_says_so(
    garden: Garden, tools: ToolClient
) -> None:
    first = await garden.document(KEPT, source_id="plan")
    second = await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        source_id="plan",
        content="Something else.",
    )

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert diff["job_statuses"][second["revision_id"]] == "PENDING"
    assert diff["added"] == diff["removed"] == diff["changed"] == diff["kept"] == []
    assert f"{second['revision_id']} has no events yet (PENDING)" in diff["explanation"]
    assert "+Something else." in diff["text_diff"]


async def test_a_revision_that_is_extracted_again_is_compared_by_what_it_has(
    garden: Garden, tools: ToolClient
) -> None:
    first = await garden.document(KEPT, source_id="plan")
    second = await garden.document(KEPT, NEW, source_id="plan")
    done = await tools("event_diff", artifact_uid=first.uid)
    await tools("event_reextract", artifact_uid=first.uid, force=True)

    diff = await tools("event_diff", artifact_uid=first.uid)

    assert done["explanation"] is None
    assert narratives(diff["added"]) == narratives(done["added"]) == [NEW.narrative]
    assert second.revision in diff["explanation"]
    assert "extracted again" in diff["explanation"]


async def test_a_single_revision_has_nothing_to_compare_with(
    garden: Garden, tools: ToolClient
) -> None:
    only = await garden.document(KEPT, source_id="plan")

    error = await tools.refusal("event_diff", artifact_uid=only.uid)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert only.revision in error["error"]


@pytest.mark.parametrize("parameter", ["from_revision", "to_revision"])
async def test_a_revision_of_another_document_is_refused_and_the_own_ones_named(
    garden: Garden, tools: ToolClient, parameter: str
) -> None:
    mine = await garden.document(KEPT, source_id="plan")
    await garden.document(OPENING, source_id="plan")
    other = await garden.document(NEW, source_id="other")

    error = await tools.refusal("event_diff", artifact_uid=mine.uid, **{parameter: other.revision})

    assert error["error_code"] == "VALIDATION_ERROR"
    assert mine.revision in error["details"]["allowed"]


async def test_an_unknown_document_is_not_found(tools: ToolClient) -> None:
    error = await tools.refusal("event_diff", artifact_uid="uid_0000000000000000")

    assert error["error_code"] == "NOT_FOUND"


async def test_a_revision_compared_with_itself_has_kept_everything(
    garden: Garden, tools: ToolClient
) -> None:
    one = await garden.document(KEPT, NEW, source_id="plan")

    diff = await tools(
        "event_diff", artifact_uid=one.uid, from_revision=one.revision, to_revision=one.revision
    )

    assert len(diff["kept"]) == 2
    assert diff["added"] == diff["removed"] == diff["changed"] == []
    assert diff["text_diff"] == ""
