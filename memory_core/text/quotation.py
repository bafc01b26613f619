"""Where mail programs begin to quote: separators, headers and attributions, in many languages.

All patterns work on single lines of bounded length, so that no line can make them slow.
"""

import re
from collections.abc import Sequence

ATTRIBUTION_LINES = 3
_LINE_CHARS = 400

# -- "-----Original Message-----" -----------------------------------------------------------------

_MESSAGE = (
    r"message|nachricht|mensaje|messaggio|mensagem|bericht|meddelande|meddelelse|melding|viesti|"
    r"wiadomo|zpráva|сообщени|письмо|üzenet|ileti|邮件|郵件|メッセージ|메시지|메일"
)
_SEPARATOR = re.compile(
    rf"\s*-{{4,}}\s?(?:[^\n-]{{0,40}}(?:{_MESSAGE})[^\n]{{0,60}}?|forwarded by [^\n]{{1,150}}?)"
    r"\s?-{2,}\s*$",
    re.IGNORECASE,
)
_BEGIN = re.compile(
    rf"\s*(?:begin|anfang|début|inicio|início|inizio)\b[^\n]{{0,30}}(?:{_MESSAGE})"
    r"[^\n]{0,30}[:：]\s*$",
    re.IGNORECASE,
)


def separator(line: str) -> bool:
    """Whether the line announces an earlier message below it."""
    return len(line) <= _LINE_CHARS and bool(_SEPARATOR.match(line) or _BEGIN.match(line))


# -- From, Sent, To, Subject ----------------------------------------------------------------------

_FROM = {
    "from", "von", "de", "da", "van", "från", "fra", "lähettäjä", "od", "kimden", "от", "от кого",
    "expéditeur", "mittente", "remitente", "afzender", "feladó", "发件人", "寄件者", "差出人",
    "보낸 사람", "보낸사람",
}  # fmt: skip
_WHEN = {
    "sent", "date", "gesendet", "datum", "envoyé", "envoyé le", "enviado", "enviado el", "fecha",
    "enviada em", "enviado em", "enviada", "data", "inviato", "inviato il", "verzonden", "skickat",
    "sendt", "dato", "lähetetty", "päivämäärä", "wysłano", "odesláno", "отправлено", "дата",
    "elküldve", "gönderilen", "发送时间", "日期", "送信日時", "日付", "보낸 날짜", "날짜",
}  # fmt: skip
_TO = {
    "to", "an", "à", "a", "para", "aan", "till", "til", "vastaanottaja", "do", "komu", "кому",
    "címzett", "kime", "收件人", "收件者", "宛先", "받는 사람", "받는사람", "cc", "bcc", "kopie",
    "kopia", "copie", "copia", "копия", "抄送", "참조", "reply-to",
}  # fmt: skip
_ABOUT = {
    "subject", "betreff", "objet", "asunto", "oggetto", "onderwerp", "assunto", "ämne", "emne",
    "aihe", "temat", "předmět", "тема", "tárgy", "konu", "主题", "主旨", "件名", "제목",
}  # fmt: skip
_FOR_PROGRAMS = {
    "message-id", "in-reply-to", "references", "mime-version", "received", "return-path",
    "delivered-to", "authentication-results", "dkim-signature",
}  # fmt: skip
_FIELD_NAMES = _FROM | _WHEN | _TO | _ABOUT | _FOR_PROGRAMS
# Fields that do not occur in lists that a writer makes, such as the legs of a journey.
_TELLING = _ABOUT | _FOR_PROGRAMS | {"sent"}
_FIELD = re.compile(r"[ \t]{0,4}\*{0,2}([^\W\d_][^\n:：*]{0,30}?)\*{0,2}\s?[:：]")
_PREFIXES = ("x-", "content-", "list-", "arc-")
_MIN_FIELDS = 2
# In other languages the names of fields are everyday words, so more of them are required.
_MIN_FOREIGN_FIELDS = 3


def header_block(lines: Sequence[str], i: int) -> tuple[int, bool]:
    """The number of lines of mail fields that begin here, and whether they are a header: they name
    a sender and have more fields than "From: Berlin, To: Paris". The caller can skip all these
    lines even if they are no header."""
    fields: set[str] = set()
    stop = i
    while stop < len(lines):
        line = lines[stop]
        field = _field(line)
        if field is not None:
            fields.add(field)
        # Otherwise the field continues on this line.
        elif not (fields and line.strip() and line[0] in " \t"):
            break
        stop += 1
    enough = _MIN_FIELDS if "from" in fields else _MIN_FOREIGN_FIELDS
    is_header = len(fields) >= enough and bool(fields & _FROM) and _tells(fields, lines[i:stop])
    return stop - i, is_header


def _tells(fields: set[str], block: Sequence[str]) -> bool:
    return bool(fields & _TELLING) or any(
        "@" in line or field.startswith(_PREFIXES) or (field in _WHEN and _DATE.search(line[:200]))
        for line in block
        if (field := _field(line))
    )


def _field(line: str) -> str | None:
    match = _FIELD.match(line[:100])
    name = " ".join(match[1].lower().split()) if match else ""
    return name if name in _FIELD_NAMES or name.startswith(_PREFIXES) else None


# -- "On Friday, 6 March 2026, Bob wrote:" --------------------------------------------------------

_VERB = re.compile(
    r"(?:\b(?:wrote|writes|schrieb|schreibt|a écrit|escribió|ha scritto|scrisse|schreef|escreveu|"
    r"skrev|skriver|kirjoitti|napisał|napisała|napisał\(a\)|napsal|napsala|написала?|пишет|írta|"
    r"yazdı|έγραψε)\b|写道|寫道|書きました|작성)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:on|am|le|el|il|op|em|den|dne|w dniu|dnia|på|el día|в|\d{1,4}[-./年]|\w{2,4}\.?,)(?:\s|\d)",
    re.IGNORECASE,
)
_MONTH = (
    r"jan|feb|fév|mar|mär|mrt|maa|apr|avr|abr|may|mai|mei|maj|mag|jun|jui|jul|aug|aoû|ago|sep|set|"
    r"okt|oct|out|ott|nov|dec|dez|dic|déc|ene|gen|янв|фев|апр|мая|июн|июл|авг|сен|окт|ноя|дек"
)
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d{2}(?!\d)|(?<!\d)\d{1,2}[:.h]\d{2}(?!\d)|(?<!\d)\d{1,2}[./-]\d{1,2}(?!\d)|"
    rf"\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:de\s)?(?:{_MONTH})|\b(?:{_MONTH})[^\W\d_]{{0,7}}\.?\s\d",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}")
_CLOCK = re.compile(r"(?<!\d)\d{1,2}:\d{2}")
_BARE_END = re.compile(r"<[^<>\s]{1,200}>\s?[:：]$")
# Prose continues after a full stop; before the stop of a date or an initial there is a short word.
_SENTENCES = re.compile(r"[^\W\d_]{4}[.!?]\s{1,3}[^\W\d_]")
_TAIL = 140


def attribution(lines: Sequence[str], i: int) -> int:
    """The number of lines of an attribution here; 0 for none. Attributions are often wrapped."""
    if len(lines[i]) > _LINE_CHARS or not any(
        line.rstrip().endswith((":", "：")) for line in lines[i : i + ATTRIBUTION_LINES]
    ):
        return 0
    first = lines[i].strip(" \t-\u202f\xa0")
    if not first or not _may_begin(first):
        return 0
    joined = ""
    for count, line in enumerate(lines[i : i + ATTRIBUTION_LINES], start=1):
        if not line.strip() or len(joined) + len(line) > _LINE_CHARS or line.startswith(">"):
            return 0
        joined = f"{joined} {line.strip()}".strip(" \t-\u202f\xa0")
        if joined.endswith((":", "：")):
            return count if _attributes(joined) else 0
    return 0


def _may_begin(first: str) -> bool:
    return bool(_OPENING.match(first) or _ADDRESS.search(first) or _DATE.search(first))


def _attributes(joined: str) -> bool:
    """It has a person, a time and a verb of writing; or, as in some languages, an address and a
    clock time."""
    if _SENTENCES.search(joined):
        return False
    if _BARE_END.search(joined) and _CLOCK.search(joined) and _DATE.search(joined):
        return True
    if not _VERB.search(joined[-_TAIL:]):
        return False
    if _OPENING.match(joined):
        return bool(_DATE.search(joined) or _ADDRESS.search(joined))
    return bool(_ADDRESS.search(joined)) or bool(_CLOCK.search(joined) and _DATE.search(joined))
