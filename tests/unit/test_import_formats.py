"""What each format becomes: its text, its type, who, when; and how a file is recognised."""

import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from memory_core.importing import formats
from memory_core.importing.formats import Format, html
from memory_core.importing.item import Item, Skip, Unusable
from tests.documented import ROOT
from tests.imported_items import item, items

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "import"
# In a folder next to the checkout, on machines that have it.
SAMPLES = sorted(
    file
    for folder in Path(__file__).resolve().parents[2:5]
    for file in (folder / "shared" / "sample" / "nasty").glob("*")
)


def fixture(name: str) -> list[Item]:
    return items(name, (FIXTURES / name).read_bytes())


ON_THE_PAGE = {
    Format.MBOX: "mbox", Format.MAIL: "`.eml`", Format.PDF: "PDF", Format.DOCX: "DOCX",
    Format.HTML: "HTML", Format.SUBTITLES: "WebVTT, SRT", Format.JSON: "JSON",
    Format.TEXT: "plain text",
}  # fmt: skip


def test_the_page_of_importing_has_every_format() -> None:
    page = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    table = page.split("## Formats")[1].split("**Quoted replies**")[0]

    assert set(ON_THE_PAGE) == set(Format)
    assert [word for word in ON_THE_PAGE.values() if word not in table] == []


# --- prose -----------------------------------------------------------------------------------


def test_markdown_is_kept_exactly_and_its_front_matter_understood() -> None:
    text = (
        '---\ntitle: "Kick-off"\nauthor: Alice Chen\ndate: 2026-03-02\ntype: doc\n'
        "attendees:\n  - Bob\n  - Carol\n---\n\n# Another heading\n\nWords.  \n"
    )
    read = item("notes/x.md", text)

    assert read.text == text
    assert read.artifact_type == "doc"
    assert read.title == "Kick-off"
    assert read.author == "Alice Chen"
    assert read.participants == ("Alice Chen", "Bob", "Carol")
    assert read.ts == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "text", "kind", "title"),
    [
        ("a.md", "Intro\n\n# The *plan*\n", "note", "The *plan*"),
        ("a.md", "The plan\n========\n\nWords\n", "note", "The plan"),
        ("a.rst", "========\nThe plan\n========\n\nWords\n", "doc", "The plan"),
        ("a.rst", "PEP: 1\nTitle: The plan\n\nWords\n", "doc", "The plan"),
        ("a.txt", "Words without a heading\n", "note", "a"),
        ("a.txt", "# a comment\nwords\n", "note", "a comment"),
        ("a.md", "---\nnever: closed\n\nWords\n", "note", "a"),
        ("Makefile", "all:\n\techo\n", "note", "Makefile"),
        ("a.json", '{"plan": 1}', "note", "a"),
    ],
)
def test_titles_and_types_of_prose(name: str, text: str, kind: str, title: str) -> None:
    read = item(name, text)
    assert (read.artifact_type, read.title, read.text) == (kind, title, text)


def test_the_headers_of_a_pep_say_who_and_when() -> None:
    text = (
        "PEP: 1\nTitle: The plan\nAuthor: Alice Chen <a@example.com>,\n        Bob\n"
        "Type: Process\nCreated: 9-Jun-2020\n\nAbstract\n========\n"
    )
    read = item("pep-0001.rst", text)
    assert (read.artifact_type, read.title, read.text) == ("doc", "The plan", text)
    assert read.author == "Alice Chen <a@example.com>"
    assert read.participants == ("Alice Chen <a@example.com>", "Bob")
    assert read.ts == datetime(2020, 6, 9, tzinfo=UTC)
    assert item("a.rst", text.replace("9-Jun-2020", "9-Foo-2020")).ts is None


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-03-02 stand-up.md", datetime(2026, 3, 2, tzinfo=UTC)),
        ("daily/20260302.md", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-02-30.md", None),
        ("report-12026-03-021.md", None),
        ("plain.md", None),
    ],
)
def test_a_day_in_the_name_is_the_notes_day(name: str, day: datetime | None) -> None:
    assert item(name, "Words").ts == day


def test_controls_are_kept_in_text_and_nowhere_else() -> None:
    text = "# A \u202eright\u2069 title\x07\n\nnul \x00 and \u200b zero width\n"
    read = item("a.md", text)
    assert read.text == text
    assert read.tidied().title == "A right title"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"\x00" * 100),
        ("a.bin", bytes(range(256)) * 10),
        ("a.txt", b"\x00\x01\x02\x03" * 100),
        ("a.doc", b"\xd0\xcf\x11\xe0" + b"\x00" * 100),
        ("a.zip", b"PK\x03\x04" + b"\x00" * 100),
        ("a.docx", b"not a zip at all"),
        ("a.md", b""),
        ("a.md", b" \n\t\x00"),
        ("a.html", b"<html><script>only()</script></html>"),
    ],
)
def test_what_holds_no_text_is_skipped_with_a_reason(name: str, data: bytes) -> None:
    with pytest.raises(Skip) as caught:
        items(name, data)
    assert str(caught.value)


# --- HTML ------------------------------------------------------------------------------------


def test_html_becomes_what_a_reader_sees() -> None:
    [page] = fixture("page.html")

    assert page.artifact_type == "doc"
    assert page.title == "Launch & plan"
    assert page.text == (FIXTURES / "page.html.txt").read_text(encoding="utf-8")
    for hidden in ("tracker", "alert", "color:", "preheader", "onclick"):
        assert hidden not in page.text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<p style="display:\tnone">x</p><p>seen</p>', "seen"),
        ('<p style="color:red; DISPLAY : NONE !important">x</p><p>seen</p>', "seen"),
        ('<p style="opacity:0">x</p><p style="opacity:0.5">seen</p>', "seen"),
        ('<p style="font-size:0px">x</p><p style="font-size:0.8em">seen</p>', "seen"),
        ('<div style="font-size:0px">x<p style="font-size:13px">seen</p>x</div>', "seen"),
        ('<p style="mso-hide:all">x</p><p>seen</p>', "seen"),
        ('<div aria-hidden="TRUE">x</div><p aria-hidden=false>seen</p>', "seen"),
        ("<ul><li><p>one</p></li><li><p>two</p><p>more</p></li></ul>", "- one\n\n- two\n\nmore"),
        ("<ol><li><div>one</div></li><li></li><li>three</li></ol>", "1. one\n3. three"),
        ("<ul><li><ul><li>inner</li></ul></li></ul>", "-\n  - inner"),
        ("<ul><li>outer<ul><li><p>inner</p></li></ul></li></ul>", "- outer\n\n  - inner"),
    ],
)
def test_what_is_not_shown_is_dropped_and_entries_keep_their_marks(page: str, text: str) -> None:
    assert html.read(page)[0] == text


def test_the_title_of_a_picture_is_not_the_pages() -> None:
    page = "<body><svg><title>icon</title></svg><p>Words</p></body>"
    assert item("a page.html", page).title == "a page"
    assert item("a.html", f"<title>Plan</title>{page}").title == "Plan"


@pytest.mark.parametrize("tag", ["div", "b", "blockquote"])
def test_html_that_nests_without_end_is_given_up(tag: str) -> None:
    with pytest.raises(Unusable, match="depth"):
        html.read(f"<{tag}>" * 20_000 + "words")


# --- transcripts -----------------------------------------------------------------------------


def test_webvtt_becomes_turns_of_its_speakers() -> None:
    [call] = fixture("call.vtt")
    assert call.artifact_type == "transcript"
    assert call.participants == ("Alice Chen", "Bob")
    assert call.text == (
        "[00:00:01] Alice Chen: We ship on Friday. That is decided.\n"
        "[00:00:07] Bob: I will write the notes & send them.\n"
    )


def test_srt_is_read_also_where_its_numbers_are_missing() -> None:
    [film] = fixture("talk.srt")
    assert film.participants == ("Alice", "Bob")
    assert film.text == "[00:00:01] Alice: Hello there, all.\n[00:00:05] Bob: Hi.\n"


def test_a_cue_may_hold_several_voices() -> None:
    call = item("a.vtt", (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n"
        "<v Alice>I disagree.</v> <v.loud Bob Smith>I will pay.\nAll of it.</v>\n<v Alice>Good.\n"
    ))  # fmt: skip
    assert call.participants == ("Alice", "Bob Smith")
    assert call.text == (
        "[00:00:01] Alice: I disagree.\n[00:00:01] Bob Smith: I will pay. All of it.\n"
        "[00:00:01] Alice: Good.\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vtt", "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n<v A>One\n\n"
                  "0:0:x --> 00:00:09\n<v B>Two\n"),
        ("a.srt", "1\n00:00:01,000-->00:00:02,000\nA: One\n\n2\n00:0x:05,000 --> 1\nB: Two\n"),
        ("a.srt", "1\n0:00:01.5 -> 0:00:02.5\nA: One\n2\n00:00:01,000 --> 00:00:09,000\nB: Two\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nA: One\n\nB: Two\n\n"),
    ],
    ids=["vtt clock", "srt clock", "no blank line", "blank line within"],
)  # fmt: skip
def test_a_cue_keeps_its_words_whatever_its_clock_looks_like(name: str, text: str) -> None:
    assert item(name, text).text == "[00:00:01] A: One\n[00:00:01] B: Two\n"


def test_subtitles_may_last_for_days() -> None:
    text = "1\n100:00:01,500 --> 100:00:02,500\nA: one\n"
    assert item("a.srt", text).text == "[100:00:01] A: one\n"


def test_a_plain_transcript_is_recognised_by_its_turns() -> None:
    talk = "\n".join(f"{who}: Sentence {n}." for n in range(5) for who in ("Alice Chen", "Bob"))
    read = item("call.txt", talk + "\nNote: the end.\n")
    assert (read.artifact_type, read.participants) == ("transcript", ("Alice Chen", "Bob"))
    assert item("list.txt", "Milk: 2\nEggs: 3\nBread: 1\nSalt: 4\n").artifact_type == "note"


@pytest.mark.parametrize("name", ["{}   {}", "[{}] {}:00", "{}\t00:{}"])
def test_a_transcript_may_have_its_speakers_above_their_words(name: str) -> None:
    turns = [("Alice Chen", "Hi all.\nWe begin."), ("Bob Smith", "I will pay."), ("Carol", "Ok.")]
    text = "\n\n".join(
        f"{name.format(who, f'{n:02}:0{n}')}\n{words}\nAnd so on.\n\nAnd on."
        for n in range(3)
        for who, words in turns
    )
    read = item("call.txt", text)
    assert (read.artifact_type, read.text) == ("transcript", text)
    assert read.participants == ("Alice Chen", "Bob Smith", "Carol")
    plan = "Monday\n\nStand-up 9:00\nLunch 12:30\nReview 15:00\nStand-up 9:00\nWords.\n"
    assert item("plan.txt", plan).artifact_type == "note"


# --- all of them ---------------------------------------------------------------------------


# What each must hold: an early word, a late one, and where accents or marks could be lost.
SAMPLE_WORDS = {
    "MimeKit__messages_feedback-report.txt": ["email abuse report", "> Spam Spam Spam"],
    "chat-miner__signal_test_export.txt": ["[12:23] Jane Doe: Hello John!", "\n  Jane!"],
    "chat-miner__whatsapp_test__mmddyy__24hrs.txt": [
        "[11:25] John Doe: Lorem", '* +12 345 578 created group "Groupname"', "🤓: Lorem ipsum 🤓",
    ],
    "flanker__messages_enclosed-bad-encoding.eml": ["\n\nHello\n", "> чтобы я без вас делал"],
    "mail-parser__legacy_001.eml": ["Jürgen Schmürgen <schmuergen@", "mißliche Lage", "Ersäufen"],
    "mail-parser__legacy_005.eml": ["Heinz Müller <mueller@", "mißliche Lage", "Ersäufen"],
    "mail-parser__legacy_034.eml": ["Die Hasen klagten einst", "wie ihr seht, einige Tiere"],
    "mail__attachment_emails_attachment_pdf_lf.eml": ["Just attaching another PDF", "broken.pdf"],
    "slack-export-viewer__enrique_2016-01-14.json": ["has joined the channel", "in victoria"],
    "trojan-source__JavaScript_commenting-out.js": ["/*\u202e } \u2066if (isAdmin)\u2069"],
    "trojan-source__JavaScript_invisible-function.js": ["function is\u200bAdmin()"],
    "trojan-source__JavaScript_stretched-string.js": ['"user\u202e \u2066// Check if admin\u2069'],
}  # fmt: skip


def sample_types() -> dict[str, str]:
    lines = next(path for path in SAMPLES if path.name == "manifest.jsonl").read_text()
    return {one["path"]: one["type"] for one in map(json.loads, lines.splitlines())}


@pytest.mark.skipif(not SAMPLES, reason="the shared sample is not here")
@pytest.mark.parametrize(
    "path", [path for path in SAMPLES if path.name in SAMPLE_WORDS], ids=lambda path: path.name
)
def test_every_file_of_the_shared_sample_becomes_its_text(path: Path) -> None:
    read = items(path.name, path.read_bytes())
    text = "".join(one.text for one in read)

    assert {str(one.artifact_type) for one in read} == {sample_types()[path.name]}
    assert all(one.tidied().title for one in read)
    assert [words for words in SAMPLE_WORDS[path.name] if words not in text] == []
    assert "\ufffd" not in text


@pytest.mark.skipif(not SAMPLES, reason="the shared sample is not here")
def test_no_file_of_the_shared_sample_is_forgotten() -> None:
    assert {path.name for path in SAMPLES} == {*SAMPLE_WORDS, "manifest.jsonl"}


def test_format_is_told_by_content_before_extension() -> None:
    assert formats.recognise(b"%PDF-1.7", PurePosixPath("a.txt")) is Format.PDF
    assert formats.recognise(b"<!DOCTYPE html><p>", PurePosixPath("a")) is Format.HTML
    assert formats.recognise(b"WEBVTT\n\n", PurePosixPath("a.txt")) is Format.SUBTITLES
    head = b"Return-Path: <a@example.com>\nFrom: a@example.com\n"
    assert formats.recognise(head, PurePosixPath("a.txt")) is Format.MAIL
    assert formats.recognise(head, PurePosixPath("a.md")) is Format.TEXT, "a note about mail"
    assert formats.recognise(b"From: me\nDecision: go\n", PurePosixPath("a.txt")) is Format.TEXT
