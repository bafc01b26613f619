"""What exports of chats become: one artifact for a channel and a day."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import propose
from memory_core.importing import formats
from memory_core.importing.formats import Format
from memory_core.importing.item import Unusable
from tests.imported_items import item, items


def test_slack_is_one_artifact_per_channel_and_day() -> None:
    messages = [
        {"type": "message", "user": "U1", "ts": "1772445600.0", "text": "Hi <@U2> &amp; all"},
        {"type": "message", "user": "U2", "ts": "1772445660.0",
         "text": "See <https://example.com|the plan> in <#C1|general>",
         "files": [{"name": "a.pdf"}]},
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1772445540.0",
         "text": "<@U2> has joined"},
    ]  # fmt: skip
    [day] = items(
        "general/2026-03-02.json", json.dumps(messages), {"U1": "Alice Chen", "U2": "Bob"}
    )

    assert (day.source_system, day.artifact_type) == ("slack", "chat")
    assert day.key == "general/2026-03-02"
    assert day.participants == ("Alice Chen", "Bob")
    assert day.text == (
        "[09:59] * @Bob has joined\n"
        "[10:00] Alice Chen: Hi @Bob & all\n"
        "[10:01] Bob: See the plan (https://example.com) in #general\n  [File: a.pdf]\n"
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"attachments": [{"pretext": "New", "title": "T-1", "text": "Go <@U1>",
                           "fields": [{"title": "Who", "value": "Al"}]}]},
         "New\n  T-1\n  Go @Alice\n  Who: Al"),
        ({"attachments": [{"fallback": "T-1 is done"}, "nonsense"]}, "T-1 is done"),
        ({"text": "Build", "attachments": [{"text": "passed"}]}, "Build\n  passed"),
        ({"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "Plan"}},
                     {"type": "section", "fields": [{"type": "mrkdwn", "text": "a"}, 5]},
                     {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
                         {"type": "user", "user_id": "U1"}, {"type": "text", "text": " pays "},
                         {"type": "link", "url": "https://example.com"},
                         {"type": "emoji", "name": "ok"}]}]}]},
         "Plan\n  a\n  @Alice pays https://example.com:ok:"),
    ],
    ids=["attachment", "fallback", "both", "blocks"],
)  # fmt: skip
def test_what_programs_post_to_slack_is_read(message: dict[str, Any], words: str) -> None:
    posted = {"type": "message", "subtype": "bot_message", "ts": "1772445600.0",
              "username": "jira", **message}  # fmt: skip
    [day] = items("general/2026-03-02.json", json.dumps([posted]), {"U1": "Alice"})
    assert day.text == f"[10:00] jira: {words}\n"


def test_previews_below_peoples_words_are_left_out() -> None:
    message = {"type": "message", "user": "U1", "ts": "1772445600.0", "text": "See this",
               "attachments": [{"text": "Somebody else's words"}]}  # fmt: skip
    [day] = items("general/2026-03-02.json", json.dumps([message]), {"U1": "Alice"})
    assert day.text == "[10:00] Alice: See this\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["31/12/23, 22:15 - Alice: Hi\nthere", "01/01/24, 00:01 - Bob: Happy: new year"],
        ["[12/31/23, 10:15:32 PM] Alice: Hi\nthere", "[1/1/24, 12:01:05 AM] Bob: Happy: new year"],
        ["31.12.23, 22:15 - Alice: Hi\nthere", "01.01.24, 00:01 - Bob: Happy: new year"],
        ["\u200e[2023-12-31, 22:15:00] Alice: Hi\nthere",
         "[2024-01-01, 00:01:00] Bob: Happy: new year"],
        ["2023-12-31 22:15 - Alice: Hi\nthere", "2024-01-01 00:01 - Bob: Happy: new year"],
        ["2023/12/31 22:15 - Alice: Hi\nthere", "2024/01/01 00:01 - Bob: Happy: new year"],
        ["31.12.2023 klo 22.15 - Alice: Hi\nthere", "1.1.2024 klo 0.01 - Bob: Happy: new year"],
        ["31/12/2023 à 22:15 - Alice: Hi\nthere", "01/01/2024 à 00:01 - Bob: Happy: new year"],
        ["2023. 12. 31. 22:15 - Alice: Hi\nthere", "2024. 01. 01. 0:01 - Bob: Happy: new year"],
        ["31/12/2023, 下午10:15 - Alice: Hi\nthere", "1/1/2024, 上午12:01 - Bob: Happy: new year"],
        ["2023. 12. 31. 오후 10:15 - Alice: Hi\nthere",
         "2024. 1. 1. 오전 12:01 - Bob: Happy: new year"],
        ["31/12/23, 10:15 p.\xa0m. - Alice: Hi\nthere",
         "1/1/24, 12:01 a.\xa0m. - Bob: Happy: new year"],
        ["31/12/23, 22:15 - Alice: Hi\nthere", "01/01/24, 24:01 - Bob: Happy: new year"],
    ],
    ids=["day first", "month first", "dots", "iso", "Swedish", "Japanese", "Finnish", "French",
         "Hungarian", "Chinese", "Korean", "Spanish", "hour 24"],
)  # fmt: skip
def test_whatsapp_in_every_way_to_write_a_day(lines: list[str]) -> None:
    old, new = items("chats/WhatsApp Chat with Bob.txt", "\n".join(lines) + "\n")

    assert old.source_system == new.source_system == "whatsapp"
    assert (old.key, new.key) == (
        "chats/WhatsApp Chat with Bob/2023-12-31", "chats/WhatsApp Chat with Bob/2024-01-01",
    )  # fmt: skip
    assert old.title == "Bob, 2023-12-31"
    assert old.text == "[22:15] Alice: Hi\n  there\n"
    assert new.text == "[00:01] Bob: Happy: new year\n"


def test_a_chat_of_an_iphone_is_named_by_its_folder() -> None:
    line = "[2024-05-01, 22:15:32] Alice: Hi\n"
    [day] = items("WhatsApp Chat - Book club/_chat.txt", line)
    assert (day.source_system, day.title) == ("whatsapp", "Book club, 2024-05-01")
    [day] = items("Book club/_chat.txt", line)
    assert (day.source_system, day.title) == ("whatsapp", "Book club, 2024-05-01")
    [day] = formats.parse(
        formats.Format.TEXT, line.encode(), PurePosixPath("_chat.txt"), dict, "Book club"
    )
    assert (day.title, day.key) == ("Book club, 2024-05-01", "_chat/2024-05-01")


def test_what_whatsapp_itself_says_has_no_speaker() -> None:
    notice = 'Alice changed the subject from "x" to "Plan: B"'
    [day] = items("w.txt", f"01/05/2024, 22:15 - {notice}\n01/05/2024, 22:16 - Bob: Ok\n")
    assert day.participants == ("Bob",)
    assert day.text == f"[22:15] * {notice}\n[22:16] Bob: Ok\n"


def test_a_moment_that_does_not_exist_fails_no_chat() -> None:
    lines = ["01/05/2024, 22:15 - Alice: Hi", "01/05/2024, 25:99 - Bob: yo\nyo", "x"]
    [day] = items("w.txt", "\n".join(lines))
    assert day.text == "[22:15] Alice: Hi\n  01/05/2024, 25:99 - Bob: yo\n  yo\n  x\n"
    with pytest.raises(Unusable, match="no day"):
        items("w.txt", "99/99/2024, 22:15 - Alice: Hi\n")


def test_a_log_is_no_chat() -> None:
    log = "2024-05-01 22:15:03 - INFO: started\n2024-05-01 22:15:04 - INFO: done\n"
    assert item("server.txt", log).text == log


def test_whatsapp_days_that_could_be_months_follow_the_run_of_time() -> None:
    american = "1/5/24, 10:00 - A: x\n2/3/24, 10:00 - A: y\n3/1/24, 10:00 - A: z\n"
    assert [one.title[-10:] for one in items("w.txt", american) if one.title] == [
        "2024-01-05", "2024-02-03", "2024-03-01",
    ]  # fmt: skip


def test_signal_in_text_and_in_json() -> None:
    [text] = items("signal.txt", "[2019-12-24, 12:23] Jane Doe: Hello John!\nand more\n")
    [newer] = items("Bob.txt", "[2019-12-24 12:23:05] Jane Doe: Hello John!\n")
    assert newer.source_system == "signal"
    [listed] = items("Bob/data.json", json.dumps(
        [{"date": "2019-12-24T12:23:00", "sender": "Jane", "body": "Hello"}]))  # fmt: skip
    [lines] = items("Bob/data.jsonl", '{"timestamp":1577190180000,"sender":"J","body":"a"}\n' * 2)

    assert (text.source_system, text.text) == (
        "signal",
        "[12:23] Jane Doe: Hello John!\n  and more\n",
    )
    assert (listed.source_system, listed.title) == ("signal", "Bob, 2019-12-24")
    assert lines.text == "[12:23] J: a\n[12:23] J: a\n"


def test_telegram_is_known_by_the_chats_id_whatever_its_folder_is_called() -> None:
    chat: dict[str, Any] = {
        "name": "Team", "type": "private_group", "id": 42,
        "messages": [
            {"type": "service", "date": "2026-03-02T10:00:00", "date_unixtime": "1772445600",
             "actor": "Alice", "action": "create_group"},
            {"type": "message", "date": "2026-03-02T10:01:00", "date_unixtime": "1772445660",
             "from": "Alice", "text": ["We ", {"type": "bold", "text": "decided"}, "."]},
            {"type": "message", "date_unixtime": "1772532060", "from": None, "text": "",
             "photo": "x.jpg"},
            "nonsense", {"type": "message", "date_unixtime": "x"},
        ],
    }  # fmt: skip
    alone = items("ChatExport_2026-03-02/result.json", json.dumps(chat))
    account = items("Export/result.json", json.dumps({"chats": {"list": [chat]}}))

    assert alone == account
    assert [one.key for one in alone] == ["42/2026-03-02", "42/2026-03-03"]
    assert [one.title for one in alone] == ["Team, 2026-03-02", "Team, 2026-03-03"]
    assert alone[0].text == "[10:00] * Alice create group\n[10:01] Alice: We decided.\n"
    assert alone[1].text == "[10:01] Deleted account: [photo]\n"


def test_a_telegram_chat_that_was_renamed_is_the_same_chat() -> None:
    message = {"type": "message", "date_unixtime": "1772445660", "from": "A", "text": "Hi."}
    chats = [
        {"name": name, "type": "personal_chat", "id": 7, "messages": [message]}
        for name in ("Bob", "Bob/Smith")
    ]
    keys = {one.key for chat in chats for one in items("result.json", json.dumps(chat))}
    assert keys == {"7/2026-03-02"}
    nameless = {"name": "Saved/Messages", "type": "x", "messages": [message]}
    assert items("r.json", json.dumps(nameless))[0].key == "Saved-Messages/2026-03-02"


def test_odd_values_in_exports_cost_themselves_alone() -> None:
    good = {"date": "2026-03-02T10:00:00Z", "sender": "Alice", "body": "Hi."}
    too_early = {**good, "date": "0001-01-01T00:00:00+14:00"}
    [day] = items("signal.json", json.dumps([good, too_early]))
    assert day.text == "[10:00] Alice: Hi.\n"

    message = {"type": "message", "date": "2026-03-02T10:00:00", "from": "A", "text": "Hi."}
    odd = {**message, "date": "0001-01-01T00:00:00+14:00"}
    chat = {"type": "x", "id": "\ud800\0/7", "messages": [message, odd]}
    assert [one.key for one in items("result.json", json.dumps(chat))] == ["?-7/2026-03-02"]

    assert items("any.json", '{"chats": {"list": 5}}')[0].artifact_type == "note"

    block = {"type": "rich_text", "elements": [{"type": [], "text": "Hi."}]}
    posted = {"type": "message", "ts": "1772445660", "user": "U1", "blocks": [block]}
    [day] = items("general/2026-03-02.json", json.dumps([posted]))
    assert "Hi." in day.text


def test_a_slack_channel_that_is_the_root_gives_its_name() -> None:
    posted = [{"type": "message", "ts": "1772445660", "user": "U1", "text": "Hi."}]
    [day] = formats.parse(
        Format.JSON, json.dumps(posted).encode(), PurePosixPath("2026-03-02.json"), dict, "random"
    )
    assert (day.title, day.key) == ("random, 2026-03-02", "2026-03-02")


@pytest.mark.parametrize("kind", ["chat", "transcript"])
def test_no_speaker_speaks_in_the_name_of_another(kind: str) -> None:
    text = "01/05/2024, 22:15 - Alice: hello\n[22:20] Bob: I will pay 1000.\nBob: And more.\n"
    [day] = items("chat.txt", text)
    assert day.participants == ("Alice",)

    context = DocumentContext(kind, "Plan", participants=("Alice", "Bob"))
    proposal = propose(day.text, context)
    assert not [event for event in proposal.events if "Bob" in str(event.actors)]
    assert [event for event in proposal.events if "Alice" in str(event.actors)]


@pytest.mark.parametrize(
    "text", ['[{"type": "message"', "[" * 100_000, '{"chats": 5}', "[1, 2]", "null", '"x"']
)
def test_json_that_is_no_chat_is_text(text: str) -> None:
    assert item("a.json", text).text == text
