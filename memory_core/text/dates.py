"""Dates in text, resolved against an anchor: the date that the text itself or its document has.

A relative date without an anchor stays unresolved. Conventions, where English has several: "Friday"
is the first one after the anchor, "next Friday" the one in the following calendar week. A period
("next week", "Q1", "March") given as a deadline means its last day, and work weeks end on Friday.
Numeric dates are read only if day and month cannot be confused.
"""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from memory_core.text import timed_patterns as re

_MONTHS = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if number}
_DAYS = {name[:3].lower(): number for number, name in enumerate(calendar.day_name)}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
}  # fmt: skip

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_ORD = r"(?:st|nd|rd|th)?"

_DATE = re.compile(
    rf"""(?<![\w/.\-])(?:
      (?P<iso>\d{{4}}-\d{{2}}-\d{{2}})(?:[T ](?P<clock>\d{{2}}:\d{{2}}(?::\d{{2}})?)
        (?P<zone>Z|[+-]\d{{2}}:?\d{{2}})?)?
    | (?P<slashed>\d{{4}}/\d{{1,2}}/\d{{1,2}})
    | (?P<n1>\d{{1,2}})(?P<sep>[/.])(?P<n2>\d{{1,2}})(?P=sep)(?P<n3>\d{{4}})
    | (?P<d1>\d{{1,2}}){_ORD}[\s\-](?:of\s)?(?P<m1>{_MONTH})(?:[,\s\-]{{1,2}}(?P<y1>\d{{4}}))?
    | (?P<m2>{_MONTH})\s(?P<d2>\d{{1,2}}){_ORD}(?:,?\s(?P<y2>\d{{4}}))?(?![\d:%])
    | (?P<mid>mid|(?:the\s)?end\sof|late)[\s\-](?P<m3>{_MONTH})(?:\s(?P<y3>\d{{4}}))?
    | (?P<month_only>{_MONTH})\s(?P<y4>\d{{4}})
    | (?:(?:the\s)?(?:end|close)\sof\s)?(?:the\s)?(?P<qrel>this|next)?\s?\bq(?P<q>[1-4])
      (?:[\s/]{{1,2}}(?P<yq>\d{{4}}))?
    | (?P<simple>today|tonight|tomorrow|yesterday|eod|eow|eom|end\sof\s(?:the\s)?day)
    | (?P<end>(?:the\s)?end\sof\s(?:the\s|this\s)?)?(?P<prel>this|next|last)?\s?
      (?<!\w)(?P<period>week|month|quarter|year)
    | in\s(?P<count>\d{{1,3}}|[a-z]{{1,6}})\s(?P<unit>day|week|month)s?(?:'\stime)?
    | the\s(?P<nth>\d{{1,2}})(?:st|nd|rd|th)(?!\s(?!of\b)[a-z]+\s)
    | (?P<wrel>this|next|last|coming)?\s?(?<!\w)(?P<weekday>{_DAY})
      (?:,?\s(?P<wd>\d{{1,2}}){_ORD}\s(?P<wm>{_MONTH})(?:\s(?P<wy>\d{{4}}))?)?
    )(?![\w]|['’]s\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_VAGUE = re.compile(
    r"\b(?:early|beginning of|start of|since|every|each|most|not|of|from)\s+$", re.IGNORECASE
)
# It happened before the day of the text, on an unknown day.
_LONG_AGO = re.compile(
    r"\b(?:last (?:week|month|year|quarter|time|night)|ago|earlier|previously|originally|formerly|"
    r"initially|historically|used to|in the past|back (?:in|then)|once|since|already|had been|"
    r"the other day|a while back|recently|over the (?:last|past))\b",
    re.IGNORECASE,
)
# "Outage on 3 October": the heading tells of a past day, unless people met on that day.
_TELLS_OF = re.compile(
    r"(?<!meeting )(?<!call )(?<!held )(?<!session )(?<!changed )(?<!decided )"
    r"(?<!updated )\b(?:on|until|by|before|after)\s$",
    re.IGNORECASE,
)
_HALF_A_YEAR = 6
_IN_A_MONTH = re.compile(
    rf"\b(?:in|of|during) (?:(?P<year>(?:19|20)\d\d)|(?P<month>{_MONTH})(?! \d))\b", re.IGNORECASE
)
# "i sat", "the sun": short lower-case days are words, unless a preposition of time precedes them.
_SHORT_DAY = re.compile(r"(?:sun|sat|wed|mon|fri|thu|tue)")
_SAYS_WHEN = re.compile(r"\b(?:by|on|until|before|due|next|this|last|till)\s+$", re.IGNORECASE)
_AHEAD = re.compile(r"\b(?:by|before|until|till|due|on|this) (?:the )?$", re.IGNORECASE)
_EXCLUDES = re.compile(r"\bbefore\s+$", re.IGNORECASE)
_DEADLINE = re.compile(
    r"\b(?:by|before|due|until|than|deadline)\s+(?:on\s+|the\s+)?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The day a passage was said. `stated`: the text says it, not only the document."""

    day: date | None = None
    stated: bool = False


@dataclass(frozen=True, slots=True)
class FoundDate:
    start: int
    end: int
    when: datetime
    # True if the date has a year, or the anchor supplied it; false for bare periods such as "this
    # month".
    exact: bool = True


def find(text: str, anchor: Anchor, future: bool = True) -> FoundDate | None:
    """The date of a sentence: the one after "by" or "due", else the first that resolves.

    `future`: the date is a deadline.
    """
    first: FoundDate | None = None
    for match in _DATE.finditer(text):
        if _VAGUE.search(text, max(0, match.start() - 20), match.start()) or _is_word(match):
            continue
        resolved = _resolve(match, anchor.day, future)
        if resolved is not None and match["prel"] and _EXCLUDES.search(text, 0, match.start()):
            continue  # "before next week": some day until then
        if resolved is not None:
            when, exact = resolved
            date = FoundDate(match.start(), match.end(), when, exact)
            if _DEADLINE.search(text, max(0, match.start() - 20), match.start()):
                return date
            first = first or date
    return first


def mentions(text: str) -> bool:
    """Whether a date is stated at all, resolvable or not."""
    return any(not _is_word(match) for match in _DATE.finditer(text))


def is_ahead(text: str) -> bool:
    """Whether a future day is stated: "by Friday", "tomorrow", "in two weeks"."""
    return not is_long_ago(text) and any(
        (match["simple"] and match["simple"].lower() != "yesterday")
        or (match["count"] and match["unit"])
        or (match["wrel"] or match["prel"] or "").lower() in ("next", "coming", "this")
        or _AHEAD.search(text, max(0, match.start() - 12), match.start())
        for match in _DATE.finditer(text)
        if not _is_word(match)
    )


def is_long_ago(text: str) -> bool:
    return _LONG_AGO.search(text) is not None


def names_a_month(text: str, day: date | None, *, past: bool = False) -> bool:
    """Whether a month or a year is named: something may have happened then, on an unknown day.
    `past`: only one before `day`; a month means the nearest of its name."""
    for match in _IN_A_MONTH.finditer(text):
        if not past or day is None:
            return True
        if match["year"]:
            if int(match["year"]) < day.year:
                return True
        elif (_month(match["month"]) - day.month) % 12 > _HALF_A_YEAR:
            return True
    return False


def _is_word(match: re.Match[str]) -> bool:
    word = match["weekday"]
    if not word or match["wrel"] or not _SHORT_DAY.fullmatch(word):
        return False
    before = match.string[max(0, match.start() - 10) : match.start()]
    return _SAYS_WHEN.search(before) is None


def leading_day(text: str) -> date | None:
    """The full date of a short line or a heading; None without a year."""
    stated = find(text, Anchor())
    if stated is None or not stated.exact or _TELLS_OF.search(text, 0, stated.start):
        return None
    return stated.when.date()


def leading_partial(
    text: str, anchor: date | None, near: date | None = None
) -> tuple[bool, date | None]:
    """Whether a heading is a date without a year, and that day: the one closest to the anchor, else
    to `near`, a day of the same text."""
    match = _DATE.search(text)
    if (
        match is None
        or not (match["m1"] or match["m2"])
        or _TELLS_OF.search(text, 0, match.start())
    ):
        return False, None
    nearest = anchor or near
    resolved = _resolve(match, nearest, future=False) if nearest else None
    return True, resolved[0].date() if resolved else None


def _resolve(
    match: re.Match[str], anchor: date | None, future: bool
) -> tuple[datetime, bool] | None:
    try:
        if match["iso"]:
            return _iso(match), True
        day = _absolute(match, anchor, future)
        if day is not None:
            return midnight(day), True
        if anchor is None:
            return None
        day, exact = _relative(match, anchor, future)
    except (ValueError, OverflowError):
        return None
    return (midnight(day), exact) if day is not None else None


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _iso(match: re.Match[str]) -> datetime:
    if not match["clock"]:
        return midnight(date.fromisoformat(match["iso"]))
    zone = (match["zone"] or "Z").replace("Z", "+00:00")
    return datetime.fromisoformat(f"{match['iso']}T{match['clock']}{zone}").astimezone(UTC)


def _absolute(match: re.Match[str], anchor: date | None, future: bool) -> date | None:
    """Dates that name their day; the anchor may supply the year."""
    if match["slashed"]:
        return date(*map(int, match["slashed"].split("/")))
    if match["n1"]:
        return _numeric(int(match["n1"]), int(match["n2"]), int(match["n3"]), match["sep"])
    for day, month, year in (("d1", "m1", "y1"), ("d2", "m2", "y2"), ("wd", "wm", "wy")):
        if match[day]:
            return _with_year(int(match[day]), _month(match[month]), match[year], anchor, future)
    if match["m3"]:
        day_of_month = 15 if match["mid"].lower() == "mid" else 1
        start = _with_year(day_of_month, _month(match["m3"]), match["y3"], anchor, future)
        return start if start is None or day_of_month > 1 else _month_end(start.year, start.month)
    if match["month_only"]:
        # A whole month can be a deadline, but not the day on which something happened.
        return _month_end(int(match["y4"]), _month(match["month_only"])) if future else None
    if match["q"] and (match["yq"] or anchor) and future:
        return _quarter_end(int(match["q"]), match["yq"], anchor)
    return None


def _numeric(first: int, second: int, year: int, separator: str) -> date | None:
    if separator == "." or first > 12:
        return date(year, second, first)
    if second > 12 or first == second:
        return date(year, first, second)
    return None


def _month(name: str) -> int:
    return _MONTHS[name[:3].lower()]


def _with_year(
    day: int, month: int, year: str | None, anchor: date | None, future: bool
) -> date | None:
    if year:
        return date(int(year), month, day)
    if anchor is None:
        return None
    candidates = [
        date(anchor.year + n, month, day) for n in (-1, 0, 1) if _exists(anchor, n, month, day)
    ]
    if not future:
        return min(candidates, key=lambda candidate: abs((candidate - anchor).days), default=None)
    # A deadline a little in the past was missed; it does not mean next year.
    return next(
        (candidate for candidate in candidates if candidate >= anchor - timedelta(days=30)), None
    )


def _exists(anchor: date, years: int, month: int, day: int) -> bool:
    return 0 < day <= calendar.monthrange(anchor.year + years, month)[1]


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])


def _quarter_end(quarter: int, year: str | None, anchor: date | None) -> date:
    if year:
        return _month_end(int(year), quarter * 3)
    if anchor is None:
        raise ValueError("a quarter without year and anchor")
    end = _month_end(anchor.year, quarter * 3)
    return end if end >= anchor else _month_end(anchor.year + 1, quarter * 3)


def _relative(match: re.Match[str], anchor: date, future: bool) -> tuple[date | None, bool]:
    if match["simple"]:
        return _simple(match["simple"].lower(), anchor), True
    if match["weekday"]:
        return _weekday(match["weekday"], (match["wrel"] or "").lower(), anchor, future), True
    if match["nth"]:
        return _nth(int(match["nth"]), anchor, future), True
    if match["count"]:
        return _counted(match["count"].lower(), match["unit"].lower(), anchor), True
    if match["period"] and future and (match["end"] or match["prel"]):
        relation = (match["prel"] or "this").lower()
        return _period_end(match["period"].lower(), relation, anchor), False
    return None, False


def _simple(word: str, anchor: date) -> date:
    days = {"tomorrow": 1, "yesterday": -1}
    if word in ("eow", "eom"):
        return _week_end(anchor) if word == "eow" else _month_end(anchor.year, anchor.month)
    return anchor + timedelta(days=days.get(word, 0))


def _weekday(name: str, relation: str, anchor: date, future: bool) -> date:
    target = _DAYS[name[:3].lower()]
    monday = anchor - timedelta(days=anchor.weekday())
    if relation == "next":
        return monday + timedelta(days=7 + target)
    if relation == "last" or not future:
        back = (anchor.weekday() - target) % 7
        return anchor - timedelta(days=back or (7 if relation == "last" else 0))
    ahead = (target - anchor.weekday()) % 7
    return anchor + timedelta(days=ahead or 7)


def _nth(day: int, anchor: date, future: bool) -> date | None:
    """ "The 16th": the nearest such day after the anchor, or before it for past events."""
    step = 1 if future else -1
    for months in (0, step):
        month = anchor.month - 1 + months
        year, month = anchor.year + month // 12, month % 12 + 1
        if day <= calendar.monthrange(year, month)[1]:
            candidate = date(year, month, day)
            if (candidate >= anchor) if future else (candidate <= anchor):
                return candidate
    return None


def _counted(count: str, unit: str, anchor: date) -> date | None:
    number = int(count) if count.isdigit() else _NUMBERS.get(count)
    if number is None:
        return None
    if unit == "month":
        month = anchor.month - 1 + number
        year, month = anchor.year + month // 12, month % 12 + 1
        return date(year, month, min(anchor.day, calendar.monthrange(year, month)[1]))
    return anchor + timedelta(days=number * (7 if unit == "week" else 1))


def _week_end(anchor: date) -> date:
    friday = anchor + timedelta(days=4 - anchor.weekday())
    return friday if friday >= anchor else anchor + timedelta(days=6 - anchor.weekday())


def _period_end(period: str, relation: str, anchor: date) -> date | None:
    if relation == "last":
        return None
    ahead = 1 if relation == "next" else 0
    if period == "week":
        return (
            _week_end(anchor)
            if not ahead
            else _week_end(anchor - timedelta(days=anchor.weekday()) + timedelta(days=7))
        )
    if period == "month":
        month = anchor.month - 1 + ahead
        return _month_end(anchor.year + month // 12, month % 12 + 1)
    if period == "quarter":
        quarter = (anchor.month - 1) // 3 + ahead
        return _month_end(anchor.year + quarter // 4, (quarter % 4) * 3 + 3)
    return date(anchor.year + ahead, 12, 31)
