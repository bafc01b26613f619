"""Logging of our own processes: each line has its time (UTC), level and origin, on stderr."""

import json
import logging
import sys
import time

from memory_core.kernel import trace

# These log every request that we make.
_TALKATIVE = ("httpx", "httpcore")


class StampedLines(logging.Formatter):
    """A message of several lines, such as a traceback, has the time on each line."""

    def __init__(self) -> None:
        super().__init__()
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        stamp = f"{moment}.{int(record.msecs):03}Z {record.levelname} {record.name}: "
        return "\n".join(stamp + line for line in super().format(record).splitlines() or [""])


class JsonLines(logging.Formatter):
    """Each message is one line of JSON, including its traceback and its trace id."""

    def __init__(self) -> None:
        super().__init__()
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        fields = {
            "time": f"{moment}.{int(record.msecs):03}Z",
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
