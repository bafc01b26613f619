"""Times: ISO 8601 outside, UTC inside. A time without an offset is taken as UTC."""

from datetime import UTC, date, datetime, time

from memory_core.kernel.errors import InvalidInput


def parse_time(parameter: str, value: str | None) -> datetime | None:
    if value is None or not value.strip():
        return None
    try:
        parsed = datetime.fromisoformat(value.strip())
        return as_utc(parsed)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{parameter}={value!r} is not a time: expected ISO 8601, such as "
            "2026-03-15, 2026-03-15T14:30:00Z or 2026-03-15T14:30:00+02:00.",
            details={"parameter": parameter},
        ) from None


def parse_until(parameter: str, value: str | None) -> datetime | None:
    """An upper bound: a date without a time of day means the end of that day."""
    parsed = parse_time(parameter, value)
    if parsed is None or value is None:
        return None
    try:
        date.fromisoformat(value.strip())
    except ValueError:
        return parsed
    return datetime.combine(parsed.date(), time.max, UTC)


def check_period(first: datetime | None, last: datetime | None, name: str = "time") -> None:
    """A period that ends before it begins is a mistake of the caller, not an empty answer."""
    if first is not None and last is not None and as_utc(first) > as_utc(last):
        raise InvalidInput(
            f"{name}_from={utc_text(first)} is after {name}_to={utc_text(last)}: nothing can be in "
            "that period. Swap the two.",
            details={"parameter": f"{name}_from"},
        )


def as_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def utc_text(value: datetime) -> str:
    """The format of every answer: 2026-03-15T14:30:00Z."""
    return as_utc(value).isoformat().replace("+00:00", "Z")
