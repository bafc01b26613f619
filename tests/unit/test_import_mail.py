"""Mail as artifacts: headers, bodies, threads, quotations, and messages that are broken."""

import io
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

import pytest

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import propose
from memory_core.extraction.rules.blocks import read as read_blocks
from memory_core.importing import quoted_replies, sandbox
from memory_core.importing.formats import mail, mbox
from memory_core.importing.item import Unusable


def message(body: str = "Hello.", **headers: str) -> bytes:
    written = EmailMessage()
    defaults = {
        "From": "Alice Chen <alice@example.com>",
        "To": "Bob <bob@example.com>",
        "Subject": "Plan",
        "Date": "Mon, 9 Mar 2026 09:26:00 +0100",
        "Message-ID": "<m1@example.com>",
    }
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in {**defaults, **given}.items():
        written[name] = value
    written.set_content(body)
    return written.as_bytes()


def own_words(text: str) -> str:
    """What the rules extractor takes for the writer's own."""
    context = DocumentContext(
        title="Plan", artifact_type="email", author="Alice Chen", participants=(), date=None
    )
    return "\n".join(text[block.start : block.end] for block in read_blocks(text, context).blocks)


# --- headers ---------------------------------------------------------------------------------


def test_headers_become_author_participants_time_and_id() -> None:
    item = mail.parse(message(Cc="Carol <carol@example.com>, dave@example.com"))

    assert item.artifact_type == "email"
    assert item.global_id == "m1@example.com"
    assert item.title == "Plan"
    assert item.author == "Alice Chen <alice@example.com>"
    assert item.participants == (
        "Alice Chen <alice@example.com>", "Bob <bob@example.com>", "Carol <carol@example.com>",
        "dave@example.com",
    )  # fmt: skip
    assert item.ts == datetime(2026, 3, 9, 8, 26, tzinfo=UTC)
    assert item.text.startswith("From: Alice Chen <alice@example.com>\nTo: Bob <bob@example.com>\n")
    assert item.text.endswith("\n\nHello.\n")


def test_a_thread_is_known_by_its_first_message() -> None:
    item = mail.parse(
        message(In_Reply_To="<m0@example.com>", References="<root@example.com> <m0@example.com>")
    )

    assert item.thread == "root@example.com"
    assert "In-Reply-To: <m0@example.com>\n" in item.text
    assert mail.parse(message()).thread == "m1@example.com", "it may become one"


@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        (b"=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
        (b"=?iso-8859-1?Q?Gr=FC=DFe?=", "Grüße"),
        (b"=?utf-7?Q?Fr+APY-sche?=", "Frösche"),
        (b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),  # raw UTF-8
        (b"Gr\xfc\xdfe", "Grüße"),  # raw Latin-1
        (b"=?no-such-charset?Q?Gr=FC=DFe?=", "Grüße"),
    ],
)
def test_subjects_in_any_charset_are_read(raw: bytes, subject: str) -> None:
    data = b"From: a@example.com\nSubject: " + raw + b"\n\nHello.\n"
    assert mail.parse(data).title == subject


@pytest.mark.parametrize(
    ("raw", "people"),
    [
        ("Doe, John <j@example.com>", ["Doe, John <j@example.com>"]),
        ('"Doe, John" <j@example.com>', ["Doe, John <j@example.com>"]),
        ('"John \\"JD\\" Doe" <j@example.com>', ['John "JD" Doe <j@example.com>']),
        ("John [Acme] <j@example.com>", ["John [Acme] <j@example.com>"]),
        ("John@Acme <j@example.com>", ["John@Acme <j@example.com>"]),
        ("=?utf-8?Q?Doe=2C_J?= <j@example.com>", ["Doe, J <j@example.com>"]),
        ("<j@example.com>", ["j@example.com"]),
        ("j@example.com (John Doe)", ["John Doe <j@example.com>"]),
        ("a@example.com, Bob <b@example.com>", ["a@example.com", "Bob <b@example.com>"]),
        ("Doe, John <j@example.com>, Roe, Jane <r@example.com>",
         ["Doe, John <j@example.com>", "Roe, Jane <r@example.com>"]),
        ("Team: A <a@example.com>, B <b@example.com>;", ["A <a@example.com>", "B <b@example.com>"]),
        ("undisclosed-recipients:;", []),
    ],
)  # fmt: skip
def test_people_are_known_however_their_program_wrote_them(raw: str, people: list[str]) -> None:
    item = mail.parse(f"From: {raw}\nSubject: x\n\nHello.\n".encode())
    assert list(item.participants) == people
    assert item.author == (people[0] if people else None)


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Foo 2026", "x" * 10_000])
def test_a_date_that_is_none_is_left_out(date: str) -> None:
    data = f"From: a@example.com\nDate: {date}\n\nHello.\n".encode()
    assert mail.parse(data).ts is None


# --- bodies ----------------------------------------------------------------------------------


def test_the_plain_version_is_preferred_and_html_is_read_where_it_is_alone() -> None:
    both = EmailMessage()
    both["From"] = "a@example.com"
    both.set_content("Plain words.")
    both.add_alternative("<p>HTML words.</p>", subtype="html")
    alone = EmailMessage()
    alone["From"] = "a@example.com"
    alone.set_content(
        "<style>p{}</style><p>We <b>decided</b>.</p><script>steal()</script>"
        '<img src="https://tracker.example.com/p.gif" width=1><blockquote>Old.</blockquote>',
        subtype="html",
    )

    assert "Plain words." in mail.parse(both.as_bytes()).text
    assert "HTML words." not in mail.parse(both.as_bytes()).text
    body = mail.parse(alone.as_bytes()).text.partition("\n\n")[2]
    assert body == "We decided.\n\n> Old.\n"


def test_attachments_are_named_and_enclosed_messages_quoted() -> None:
    outer = EmailMessage()
    outer["From"] = "a@example.com"
    outer.set_content("See below.")
    outer.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="plan.pdf")
    inner = EmailMessage()
    inner["From"] = "carol@example.com"
    inner["Subject"] = "Old"
    inner.set_content("I will pay on Friday.")
    outer.add_attachment(inner)

    text = mail.parse(outer.as_bytes()).text
    assert "[Attachment: plan.pdf (application/pdf)]" in text
    assert "> From: carol@example.com\n> Subject: Old\n>\n> I will pay on Friday." in text


LEFT_OUT = "[Further parts were left out]"


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"Content-Type: multipart/mixed; boundary=x\n\n--x\nno end", "no end"),
        (b"Content-Type: multipart/mixed\n\nno boundary", "no boundary"),
        (b"Content-Type: multipart/mixed; boundary=x\n\nno --x line", "no --x line"),
        (b"Content-Type: multipart/mixed; boundary=x\n\n--y\nContent-Type: text/plain\n\nHello\n"
         b"--y\nContent-Type: text/html\n\n<p>you</p>\n--y--\n", "Hello\n\nyou"),
        (b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--y\r\nContent-Type: text/plain;"
         b" charset=cp1252\r\n\r\nGr\xfc\xdfe\r\n--y--\r\n", "Grüße"),
        (b"Content-Type: text/enriched\n\nHello", "Hello"),
        (b"Content-Type: text/calendar\n\nSUMMARY:Hello", "SUMMARY:Hello"),
        (b"Content-Type: application/octet-stream\n\nHello", "Hello"),
        (b"Content-Type: application/octet-stream\n\n\x00\x01\x02",
         "[Attachment: without a name (application/octet-stream)]"),
        (b"Content-Type: text/rtf\n\n{\\rtf1}", "[Attachment: without a name (text/rtf)]"),
        (b"Content-Transfer-Encoding: base64\n\nSGVsbG8=!!!", "Hello"),
        (b'Content-Type: text/plain; charset="\'"\n\nHello', "Hello"),
        (b"Content-Type: text/plain; charset=zlib\n\nHello", "Hello"),
        (b"Content-Type: text/plain; charset*=x'y'%ff\n\nHello", "Hello"),
        (b"Content-Type: /;;;=\n\nHello", "Hello"),
        (b"Content-Type: text\n\nHello", "Hello"),
        (b"Subject: " + b"x" * 1_000_000 + b"\n\nHello", "Hello"),
        (b"To: " + b"<" * 200_000 + b"\n\nHello", "Hello"),
        (b"To: " + b"a@example.com, " * 50_000 + b"\n\nHello", "Hello"),
        (b"To: " + b"@" * 200_000 + b" <a@example.com>\n\nHello", "Hello"),
        (b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n)
                  for n in range(60)) + b"deep", LEFT_OUT),
        (b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\nHello\n" * 600,
         "\n\n".join(["Hello"] * 499 + [LEFT_OUT])),
    ],
    ids=range(22),
)  # fmt: skip
def test_a_broken_message_keeps_its_body(data: bytes, body: str) -> None:
    text = mail.parse(b"From: a@example.com\n" + data).text
    assert text.partition("\n\n")[2] == body + "\n"
    assert len(text) < 200_000


@pytest.mark.parametrize(
    "data",
    [
        b"From: \xff\xfe\x00 <\x00>\n\n\x00\x01\x02",
        b"From: a@example.com\nContent-Type: message/rfc822\n\n" * 30,
    ],
)
def test_a_message_of_nonsense_is_still_text(data: bytes) -> None:
    item = mail.parse(data).tidied()
    assert item.text.strip()
    assert item.text.encode(errors="replace").decode()


def test_a_message_that_nests_without_end_is_refused() -> None:
    with pytest.raises(Unusable, match="nests deeper"):
        mail.parse(b"From: a@example.com\nContent-Type: message/rfc822\n\n" * 3_000)


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Type: multipart/mixed; boundary=b\n\nHello\n" + b"--b\n\n" * 6_000,
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n)
                 for n in range(200)) + b"\n--x" * 4_900 + b"\n" * 10_000,
        b"\nHello" + b"\n" * 1_000_000 + b"you",
    ],
    ids=["parts", "levels", "lines"],
)  # fmt: skip
def test_a_message_that_costs_more_than_others_is_read_with_limits(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"From: Alice <a@example.com>\nDate: Mon, 9 Mar 2026 09:26:00 +0100\n" + data
    asked = []
    inside = sandbox.parse

    def parse(kind: str, data: bytes) -> dict[str, Any]:
        asked.append(kind)
        return inside(kind, data)

    monkeypatch.setattr(sandbox, "parse", parse)
    assert mail.parse(data) == mail.read(data), "the same, wherever it is read"
    assert asked == ["mail"]
    mail.parse(message("Hello.\n" + "--\n" * 1_000))
    assert asked == ["mail"], "an ordinary one does not pay for a process"


@pytest.mark.parametrize("data", [b"", b"\n\n", b"just text\nwithout any header\n"])
def test_what_is_no_message_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(Unusable):
        mail.parse(data)


# --- quotations ------------------------------------------------------------------------------

QUOTED = {
    "marks": "Fine.\n\nOn Fri, 6 Mar 2026, Bob wrote:\n> I will pay by Friday.\n",
    "attribution without marks": (
        "Fine.\n\nOn Fri, 6 Mar 2026 at 17:51, Bob <bob@example.com> wrote:\n\n"
        "I will pay by Friday.\n\nBob\n"
    ),
    "wrapped attribution": (
        "Fine.\n\nOn Fri, 6 Mar 2026 at 17:51, Bob Smith\n<bob@example.com> wrote:\n"
        "I will pay by Friday.\n"
    ),
    "Outlook": (
        "Fine.\n\n-----Original Message-----\nFrom: Bob\nSent: Friday\nTo: Alice\n"
        "Subject: Money\n\nI will pay by Friday.\n"
    ),
    "Outlook without a line": (
        "Fine.\n\nFrom: Bob <bob@example.com>\nSent: Friday, March 6, 2026\nTo: Alice\n"
        "Subject: Money\n\nI will pay by Friday.\n"
    ),
    "Outlook with a rule": (
        "Fine.\n________________________________\nFrom: Bob\nSent: Friday\nTo: Alice\n\n"
        "I will pay by Friday.\n"
    ),
    "forwarded": (
        "Fine.\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: Fri\n\n"
        "I will pay by Friday.\n"
    ),
    "forwarded by Notes": (
        "Fine.\n\n---------------------- Forwarded by Bob/HOU/ECT on 03/06/2001 09:00 AM "
        "---------------------------\n\nI will pay by Friday.\n"
    ),
    "forwarded by Apple": (
        "Fine.\n\nBegin forwarded message:\n\nFrom: Bob\n\nI will pay by Friday.\n"
    ),
    "Outlook alone": "From: Bob\nSent: Friday\nTo: Alice\n\nI will pay by Friday.\n",
    "Outlook with many recipients": (
        "Fine.\n\nFrom: Bob\nSent: Friday\nTo: Alice; Carol;\n Dave\nSubject: x\n\n"
        "I will pay by Friday.\n"
    ),
    "a header that the writer made up": (
        "Fine.\n\nFrom: Bob <bob@example.com>\nSubject: Money\n\nI will pay by Friday.\n"
    ),
    "French Outlook": (
        "Fine.\n\nDe : Bob <b@example.com>\nEnvoyé : vendredi 6 mars 2026 10:00\nÀ : Alice\n"
        "Objet : Argent\n\nI will pay by Friday.\n"
    ),
    "Spanish Outlook": (
        "Fine.\n\nDe: Bob\nEnviado el: viernes\nPara: Alice\nAsunto: Dinero\n\n"
        "I will pay by Friday.\n"
    ),
    "Italian Outlook": (
        "Fine.\n\nDa: Bob\nInviato: venerdì\nA: Alice\nOggetto: Soldi\n\nI will pay by Friday.\n"
    ),
    "Dutch Outlook": (
        "Fine.\n\nVan: Bob\nVerzonden: vrijdag\nAan: Alice\nOnderwerp: Geld\n\n"
        "I will pay by Friday.\n"
    ),
    "Portuguese Outlook": (
        "Fine.\n\nDe: Bob\nEnviada em: sexta\nPara: Alice\nAssunto: x\n\nI will pay by Friday.\n"
    ),
    "Chinese Outlook": (
        "Fine.\n\n发件人：Bob\n发送时间: 2026年3月6日\n收件人： Alice\n主题： x\n\n"
        "I will pay by Friday.\n"
    ),
    "Portuguese separator": "Fine.\n\n-----Mensagem original-----\n\nI will pay by Friday.\n",
    "Dutch separator": "Fine.\n\n-----Oorspronkelijk bericht-----\n\nI will pay by Friday.\n",
    "Portuguese": (
        "Fine.\n\nEm sex., 6 de mar. de 2026 às 17:51, Bob <b@example.com> escreveu:\n\n"
        "I will pay by Friday.\n"
    ),
    "Swedish": (
        "Fine.\n\nDen fre 6 mars 2026 kl 17:51 skrev Bob <b@example.com>:\n\n"
        "I will pay by Friday.\n"
    ),
    "Russian": (
        "Fine.\n\nпт, 6 мар. 2026 г. в 17:51, Bob <b@example.com>:\n\nI will pay by Friday.\n"
    ),
    "Japanese": ("Fine.\n\n2026年3月6日(金) 17:51 Bob <b@example.com>:\n\nI will pay by Friday.\n"),
    "Spanish, wrapped": (
        "Fine.\n\nEl vie, 6 mar 2026 a las 17:51, Bob Smith\n(<bob@example.com>) escribió:\n\n"
        "I will pay by Friday.\n"
    ),
    "French in three lines": (
        "Fine.\n\nLe ven. 6 mars 2026 à 17:51, Bob Smith\n<bob.smith@very-long.example.com>\n"
        "a écrit :\n\nI will pay by Friday.\n"
    ),
    "German": "Gut.\n\nAm 06.03.2026 um 17:51 schrieb Bob:\nI will pay by Friday.\n",
}


@pytest.mark.parametrize("name", QUOTED)
def test_what_is_quoted_is_kept_and_marked(name: str) -> None:
    text = mail.parse(message(QUOTED[name])).text

    assert "I will pay by Friday." in text, "kept"
    assert "> I will pay by Friday." in text, "and marked"
    assert "I will pay" not in own_words(text), "so that it is no new promise"
    rest = "" if name == "Outlook alone" else ("Fine.", "Gut.")
    assert own_words(text).strip() in rest, "and all the rest is the writer's own"


@pytest.mark.parametrize(
    "header",
    [
        "From: Bob\nSubject: Money",
        "From:Bob\nTo:Alice",
        "From: Bob\nX-Note: 1",
        "**From:** Bob\n**Date:** Friday",
        "Message-ID: <1@example.com>\nFrom: Bob",
        "From: Bob\nMood: good\nSubject: Money",
        "Subject: Money\n" + "Mood: good\n" * 20 + "From: Bob",
    ],
)
def test_no_message_is_written_in_the_name_of_another_author(header: str) -> None:
    text = mail.parse(message(f"Fine.\n\n{header}\n\nI will pay by Friday.\n")).text
    context = DocumentContext("email", "Plan", "Alice Chen", ("Alice Chen", "Bob"), None)
    assert not [event for event in propose(text, context).events if "Bob" in str(event.actors)]


@pytest.mark.parametrize("name", [name for name in QUOTED if name != "Outlook alone"])
def test_the_rules_know_a_quotation_that_no_import_marked(name: str) -> None:
    text = f"From: Alice <alice@example.com>\nSubject: Plan\n\n{QUOTED[name]}"
    if name != "a header that the writer made up":  # two messages, one below the other
        assert "I will pay" not in own_words(text)


def test_a_long_quotation_is_marked_in_every_line_so_that_each_passage_knows() -> None:
    old = "\n".join(f"I will deliver part {n} by Friday." for n in range(500))
    text = mail.parse(message(f"Ok.\n\n-----Original Message-----\nFrom: Bob\n\n{old}\n")).text
    middle = text[len(text) // 2 :].partition("\n")[2]
    assert all(line.startswith(">") for line in middle.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "I will pay by Friday.\n",
        "On Monday Bob wrote the plan.\n\nI will pay.\n",
        "> You said A.\nNo, I will do B.\n> And C?\nYes.\n",
        "On Fri, Bob wrote:\n> A?\n\nI will do B.\n",
        "From: me\n",
        "On Friday in the meeting Bob wrote:\n\nthe plan\n\nI will pay.\n",
        "As I wrote in ticket 42:\n\nI will pay.\n",
        "We met on 6 March 2026.\nThere Bob wrote:\nI will pay.\n",
        "Plan:\n\n-- Original plan --\nI will pay.\n",
        "---- Original plan ----\nI will pay.\n",
        "Meeting\n\nTo: be decided\nDate: Friday\nSubject: budget\n\nI will pay.\n",
        "Reise\n\nVon: Berlin\nAn: Paris\nDatum: Freitag\n\nI will pay.\n",
        "Trip\n\nFrom: Berlin\nTo: Paris\nDate: Friday\n\nI will pay.\n",
        "____________________\n\nI will pay.\n",
    ],
)
def test_the_writers_own_words_are_never_marked(text: str) -> None:
    assert quoted_replies.mark(text) == text


# --- mailboxes -------------------------------------------------------------------------------


def test_a_mailbox_is_read_message_by_message() -> None:
    separator = b"From alice@example.com Mon Mar  9 09:26:00 2026\n"
    data = (
        separator + message("One.\n\n>From here on quoted.\n")
        + b"\n" + separator + message("Two.", Message_ID="<m2@example.com>") + b"\n"
    )  # fmt: skip
    first, second = mbox.messages(io.BytesIO(data))

    assert mbox.looks_like(data)
    assert first is not None
    assert second is not None
    assert "\nFrom here on quoted." in mail.parse(first).text, "its own escaping is undone"
    assert mail.parse(second).global_id == "m2@example.com"


@pytest.mark.parametrize(
    "sentence",
    [
        b"From Monday on until 2026 we pay.",
        b"From Monday 10:00 on, until 2026, we pay.",
        b"From a@example.com Mon Mar  9 2026\nSubject: x",
    ],
)
def test_a_sentence_that_begins_with_from_splits_no_message(sentence: bytes) -> None:
    separator = b"From alice@example.com Mon Mar  9 09:26:00 2026\n"
    body = b"Hi.\n\n" + sentence + b"\nI will pay.\n\n"
    data = separator + b"From: a@example.com\n\n" + body + separator + message("Two.")

    first, second = mbox.messages(io.BytesIO(data))
    assert first == b"From: a@example.com\n\n" + body
    assert second is not None
    assert "Two." in mail.parse(second).text


def test_a_message_that_is_too_large_is_left_out_and_the_next_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memory_core.importing.limits import Limits

    monkeypatch.setattr(mbox, "LIMITS", Limits(message_bytes=1_000))
    separator = b"From a@example.com Mon Mar  9 09:26:00 2026\n"
    data = separator + b"X: 1\n\n" + b"y" * 5_000 + b"\n\n" + separator + message("Small.")

    large, small = mbox.messages(io.BytesIO(data))
    assert large is None
    assert small is not None
    assert "Small." in mail.parse(small).text
