"""Who: speakers, authors, owners, and how their sentences are told."""

import pytest

from memory_core.extraction.model import ActorRole, Category, DocumentContext
from memory_core.extraction.rules import propose

NOTE = DocumentContext("note")
CHAT = DocumentContext("chat")
TRANSCRIPT = DocumentContext("transcript")
EMAIL = DocumentContext("email", author="Alice Chen <alice@example.com>")

PROMISE = "I'll send the report by Friday"

TURNS = [
    pytest.param(f"Ann Lee: {PROMISE}", CHAT, id="plain"),
    pytest.param(f"[10:32] Ann Lee: {PROMISE}", CHAT, id="clock"),
    pytest.param(f"[2024-01-17, 21:49] Ann Lee: {PROMISE}", CHAT, id="day and clock"),
    pytest.param(f"17/01/24, 21:49 - Ann Lee: {PROMISE}", CHAT, id="whatsapp"),
    pytest.param(f"**Ann Lee**: {PROMISE}", CHAT, id="bold name"),
    pytest.param(f"**Ann Lee:** {PROMISE}", CHAT, id="bold with colon"),
    pytest.param(f"Ann Lee (00:12:30): {PROMISE}", TRANSCRIPT, id="clock behind the name"),
    pytest.param(f"Ann Lee  10:32 AM\n{PROMISE}", CHAT, id="name and clock above"),
    pytest.param(f"Ann Lee:\n{PROMISE}", TRANSCRIPT, id="name above"),
]

OWNERS = [
    pytest.param("- [ ] Ann: send the report", ("Ann",), id="box and colon"),
    pytest.param("Action: Bob to send the report", ("Bob",), id="label, name to"),
    pytest.param("AI(@bob): send the report", ("@bob",), id="AI with handle"),
    pytest.param("Action(Bob): send the report", ("Bob",), id="label with name"),
    pytest.param("- Send the report (Ann, by 12 March)", ("Ann",), id="trailing, dated"),
    pytest.param("## Actions\n- Send the report - Ann Lee", ("Ann Lee",), id="trailing dash"),
    pytest.param("## Actions\n- Send the report @ann", ("@ann",), id="trailing handle"),
    pytest.param("## Actions\n- Send the report. Owner: Ann", ("Ann",), id="trailing owner"),
    pytest.param("## Actions\n- [ann] send the report", ("ann",), id="bracket"),
    pytest.param("## Actions\n- Ann and Bob to send it", ("Ann", "Bob"), id="two owners"),
    pytest.param("## Actions\n- Convert to labels", (), id="a verb is no owner"),
    pytest.param("## Actions\n- Recording: send it out", (), id="a label is no owner"),
]

NARRATIVES = [
    pytest.param("Ann Lee: I'll send it to Bob on Friday.", "Ann Lee will send it", id="I'll"),
    pytest.param("Ann Lee: will write to Bob by Friday", "Ann Lee will write", id="no subject"),
    pytest.param("Ann Lee: I'm worried that it is late", "Ann Lee is worried", id="I'm"),
    pytest.param("Ann Lee: we decided to wait", "Ann Lee said: we decided", id="we"),
    pytest.param("Ann Lee: I've fixed the login page", "Ann Lee has fixed", id="I've"),
    pytest.param("Ann Lee: ok, we decided to **wait**", "Ann Lee said: we decided", id="opener"),
]


@pytest.mark.parametrize(("text", "context"), TURNS)
def test_first_person_is_the_speaker_of_the_turn(text: str, context: DocumentContext) -> None:
    (event,) = propose(text, context).events
    assert [(a.ref, a.role) for a in event.actors] == [("Ann Lee", ActorRole.OWNER)]
    assert event.narrative == "Ann Lee will send the report by Friday."


def test_irc_nick_is_the_speaker() -> None:
    (event,) = propose(f"<annlee> {PROMISE}", CHAT).events
    assert event.actors[0].ref == "annlee"


@pytest.mark.parametrize("nick", ["Dr_Willis", "OBI1", "Damocles_", "ravi.p", "[away]bob"])
def test_speakers_of_a_log_are_taken_as_they_are_written(nick: str) -> None:
    text = f"[09:01] <{nick}> {PROMISE}\n=== ann is now known as bob\n[09:02] <ann> fine\n"
    (event,) = propose(text, NOTE).events
    assert [actor.ref for actor in event.actors] == [nick]
    assert event.narrative == f"{nick} will send the report by Friday."


@pytest.mark.parametrize("opener", ["Expecting", "Ultimately", "Invite", "Google Hangouts", "Amp"])
def test_the_first_word_of_a_sentence_is_no_person(opener: str) -> None:
    assert propose(f"{opener} will send the report by Friday.", NOTE).events == ()


def test_speakers_may_be_called_by_what_they_are() -> None:
    text = "Project Manager: Hi .\nMarketing: Mm .\nProject Manager: I 'll write the minutes .\n"
    people = ("Project Manager", "Marketing")
    promise = propose(text, DocumentContext("transcript", participants=people)).events[-1]
    assert [actor.ref for actor in promise.actors] == ["Project Manager"]
    assert promise.narrative == "Project Manager will write the minutes."


def test_a_transcript_is_a_meeting_of_those_who_speak() -> None:
    (event,) = propose("Ann: Hello .\nBob: Hi .\n", TRANSCRIPT).events
    assert event.category is Category.COLLABORATION
    assert [actor.ref for actor in event.actors] == ["Ann", "Bob"]


def test_what_a_chair_hands_out_is_whose_it_is() -> None:
    text = "Ann: Hello .\nBob: Hi .\nAnn: Bob , you 'll look at the index code .\n"
    task = propose(text, TRANSCRIPT).events[-1]
    assert [actor.ref for actor in task.actors] == ["Bob"]


def test_recurring_prefixes_are_speakers_in_notes_too() -> None:
    text = f"Niko: hello\n\nJosh: hello\n\nNiko: {PROMISE}\n\nJosh: fine\n"
    (event,) = propose(text, NOTE).events
    assert event.actors[0].ref == "Niko"


def test_single_prefix_in_notes_is_no_speaker() -> None:
    (event,) = propose("Summary: we decided to use Postgres.", NOTE).events
    assert event.actors == ()


@pytest.mark.parametrize(("text", "owners"), OWNERS)
def test_owner_of_a_task(text: str, owners: tuple[str, ...]) -> None:
    (event,) = propose(text, NOTE).events
    assert event.category is Category.COMMITMENT
    assert tuple(actor.ref for actor in event.actors) == owners


@pytest.mark.parametrize(("text", "start"), NARRATIVES)
def test_narrative_is_told_in_the_third_person(text: str, start: str) -> None:
    (event,) = propose(text, CHAT).events
    assert event.narrative.startswith(start)


def test_author_speaks_in_mail() -> None:
    (event,) = propose("Hi Bob,\n\nI'll send the report by Friday.\n", EMAIL).events
    assert event.actors[0].ref == "Alice Chen"


def test_from_header_is_the_author() -> None:
    text = "From: Bob Ruiz <bob@example.com>\nTo: Ann\nDate: Mon, 4 Mar 2024 09:00:00 +0000\n\n"
    (event,) = propose(text + "I'll send the report by Friday.\n", EMAIL).events
    assert event.actors[0].ref == "Bob Ruiz"


def test_unknown_author_lowers_the_confidence() -> None:
    (event,) = propose("I'll send the report by Friday.", NOTE).events
    assert event.actors == ()
    assert event.narrative == "The author will send the report by Friday."
    assert event.confidence < 0.75


def test_the_first_person_of_a_specification_is_no_actor() -> None:
    assert propose("I'll send the report by Friday.", DocumentContext("doc")).events == ()


def test_stated_initials_stand_for_the_name() -> None:
    text = "Present: Alice Chen (AC), Bob Ruiz\n\n## Actions\n- AC to send the report\n"
    event = propose(text, NOTE).events[-1]
    assert event.actors[0].ref == "Alice Chen"
    assert event.narrative == "Alice Chen will send the report."


def test_first_name_is_not_merged_with_a_full_name() -> None:
    text = "Present: Priya Raman, Priya Shah\n\n## Actions\n- Priya to send the report\n"
    proposal = propose(text, NOTE)
    assert proposal.events[-1].actors[0].ref == "Priya"
    assert {e.name: e.aliases for e in proposal.entities}["Priya Raman"] == ()


def test_pronoun_is_the_only_person_named_before() -> None:
    text = "Bob Ruiz reviewed it. He has agreed to fix the tests."
    context = DocumentContext("note", participants=("Bob Ruiz",))
    event = propose(text, context).events[-1]
    assert event.narrative == "Bob Ruiz has agreed to fix the tests."


def test_pronoun_with_two_candidates_gives_nothing() -> None:
    text = "Bob Ruiz and Ann Lee came. He has agreed to fix the tests."
    context = DocumentContext("note", participants=("Bob Ruiz", "Ann Lee"))
    assert propose(text, context).events == ()


def test_mail_address_is_an_alias() -> None:
    (entity,) = propose("Ann Lee <ann@example.com> wrote in.", NOTE).entities
    assert (entity.name, entity.aliases) == ("Ann Lee", ("ann@example.com",))
