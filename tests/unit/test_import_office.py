"""PDF and DOCX: all of their text, what is said about them, and files that mean harm."""

import io
import json
import struct
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import docx
import pytest
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from memory_core.importing import formats, sandbox, sandbox_worker
from memory_core.importing.formats import docx as docx_format
from memory_core.importing.item import Item, Skip, Unusable
from memory_core.importing.limits import Limits


def item(name: str, data: bytes) -> Item:
    path = PurePosixPath(name)
    [found] = formats.parse(formats.recognise(data[:4096], path), data, path, dict)
    return found


def pdf(*pages: str, password: str | None = None, **about: str) -> bytes:
    writer = PdfWriter()
    for words in pages:
        page = writer.add_blank_page(200, 200)
        font = DictionaryObject({
            NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        })  # fmt: skip
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({words}) Tj ET".encode() if words else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({f"/{name}": value for name, value in about.items()})
    if password is not None:
        writer.encrypt(password, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def saved(document: Any, **about: str) -> bytes:
    for name, value in about.items():
        setattr(document.core_properties, name, value)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def plan() -> Any:
    document = docx.Document()
    document.add_heading("Plan", 1)
    document.add_paragraph("We decided to go.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "who", "Alice"
    return document


def run(words: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{words}</w:t></w:r>'


def with_body(*blocks: str) -> Any:
    """A document of these pieces of XML."""
    document = docx.Document()
    spaces = nsdecls("w") + (
        ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    for block in blocks:
        element = parse_xml(f"<w:body {spaces}>{block}</w:body>")
        for child in list(element):
            document.element.body.insert(len(document.element.body) - 1, child)
    return document


# --- what they say ---------------------------------------------------------------------------


def test_pdf_and_docx_are_read_with_their_metadata() -> None:
    page = item("a.pdf", pdf("We go.", "Second page.", Title="The plan", Author="Alice Chen"))
    text = item("a.docx", saved(plan(), title="The plan", author="Alice Chen"))

    assert (page.text, page.title, page.author) == (
        "We go.\n\nSecond page.", "The plan", "Alice Chen",
    )  # fmt: skip
    assert (text.title, text.author) == ("The plan", "Alice Chen")
    assert text.text == "# Plan\n\nWe decided to go.\n\n- first\n\nwho | Alice"


def test_without_metadata_the_heading_or_the_name_is_the_title() -> None:
    assert item("notes/a plan.pdf", pdf("We go.")).title == "a plan"
    assert item("notes/a.docx", saved(plan())).title == "Plan"
    plain = docx.Document()
    plain.add_paragraph("Words.")
    assert item("notes/a plan.docx", saved(plain)).title == "a plan"


def test_a_time_without_a_zone_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    naive = item("a.pdf", pdf("We go.", CreationDate="D:20260309092600"))
    zoned = item("a.pdf", pdf("We go.", CreationDate="D:20260309092600+01'00'"))
    assert naive.ts == datetime(2026, 3, 9, 9, 26, tzinfo=UTC)
    assert zoned.ts == datetime(2026, 3, 9, 8, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (f"<w:p>{run('Pay ')}<w:ins>{run('1000')}</w:ins><w:del><w:r><w:delText>5</w:delText></w:r>"
         f"</w:del><w:moveFrom>{run('gone')}</w:moveFrom>{run(' now')}</w:p>", "Pay 1000 now"),
        (f"<w:sdt><w:sdtContent><w:p>{run('Controlled')}</w:p></w:sdtContent></w:sdt>",
         "Controlled"),
        (f"<w:p>{run('by ')}<w:sdt><w:sdtContent>{run('Friday')}</w:sdtContent></w:sdt></w:p>",
         "by Friday"),
        (f"<w:tbl><w:tr><w:tc><w:p>{run('a')}</w:p><w:tbl><w:tr><w:tc><w:p>{run('b')}</w:p></w:tc>"
         f"<w:tc><w:p>{run('c')}</w:p></w:tc></w:tr></w:tbl></w:tc>"
         f"<w:sdt><w:sdtContent><w:tc><w:p>{run('d')}</w:p></w:tc></w:sdtContent></w:sdt></w:tr>"
         "</w:tbl>", "a b | c | d"),
        (f"<w:p>{run('Above')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:txbxContent>"
         f"<w:p>{run('In a box')}</w:p></w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>"
         f"<w:p>{run('In a box')}</w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>"
         "</w:p>", "Above\n\nIn a box"),
        (f"<w:p><w:pPr><w:tabs><w:tab w:val='left' w:pos='5'/></w:tabs></w:pPr>{run('a')}"
         f"<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a\tb\nc"),
    ],
    ids=["tracked changes", "content control", "inline control", "nested table", "text box", "tab"],
)  # fmt: skip
def test_no_text_of_a_docx_is_lost_or_doubled(block: str, text: str) -> None:
    assert docx_format.extract(saved(with_body(block)))["text"] == text


def test_footnotes_stand_at_the_end_under_their_marks() -> None:
    document = with_body(f"<w:p>{run('We pay')}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>")
    notes = (
        f"<w:footnotes {nsdecls('w')}>"
        f"<w:footnote w:type='separator' w:id='0'><w:p>{run('rule')}</w:p></w:footnote>"
        f"<w:footnote w:id='2'><w:p>{run('By Friday.')}</w:p></w:footnote></w:footnotes>"
    )
    part = Part(
        PackURI("/word/footnotes.xml"), CONTENT_TYPE.WML_FOOTNOTES, notes.encode(),
        document.part.package,
    )  # fmt: skip
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)

    assert docx_format.extract(saved(document))["text"] == "We pay[^2]\n\n[^2]: By Friday."


# --- what cannot be read ---------------------------------------------------------------------


def test_a_pdf_of_pictures_and_a_broken_one_say_so() -> None:
    with pytest.raises(Skip, match="pictures"):
        item("scan.pdf", pdf(""))
    with pytest.raises(Unusable, match="not a readable PDF"):
        item("broken.pdf", b"%PDF-1.4 garbage")


def test_a_pdf_with_a_password_says_so_and_one_with_an_empty_one_is_read() -> None:
    with pytest.raises(Unusable, match="password"):
        item("locked.pdf", pdf("Secret.", password="secret"))
    assert item("printable.pdf", pdf("We go.", password="")).text == "We go."


def archive(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members:
            packed.writestr(name, data)
    return out.getvalue()


def test_a_docx_that_unpacks_to_too_much_in_all_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = archive(*((f"word/{n}.xml", b" " * 600) for n in range(2)))
    monkeypatch.setattr(docx_format, "LIMITS", Limits(unpacked_bytes=1_200))
    with pytest.raises(Unusable, match="not a readable DOCX"):
        docx_format.extract(data)
    monkeypatch.setattr(docx_format, "LIMITS", Limits(unpacked_bytes=1_199))
    with pytest.raises(Unusable, match="zip bomb"):
        docx_format.extract(data)


def test_a_docx_whose_directory_lies_is_not_unpacked_beyond_what_it_says() -> None:
    honest = saved(plan())
    with zipfile.ZipFile(io.BytesIO(honest)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    members["word/document.xml"] += b" " * 5_000_000
    data = bytearray(archive(*members.items()))
    size = len(members["word/document.xml"])
    where = data.rfind(struct.pack("<L", size))
    assert data.count(struct.pack("<L", size)) == 2, "before the member, and in the directory"
    data[where : where + 4] = struct.pack("<L", 1_000)

    with pytest.raises(Unusable, match="not a readable DOCX"):
        item("a.docx", bytes(data))


# --- the sandbox -----------------------------------------------------------------------------


def test_a_parser_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "import sys; sys.stdin.read(); [0 for _ in iter(int, 1)]"
    monkeypatch.setattr(sandbox, "command_of", lambda _: [sys.executable, "-I", "-c", endless])
    monkeypatch.setattr(sandbox, "LIMITS", Limits(parser_seconds=2))
    with pytest.raises(Unusable, match="takes longer than 2 s"):
        sandbox.parse("pdf", b"x")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise MemoryError", "memory"),
        ("import os; os.kill(os.getpid(), 9)", "memory"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("raise ValueError('odd')", "ValueError: odd"),
        ("print('no JSON')", "no answer"),
        ('print(\'{"unusable": "torn"}\')', "torn"),
    ],
)
def test_a_parser_that_fails_says_how(
    program: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-I", "-c", f"import sys; sys.stdin.read()\n{program}"]
    monkeypatch.setattr(sandbox, "command_of", lambda _: command)
    with pytest.raises(Unusable, match=reason):
        sandbox.parse("pdf", b"x")


@pytest.mark.parametrize(("kind", "library"), [("pdf", "pypdf"), ("docx", "python-docx")])
def test_a_missing_library_is_named(
    kind: str,
    library: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sandbox_worker, "confine", lambda: None)
    monkeypatch.setattr(sys, "argv", ["worker", kind])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pdf("x"))))
    monkeypatch.setitem(sys.modules, library.removeprefix("python-"), None)

    sandbox_worker.main()

    answer = capsys.readouterr().out
    assert json.loads(answer) == {"missing": kind.upper()}
    with pytest.raises(Skip, match=f"need {library}: `pipx inject .* {library}`"):
        sandbox.checked_answer(kind, answer.encode())
