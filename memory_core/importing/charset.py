"""Bytes become text: a byte order mark first, then UTF-8, then what was declared, then a guess."""

import codecs
import logging

from memory_core.importing.item import Skip

# Longest first: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 20_000
# Of less, a guess is a lottery among the alphabets of the world.
_MIN_GUESS = 64
# Not encodings of text, though Python lists them beside.
_CODECS_OF_OTHER_THINGS = {
    "base64", "bz2", "hex", "idna", "mbcs", "oem", "punycode", "quopri", "raw_unicode_escape",
    "rot13", "undefined", "unicode_escape", "uu", "zlib",
}  # fmt: skip
_ALIASES = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
_MAX_CONTROL_SHARE = 0.1
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b\x00")


def decode(data: bytes, declared: str | None = None) -> str:
    """Every byte finds its way into the text; what no encoding explains stands as U+FFFD.

    A label of Latin-1 or ASCII is read as its superset Windows-1252, as mail programs do.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    if wide := _wide(data[:_SAMPLE]):
        return data.decode(wide, errors="replace")
    if not _is_utf7(declared):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    name = _usable(declared)
    if name is not None:
        text = data.decode(name, errors="replace")
        if "\ufffd" not in text or name.startswith("utf"):
            return text
    return data.decode(_guess(data) or name or "cp1252", errors="replace")


def refuse_binary(data: bytes) -> None:
    """Text may hold a stray control character; a file full of them is something else."""
    sample = data[:_SAMPLE]
    if not sample or any(sample.startswith(mark) for mark, _ in _MARKS) or _wide(sample):
        return
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    if (controls + sample.count(0)) / len(sample) > _MAX_CONTROL_SHARE:
        raise Skip("not text, and not a format that can be imported")


def _usable(label: str | None) -> str | None:
    if not label:
        return None
    plain = label.strip().strip("\"'").lower()[:40]
    try:
        name = codecs.lookup(_ALIASES.get(plain, plain)).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    if name.removesuffix("_codec") in _CODECS_OF_OTHER_THINGS:
        return None
    return _ALIASES.get(name.replace("_", "-"), name)


def _is_utf7(label: str | None) -> bool:
    """Pure ASCII to the eye, so that trying UTF-8 first would never find out."""
    return label is not None and _usable(label) == "utf_7"


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of western text is zero."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if half >= 2 and odd > 0.6 * half and even < 0.1 * half:
        return "utf-16-le"
    if half >= 2 and even > 0.6 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


def _guess(data: bytes) -> str | None:
    if len(data) < _MIN_GUESS:
        return None
    from charset_normalizer import from_bytes

    logging.getLogger("charset_normalizer").setLevel(logging.ERROR)
    best = from_bytes(data[:_SAMPLE], preemptive_behaviour=False).best()
    return best.encoding if best is not None else None
