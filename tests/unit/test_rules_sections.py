"""Sections and labels: what stands below a heading is what the heading says."""

import pytest

from memory_core.extraction.model import ActorRole, Category, DocumentContext, EntityType
from memory_core.extraction.rules import propose

NOTE = DocumentContext("note", title="Weekly sync")
ADR = DocumentContext("doc", title="ADR 5: Queue")

SECTIONS = [
    pytest.param("## Decisions\n\n- Postgres for the queue", Category.DECISION, id="atx"),
    pytest.param("Decisions\n=========\n\n- Postgres for it", Category.DECISION, id="setext"),
    pytest.param("DECISIONS:\n- Postgres for the queue", Category.DECISION, id="plain label"),
    pytest.param("**Decisions**\n- Postgres for the queue", Category.DECISION, id="bold label"),
    pytest.param("* Decisions\n    * Postgres for it", Category.DECISION, id="label as item"),
    pytest.param("## 3. Key decisions\n- Postgres for it", Category.DECISION, id="numbered"),
    pytest.param("## Action items\n- Ann: send the report", Category.COMMITMENT, id="action items"),
    pytest.param("## Next steps\n1. Ann to send it to Bob", Category.COMMITMENT, id="next steps"),
    pytest.param("## TODO\n- Send the report (Ann)", Category.COMMITMENT, id="todo"),
    pytest.param("## Risks\n- One vendor for all sign-ins", Category.QUALITY_RISK, id="risks"),
    pytest.param("Open issues\n-----------\n- Slow lists", Category.QUALITY_RISK, id="open issues"),
    pytest.param("## Concerns\n- Too few testers", Category.QUALITY_RISK, id="concerns"),
    pytest.param("## Feedback\n- The list is slow", Category.FEEDBACK, id="feedback"),
    pytest.param("## Changelog\n- Price per location", Category.CHANGE, id="changelog"),
    pytest.param("## Done\n- Login page on staging", Category.EXECUTION, id="done"),
    pytest.param("## Attendees\n- Ann Lee\n- Bob Ruiz", Category.COLLABORATION, id="attendees"),
    pytest.param("Participants: Ann Lee, Bob Ruiz", Category.COLLABORATION, id="participants"),
    pytest.param("## Roles\n- Ann Lee: project lead", Category.STAKEHOLDER, id="roles"),
    pytest.param("## Status\n\nAccepted", Category.DECISION, id="status accepted"),
    pytest.param("## Status\n\nSuperseded by ADR 9", Category.CHANGE, id="status superseded"),
    pytest.param("- [ ] Ann: send the report", Category.COMMITMENT, id="open box"),
    pytest.param("- [x] Send the report", Category.EXECUTION, id="ticked box"),
    pytest.param("Decision: Postgres it is", Category.DECISION, id="decision label"),
    pytest.param("**Risk:** one vendor only", Category.QUALITY_RISK, id="risk label"),
    pytest.param("⚠️ Risk: one vendor only", Category.QUALITY_RISK, id="label after emoji"),
    pytest.param("Owner: Dana Whitlock", Category.STAKEHOLDER, id="owner label"),
]

EMPTY = [
    pytest.param("## Decisions\n\nNone.", id="none"),
    pytest.param("## Action items\n- n/a", id="n/a"),
    pytest.param("## Risks\n- No known risks", id="no risks"),
    pytest.param("## Status\n\nProposed", id="status proposed"),
    pytest.param("## Decisions\n- Pricing: not yet decided", id="not yet decided"),
    pytest.param("## Decisions\n- Should we use Redis?", id="question"),
    pytest.param("## Alternatives considered\n- We decided to use Redis", id="alternatives"),
    pytest.param("## Open questions\n- We will ship by Friday", id="open questions"),
    pytest.param("## Action items\n- https://example.com/a", id="link only"),
    pytest.param("## Apologies\n- Ann Lee\n- Bob Ruiz", id="apologies"),
]


@pytest.mark.parametrize(("text", "category"), SECTIONS)
def test_heading_or_label_gives_the_category(text: str, category: Category) -> None:
    events = propose(text, NOTE).events
    assert [event.category for event in events] == [category]
    assert events[0].confidence >= 0.9


@pytest.mark.parametrize("text", EMPTY)
def test_section_without_content_gives_nothing(text: str) -> None:
    assert propose(text, NOTE).events == ()


@pytest.mark.parametrize(
    "text", ["- [ ] Send the report", "## Actions\n- Send it to Bob", "TODO: fix"]
)
def test_task_without_an_owner_is_not_sure_enough_to_be_shown(text: str) -> None:
    assert all(event.confidence < 0.7 for event in propose(text, NOTE).events)


def test_plain_label_holds_only_for_its_list() -> None:
    text = "Action items:\n- Send the report\n\nThanks everyone for coming today."
    assert len(propose(text, NOTE).events) == 1


def test_nested_items_explain_the_entry_above() -> None:
    text = "## Decisions\n- Postgres for the queue\n  - fewer moving parts\n"
    assert len(propose(text, NOTE).events) == 1


def test_prose_of_a_decision_counts_where_it_resolves() -> None:
    text = "## Decision\n\nWe will use Postgres. It is well known. We chose rows for jobs.\n"
    quotes = [event.quote.quote for event in propose(text, ADR).events]
    assert quotes == ["We will use Postgres.", "We chose rows for jobs."]


def test_status_names_the_document() -> None:
    (event,) = propose("## Status\n\nAccepted\n", ADR).events
    assert event.narrative == "ADR 5: Queue has the status: Accepted."


def test_sub_heading_owns_the_tasks_below_it() -> None:
    (event,) = propose("## Action items\n\n### Ann Lee\n\n- Send the report\n", NOTE).events
    assert event.narrative == "Ann Lee will send the report."


def test_table_of_tasks_gives_owner_and_date() -> None:
    text = "| Task | Owner | Due |\n|---|---|---|\n| Beta opens | Ann Lee | 24 Mar 2026 |\n"
    (event,) = propose(text, NOTE).events
    assert event.category is Category.COMMITMENT
    assert event.actors[0].ref == "Ann Lee"
    assert event.due is not None
    assert event.due.time.isoformat() == "2026-03-24T00:00:00+00:00"


def test_table_of_roles_gives_stakeholders() -> None:
    text = "| Person | Role |\n|---|---|\n| Ann Lee | Security reviewer |\n"
    (event,) = propose(text, NOTE).events
    assert event.actors[0].role is ActorRole.REVIEWER


def test_table_of_fields_reads_like_labels() -> None:
    (event,) = propose("| | |\n|---|---|\n| Approver | Ann Lee |\n", NOTE).events
    assert event.narrative == "Ann Lee is the approver of Weekly sync."


def test_attendees_are_entities_with_stated_aliases() -> None:
    text = "## Attendees\n- Alice Chen (AC)\n- Priya Raman\n- Priya Shah\n"
    people = {e.name: e.aliases for e in propose(text, NOTE).entities}
    assert people == {"Alice Chen": ("AC",), "Priya Raman": (), "Priya Shah": ()}


def test_project_is_an_entity() -> None:
    entities = propose("Project Atlas starts.", NOTE).entities
    assert [(e.name, e.type) for e in entities] == [("Atlas", EntityType.PROJECT)]
