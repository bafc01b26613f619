"""event_diff: what two revisions of a document have in common and what not."""

import pytest

from tests.integration.planted_events import Event, Garden
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
    assert set(fields) == {"narrative", "event_time", "quotes"}
    assert fields["narrative"] == (OPENING.narrative, LATER.narrative)
    assert fields["quotes"] == ([OPENING.words], [LATER.words])
    assert fields["event_time"][0].startswith("2026-03-24")
    assert fields["event_time"][1].startswith("2026-04-07")
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
    assert diff["added"] == []


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
