"""Postgres addresses: checking their form, and removing secrets before they are shown."""

import re
from urllib.parse import urlsplit, urlunsplit

_PASSWORD_OPTION = re.compile(r"\b((?:ssl)?password)=[^&]*")


def redact_dsn(dsn: str) -> str:
    """The DSN without its password, safe for logs."""
    parts = urlsplit(dsn)
    parts = parts._replace(query=_PASSWORD_OPTION.sub(r"\1=***", parts.query))
    if parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username}:***@{host}")
    return urlunsplit(parts)


def is_postgres_url(text: str) -> bool:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        if urlsplit(text).scheme not in {"postgresql", "postgres"}:
            return False
        ports = str(conninfo_to_dict(text).get("port") or "0").split(",")
    except (ValueError, ProgrammingError):
        return False
    return all(port.isdecimal() for port in ports)
