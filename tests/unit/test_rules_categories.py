"""Each category: what tells it, and what only looks like it."""

import pytest

from memory_core.extraction.model import Category, DocumentContext, EntityType
from memory_core.extraction.rules import propose

NOTE = DocumentContext("note", title="Weekly sync", author="Alice Chen")
DOC = DocumentContext("doc", title="RFC 7")

POSITIVE = [
    pytest.param("I'll send the report to Bob by Friday.", Category.COMMITMENT, id="first person"),
    pytest.param("Bob will draft the migration plan.", Category.COMMITMENT, id="person will"),
    pytest.param("Bob Ruiz promised to fix the login page.", Category.COMMITMENT, id="promised"),
    pytest.param("We'll ship the beta by 12 March.", Category.COMMITMENT, id="we, dated"),
    pytest.param("The report is due on 3 May 2024.", Category.COMMITMENT, id="due date"),
    pytest.param("Deployed v2.3 to production.", Category.EXECUTION, id="participle first"),
    pytest.param("Bob fixed the flaky upload test.", Category.EXECUTION, id="person did"),
    pytest.param("The new search page is live.", Category.EXECUTION, id="is live"),
    pytest.param("We decided to use Postgres over Kafka.", Category.DECISION, id="we decided"),
    pytest.param("It was agreed to drop IE support.", Category.DECISION, id="it was agreed"),
    pytest.param("We're going with the annual plan.", Category.DECISION, id="going with"),
    pytest.param("The consensus was to wait a week.", Category.DECISION, id="consensus"),
    pytest.param("The proposal was approved by the board.", Category.DECISION, id="approved"),
    pytest.param("We decided not to support Windows.", Category.DECISION, id="decided not to"),
    pytest.param("Bob met with the design team.", Category.COLLABORATION, id="met with"),
    pytest.param("Bob handed over the billing code.", Category.COLLABORATION, id="handed over"),
    pytest.param("We had a call with Acme.", Category.COLLABORATION, id="had a call"),
    pytest.param("QA, design and HR talked about it.", Category.COLLABORATION, id="three of them"),
    pytest.param("Decision #12: Postgres it is.", Category.DECISION, id="numbered label"),
    pytest.param("Risk 1: The vendor may be late.", Category.QUALITY_RISK, id="numbered risk"),
    pytest.param("The audit found an XSS vulnerability.", Category.QUALITY_RISK, id="found fault"),
    pytest.param("I'm worried that the quota is too low.", Category.QUALITY_RISK, id="worried"),
    pytest.param("The release is blocked by the audit.", Category.QUALITY_RISK, id="blocked"),
    pytest.param("There is a risk that we miss May.", Category.QUALITY_RISK, id="risk that"),
    pytest.param("Users reported that login is slow.", Category.FEEDBACK, id="users reported"),
    pytest.param("We got positive feedback on the UI.", Category.FEEDBACK, id="got feedback"),
    pytest.param("Two customers complained about it.", Category.FEEDBACK, id="complained"),
    pytest.param("Changed pricing from $99 to $149.", Category.CHANGE, id="from to"),
    pytest.param("The launch was moved to June.", Category.CHANGE, id="was moved"),
    pytest.param("We switched the queue to Redis.", Category.CHANGE, id="switched to"),
    pytest.param("Added Bob as security reviewer.", Category.STAKEHOLDER, id="added as"),
    pytest.param("Bob is responsible for the rollout.", Category.STAKEHOLDER, id="responsible"),
    pytest.param("Bob Ruiz is the new tech lead.", Category.STAKEHOLDER, id="is the lead"),
    pytest.param("Bob joined the team.", Category.STAKEHOLDER, id="joined"),
]

# The examples of the specification, a category each, and the text of its performance test.
SPECIFIED = [
    ("Alice will deliver MVP by Q1", Category.COMMITMENT),
    ("Deployed v2.3 to production", Category.EXECUTION),
    ("Decided to use Postgres over Kafka", Category.DECISION),
    ("Engineering and design synced on UI", Category.COLLABORATION),
    ("Security audit found XSS vulnerability", Category.QUALITY_RISK),
    ("Users reported login flow is confusing", Category.FEEDBACK),
    ("Changed pricing from $99 to $149", Category.CHANGE),
    ("Added Bob as security reviewer", Category.STAKEHOLDER),
    ("Decision 7: Do something", Category.DECISION),
]

NOTHING = [
    pytest.param("Data and time synced on disk.", id="no departments"),
    pytest.param("Design and engineering are synced on every push.", id="synced by a machine"),
    pytest.param("Design met with criticism.", id="met with no person"),
    pytest.param("Decision 2024: a year of change.", id="a year, no number"),
    pytest.param("Did we decide to use Postgres?", id="question"),
    pytest.param("should we go with Redis", id="question without its mark"),
    pytest.param("Can you send the report by Friday?", id="request"),
    pytest.param("We have not decided to use Postgres.", id="not decided"),
    pytest.param("I won't send the report.", id="won't"),
    pytest.param("Bob will not draft the plan.", id="will not"),
    pytest.param("We didn't deploy the release.", id="didn't deploy"),
    pytest.param("If we decided to move, we would need a plan.", id="if"),
    pytest.param("We could deploy it tomorrow.", id="could"),
    pytest.param("Bob would fix the login page.", id="would"),
    pytest.param("I'll send it if you want.", id="offer"),
    pytest.param("Maybe we decided to wait too early.", id="maybe"),
    pytest.param("There is no risk that we miss May.", id="no risk"),
    pytest.param("This is not a blocker.", id="not a blocker"),
    pytest.param("I'll be honest with you.", id="small talk"),
    pytest.param("I will say this is nice weather.", id="I will say"),
    pytest.param("The cache will send a signal to the queue.", id="a thing will"),
    pytest.param("The weather is nice today.", id="plain statement"),
    pytest.param("We decided that.", id="decided, but what"),
    pytest.param("The risk we wrote down is old.", id="relative clause"),
]

DESCRIPTIONS = [
    pytest.param("We will use the term node for a machine.", id="we will use"),
    pytest.param("The value was changed to an integer.", id="passive change"),
    pytest.param("Garbage will release the memory.", id="thing as subject"),
    pytest.param("The server fails when the disk is full.", id="general failure"),
]


@pytest.mark.parametrize(("text", "category"), POSITIVE)
def test_sentence_tells_its_category(text: str, category: Category) -> None:
    assert [event.category for event in propose(text, NOTE).events] == [category]


@pytest.mark.parametrize("text", NOTHING)
def test_sentence_that_tells_nothing(text: str) -> None:
    assert propose(text, NOTE).events == ()


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_description_in_a_specification_is_no_event(text: str) -> None:
    assert propose(text, DOC).events == ()


def test_two_clear_clauses_are_two_events_with_their_own_quotes() -> None:
    text = "Bob fixed the login page; Dana is responsible for the rollout."
    quotes = {e.category: e.quote.quote for e in propose(text, NOTE).events}
    assert quotes == {
        Category.EXECUTION: "Bob fixed the login page",
        Category.STAKEHOLDER: "Dana is responsible for the rollout.",
    }


def test_repeated_sentence_is_one_event() -> None:
    text = "We decided to use Postgres.\n\nWe decided to use Postgres."
    assert len(propose(text, NOTE).events) == 1


@pytest.mark.parametrize(("text", "category"), SPECIFIED)
@pytest.mark.parametrize("end", ["", "."])
def test_the_examples_of_the_specification_are_found(
    text: str, category: Category, end: str
) -> None:
    [event] = propose(text + end, DocumentContext("note")).events

    assert event.category is category


def test_departments_are_named_as_organisations_each() -> None:
    proposal = propose("Engineering and design synced on UI.", DocumentContext("note"))

    [event] = proposal.events
    assert [actor.ref for actor in event.actors] == ["Engineering", "Design"]
    kinds = {entity.name: entity.type for entity in proposal.entities}
    assert kinds == {"Engineering": EntityType.ORG, "Design": EntityType.ORG}


def test_a_numbered_label_is_no_speaker() -> None:
    text = "Ann: Hello.\nDecision 7: We use Postgres.\nUser 1: Fine.\n"

    events = propose(text, DocumentContext("transcript")).events
    assert [event.category for event in events] == [Category.DECISION]
