"""How our own processes log: each line with its time (UTC), level and origin, on stderr."""

import logging
import sys
import time

# They tell of every request that we make.
_TALKATIVE = ("httpx", "httpcore")


class StampedLines(logging.Formatter):
    """A message of several lines, such as a traceback, has the time on each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        stamp = f"{moment}.{int(record.msecs):03}Z {record.levelname} {record.name}: "
        return "\n".join(stamp + line for line in super().format(record).splitlines() or [""])


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(StampedLines())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.captureWarnings(True)
    if level != "DEBUG":
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
