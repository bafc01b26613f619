"""Decoding bytes: by a byte order mark, then as UTF-8, then as declared, then by a guess.

Encodings that look like ASCII are tried before UTF-8, which would accept them as ASCII.
"""

import codecs
import logging
import re

from memory_core.importing.alphabets import plausibility
from memory_core.importing.item import Skip

# Longest first: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE = 20_000
# With fewer bytes, a guess would be random.
_MIN_GUESS = 64
_MIN_FOREIGN = 20
# Python lists these among the encodings, but they do not encode text.
_CODECS_OF_OTHER_THINGS = {
    "base64", "bz2", "hex", "idna", "mbcs", "oem", "punycode", "quopri", "raw_unicode_escape",
    "rot13", "undefined", "unicode_escape", "uu", "zlib",
}  # fmt: skip
_ALIASES = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
# Encodings whose bytes look like ASCII, each with the sequence that shows it is really used.
_STATEFUL = {
    "utf_7": b"", "hz": b"~{", "iso2022_jp": b"\x1b$", "iso2022_jp_1": b"\x1b$",
    "iso2022_jp_2": b"\x1b$", "iso2022_jp_2004": b"\x1b$", "iso2022_jp_3": b"\x1b$",
    "iso2022_jp_ext": b"\x1b$", "iso2022_kr": b"\x1b$",
}  # fmt: skip
# One wrong byte does not mean another encoding.
_WRONG_SHARE = 0.02
_KOREAN = b"\x1b$)C"
_ESCAPED = ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext")
# Encodings that people use for files. Among all that exist, rare ones would win by chance.
_USUAL = [
    "cp1252", "cp1251", "koi8_r", "cp1250", "iso8859_2", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp932", "euc_jp", "cp949", "gb18030", "big5", "cp866", "mac_roman", "cp874",
]  # fmt: skip
_LATIN = {"cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "mac_roman"}
_ASCII = bytes(range(128))
_FOREIGN = re.compile(rb"[\x80-\xff]")
_AROUND = 500
# The high bytes of the alphabets from Latin to Arabic in UTF-16. None is a control character that
# text contains.
_ALPHABETS = bytes(range(9))
_SOME_WORDS = 200
_LONGEST_WORDS = 50
_MAX_CONTROL_SHARE = 0.1
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b\x00")


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode every byte; bytes that no encoding explains become U+FFFD.

    A label of Latin-1 or ASCII is read as its superset Windows-1252, as mail programs do.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    if wide := _wide(data[:SAMPLE]):
        return data.decode(wide, errors="replace")
    name = _usable(declared)
    if (text := _stateful(data, name)) is not None:
        return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if name is not None and (name.startswith("utf_8") or name in _STATEFUL):
        name = None  # the bytes contradict the label
    as_declared = data.decode(name, errors="replace") if name is not None else None
    if as_declared is not None and "\ufffd" not in as_declared and len(as_declared) < len(data):
        return as_declared  # a multi-byte encoding does not decode by chance
    if _mostly_utf8(data):
        return data.decode("utf-8", errors="replace")
    if as_declared is not None and "\ufffd" not in as_declared:
        return as_declared
    return data.decode(_guess(data) or name or "cp1252", errors="replace")


def in_bytes_of_ascii(data: bytes) -> bytes:
    """UTF-16 and UTF-32 as UTF-8, for parsers that search for ASCII bytes."""
    if any(data.startswith(mark) for mark, _ in _MARKS[1:]) or _wide(data[:SAMPLE]):
        return decode(data).encode()
    return data


def refuse_binary(data: bytes) -> None:
    """Refuse binary data. Text may contain a stray control character, but not many."""
    sample = data[:SAMPLE]
    if not sample or any(sample.startswith(mark) for mark, _ in _MARKS) or _wide(sample):
        return
    if _KOREAN in sample:  # it switches alphabets with control characters
        sample = sample.translate(None, b"\x0e\x0f")
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


def _stateful(data: bytes, name: str | None) -> str | None:
    """Encodings that look like pure ASCII: decoding as UTF-8 first would never detect them."""
    if name in _STATEFUL:
        sign = _STATEFUL[name]
        if data.isascii() or (sign and sign in data):
            return data.decode(name, errors="replace")
    elif name in (None, "cp1252", "utf_8") and b"\x1b$" in data:
        guesses = ("iso2022_kr",) if _KOREAN in data else _ESCAPED
        texts = [data.decode(guess, errors="replace") for guess in guesses]
        best = min(texts, key=lambda text: text.count("\ufffd"))
        if best.count("\ufffd") <= len(best) * _WRONG_SHARE:
            return best
    return None


def _mostly_utf8(data: bytes) -> bool:
    """Whether it is UTF-8 except for a few wrong bytes, or a letter cut in two."""
    foreign = len(data.translate(None, _ASCII))
    wrong = len(data) - len(data.decode("utf-8", errors="ignore").encode())
    return foreign - wrong > wrong


def _wide(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark: every other byte is the number of the alphabet, which is
    small."""
    half = len(sample) // 2
    if half < 2:
        return None
    even, odd = (half - len(sample[i : 2 * half : 2].translate(None, _ALPHABETS)) for i in (0, 1))
    if odd > 0.6 * half and even < 0.1 * half:
        name = "utf-16-le"
    elif even > 0.6 * half and odd < 0.1 * half:
        name = "utf-16-be"
    else:
        return None
    # Measurements and sounds have small numbers too, but no words.
    text = sample[: 2 * half].decode(name, errors="replace")
    spaces = sum(map(str.isspace, text))
    return name if half < _SOME_WORDS or spaces * _LONGEST_WORDS >= half else None


def _guess(data: bytes) -> str | None:
    sample = telling_part(data)
    if len(sample) < _MIN_GUESS and len(sample.translate(None, _ASCII)) < _MIN_FOREIGN:
        return None
    from charset_normalizer import from_bytes

    logging.getLogger("charset_normalizer").setLevel(logging.ERROR)
    matches = from_bytes(sample, preemptive_behaviour=False, cp_isolation=_USUAL)
    best = matches.best()
    if best is None or best.encoding == "ascii":
        return None
    if best.encoding not in _LATIN:
        return best.encoding
    # The detector distinguishes alphabets, but not the encodings of one alphabet. Among these the
    # letters decide, or else the most common encoding.
    rivals = [one for one in matches if one.encoding in _LATIN and one.chaos <= best.chaos + 0.05]
    return max(rivals, key=lambda one: (plausibility(str(one)), one.encoding == "cp1252")).encoding


def telling_part(data: bytes) -> bytes:
    """The lines with non-ASCII bytes, wherever they are: only those show the encoding."""
    parts: list[bytes] = []
    size = end = 0
    while size < SAMPLE and (match := _FOREIGN.search(data, end)):
        at = match.start()
        begin = max(data.rfind(b"\n", max(end, at - _AROUND), at) + 1, end, at - _AROUND)
        stop = data.find(b"\n", at, at + SAMPLE)
        end = stop + 1 if stop >= 0 else min(at + SAMPLE, len(data))
        parts.append(data[begin:end])
        size += end - begin
    return b"".join(parts)[:SAMPLE]
