"""Logging of our own processes: each line has its time (UTC), level and origin, on stderr."""

import json
import logging
import sys
import time

from memory_core.kernel import trace

# These log every request that we make.
_TALKATIVE = ("httpx", "httpcore")


class _WithMoment(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def moment(self, record: logging.LogRecord) -> str:
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}Z"


class StampedLines(_WithMoment):
    """A message of several lines, such as a traceback, has the time on each line."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.moment(record)} {record.levelname} {record.name}: "
        return "\n".join(stamp + line for line in super().format(record).splitlines() or [""])


class JsonLines(_WithMoment):
    """Each message is one line of JSON, including its traceback and its trace id."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (span := trace.current()) is not None:
            fields |= {"trace_id": span.trace_id, "span_id": span.span_id}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def formatter(log_format: str) -> logging.Formatter:
    return JsonLines() if log_format == "json" else StampedLines()


def log_to_stderr(level: str, log_format: str = "text") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.captureWarnings(True)
    if level != "DEBUG":
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
