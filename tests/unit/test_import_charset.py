"""Bytes become the text that their writer meant: declared, guessed, or damaged."""

import struct
from pathlib import PurePosixPath

import pytest

from memory_core.importing import charset, formats
from memory_core.importing.charset import decode
from memory_core.importing.item import Skip

GERMAN = "Die Hasen und die Frösche klagten über ihre mißliche Lage, größer als je zuvor."
JAPANESE = "これは会議の議事録です。五月に発売すると決めました。"
RUSSIAN = "Мы решили запустить новый продукт в мае этого года. "
FRENCH = "Il a décidé de lancer le produit en été; ça coûte 5 €. "
KOREAN = "우리는 금요일까지 계약서를 보내기로 결정했습니다. 회의록 입니다. "
POLISH = "Zdecydowaliśmy się uruchomić produkt w maju, żeby dział mógł podpisać umowę. "


def text_of(name: str, data: bytes) -> str:
    path = PurePosixPath(name)
    form = formats.recognise(data[:4096], path)
    [item] = formats.parse(form, data, path, dict)
    return item.text


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "iso-8859-1"],
)
def test_text_in_any_usual_charset_is_read(encoding: str) -> None:
    assert text_of("a.txt", GERMAN.encode(encoding)) == GERMAN


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("words", [RUSSIAN, "Αποφασίσαμε να ξεκινήσουμε τον Μάιο.", "החלטנו"])
def test_utf16_without_a_mark_is_known_in_any_alphabet(words: str, encoding: str) -> None:
    assert text_of("a.txt", words.encode(encoding)) == words


def test_numbers_of_two_bytes_are_no_utf16() -> None:
    samples = b"".join(struct.pack("<h", n * 7919 % 1_500) for n in range(5_000))
    with pytest.raises(Skip, match="not text"):
        text_of("a.dat", samples)


def test_mail_in_utf16_is_read() -> None:
    words = "From: a@example.com\nSubject: Größe\n\nHello.\n"
    assert text_of("a.eml", words.encode("utf-16")) == words


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1251", RUSSIAN),
        ("koi8-r", RUSSIAN),
        ("cp866", RUSSIAN),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("iso-2022-jp", JAPANESE),
        ("euc-kr", KOREAN),
        ("iso-2022-kr", KOREAN),
        ("euc-kr", "회의록 입니다. 결정했습니다."),
        ("big5", "我們決定在五月推出新產品。"),
        ("gb18030", "我们决定在五月推出新产品，李明负责。"),
        ("cp1252", FRENCH),
        ("cp1252", "El niño mañana decidirá qué pasó en España. "),
        ("mac-roman", "Il a décidé de lancer le produit en été; ça coûte cher. "),
        ("iso-8859-2", POLISH),
        ("cp1250", "Šéf pošle smlouvu příští týden, rozhodli jsme se spustit nový produkt. "),
        ("iso-8859-2", "Šéf pošle smlouvu příští týden, rozhodli jsme se. "),
        ("cp1250", POLISH),
        ("cp1253", "Αποφασίσαμε να ξεκινήσουμε τον Μάιο. "),
        ("cp1254", "Ürünü mayısta çıkarmaya karar verdik, Şule gönderecek. "),
        ("cp874", "เราตัดสินใจเปิดตัวผลิตภัณฑ์ใหม่ในเดือนพฤษภาคม "),
    ],
)
def test_an_undeclared_charset_is_guessed(encoding: str, words: str) -> None:
    text = words * 10
    assert text_of("a.txt", text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("iso-2022-jp", JAPANESE),
        ("iso-2022-kr", KOREAN),
        ("hz", "我们决定"),
        ("utf-7", "Frösche"),
    ],
)
def test_a_declared_charset_that_looks_like_ascii_comes_before_utf8(
    encoding: str, words: str
) -> None:
    assert decode(words.encode(encoding), encoding.upper()) == words
    if encoding.startswith("iso"):
        assert decode(words.encode(encoding)) == words, "its escapes tell it without a label"


def test_a_charset_that_looks_like_ascii_is_not_believed_of_other_bytes() -> None:
    assert decode(GERMAN.encode(), "iso-2022-jp") == GERMAN
    assert decode(GERMAN.encode("cp1252"), "utf-7") == GERMAN
    assert decode(b"\x1b[31mred\x1b[0m costs \x1b$5") == "\x1b[31mred\x1b[0m costs \x1b$5"


def test_declared_charsets_are_respected_unless_they_lie() -> None:
    assert decode("Grüße".encode("cp1252"), "iso-8859-1") == "Grüße"
    assert decode("Grüße".encode(), "iso-8859-1") == "Grüße", "it is UTF-8"
    assert decode(JAPANESE.encode("shift_jis"), "Shift_JIS") == JAPANESE
    assert decode(JAPANESE.encode("utf-16-be"), "utf-16-be") == JAPANESE
    assert decode(POLISH.encode("iso-8859-2"), "iso-8859-2") == POLISH
    assert decode(b"plain", "no such thing") == "plain"
    assert decode(b"\xff\xfe\x00", "zlib")


@pytest.mark.parametrize("declared", [None, "utf-8", "iso-8859-1"])
def test_one_wrong_byte_does_not_ruin_utf8(declared: str | None) -> None:
    assert (
        decode(GERMAN.encode() + b"\xff" + GERMAN.encode(), declared) == GERMAN + "\ufffd" + GERMAN
    )
    assert decode("Größe wä".encode()[:-1], declared) == "Größe w\ufffd"


@pytest.mark.parametrize("words", [FRENCH, GERMAN, "läuft über"])
def test_a_false_label_of_utf8_is_ignored(words: str) -> None:
    assert decode(words.encode("cp1252"), "utf-8") == words


def test_accents_are_found_however_late_they_come() -> None:
    head = "plain words here. " * 5_000
    for text in (head + "Größe für müde Hasen", head + "\n" + "Größe für müde Hasen " * 20):
        assert decode(text.encode("cp1252")) == text
    late = head + "\n" + RUSSIAN
    assert decode(late.encode("cp1251")) == late


def test_what_a_guess_looks_at_is_bounded() -> None:
    line = b"a" * 100_000 + b"\xe9" + b"b" * 100_000
    assert len(charset.telling_part(line * 50)) <= charset.SAMPLE
    assert b"\xe9" in charset.telling_part(line)


@pytest.mark.parametrize(
    "head",
    [
        '<html><head><meta charset="{}"></head><body>',
        '<meta http-equiv=Content-Type content="text/html; charset = {}">',
        '<?xml version="1.0" encoding="{}"?><html><body>',
    ],
)
@pytest.mark.parametrize(
    ("encoding", "words"),
    [("iso-8859-2", POLISH), ("shift_jis", "決めた"), ("iso-2022-jp", JAPANESE)],
)
def test_a_page_says_its_charset(head: str, encoding: str, words: str) -> None:
    page = head.format(encoding) + f"<p>{words}</p>"
    assert text_of("a.html", page.encode(encoding)).strip() == words.strip()


def test_a_page_in_a_message_says_its_charset_where_the_message_does_not() -> None:
    head = "From: a@example.com\nSubject: x\nContent-Type: text/html{}\n\n<meta charset=iso-8859-2>"
    for label in ("", "; charset=iso-8859-2"):
        data = head.format(label).encode() + POLISH.encode("iso-8859-2")
        assert text_of("a.eml", data).endswith(POLISH.strip() + "\n")


def test_a_page_that_says_utf16_in_ascii_does_not_have_it() -> None:
    page = f'<meta charset="utf-16"><p>{GERMAN}</p>'
    assert text_of("a.html", page.encode("cp1252")).strip() == GERMAN


@pytest.mark.parametrize(
    ("encoding", "words", "shift"),
    [("iso-2022-kr", KOREAN, b"\x0e!\x0f"), ("iso-2022-jp", JAPANESE, b"\x1b$B!\x1b(B")],
)
@pytest.mark.parametrize("declared", [None, "utf-8", "us-ascii"])
def test_one_wrong_byte_does_not_undo_an_escaped_encoding(
    encoding: str, words: str, shift: bytes, declared: str | None
) -> None:
    text = decode((words * 5).encode(encoding) + shift, declared)

    assert text.startswith(words * 5)
    assert text.count("\ufffd") <= 2


def test_a_terminal_s_colours_are_no_other_encoding() -> None:
    log = "next \x1b[31mred\x1b[0m, it costs \x1b[1m$5\x1b[0m\n"
    assert decode(log.encode()) == log
