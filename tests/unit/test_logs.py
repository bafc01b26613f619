"""Logs: the time on every line, one level for every child, and files that stay small."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory_assets.dagster_internals import log_level
from memory_core.kernel import trace
from memory_core.kernel.logging_setup import JsonLines, StampedLines
from stack import services
from stack.layout import Layout
from stack.rotation import rotate_large
from stack.services import StackPlan
from tests.conftest import offline_settings

STAMPED = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ [\w.]+: ")


def test_every_line_of_a_traceback_has_the_time() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("tool", logging.ERROR, "f", 1, "failed", (), sys.exc_info())
    lines = StampedLines().format(record).splitlines()
    assert len(lines) > 4
    assert all(STAMPED.match(line) for line in lines)


class TestJson:
    def record(self) -> logging.LogRecord:
        try:
            raise ValueError("two\nlines")
        except ValueError:
            return logging.LogRecord("tool", logging.ERROR, "f", 1, "é %s", ("x",), sys.exc_info())

    def test_a_message_is_one_object_on_one_line_with_its_traceback(self) -> None:
        line = JsonLines().format(self.record())
        assert "\n" not in line
        logged = json.loads(line)
        assert (logged["level"], logged["logger"], logged["message"]) == ("ERROR", "tool", "é x")
        assert "ValueError" in logged["traceback"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", logged["time"])
        assert "trace_id" not in logged

    def test_a_line_has_the_trace_in_which_it_was_written(self) -> None:
        with trace.within(trace.SpanContext("a" * 32, "b" * 16)):
            logged = json.loads(JsonLines().format(self.record()))
        assert (logged["trace_id"], logged["span_id"]) == ("a" * 32, "b" * 16)

    def test_it_reaches_the_processes(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path)
        layout.create()
        plan = services.plan(offline_settings(tmp_path, log_format="json"), layout, "full")
        python = [child for child in plan.children if child.name not in {"postgres", "chroma"}]
        assert {child.environment["LOG_FORMAT"] for child in python} == {"json"}


class TestRotation:
    # Writes numbered lines for as long as it is asked to, and never opens its log again.
    WRITER = """
import sys
number = 0
for _ in sys.stdin:
    for _ in range(100):
        number += 1
        print(f"line {number:06}")
    sys.stdout.flush()
    print("written", file=sys.stderr, flush=True)
"""

    def test_a_log_is_cut_while_its_writer_runs(self, tmp_path: Path) -> None:
        log = tmp_path / "child.log"
        with log.open("ab") as file:
            writer = subprocess.Popen(
                [sys.executable, "-c", self.WRITER],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert writer.stdin is not None
        assert writer.stderr is not None
        for _ in range(10):
            writer.stdin.write("more\n")
            writer.stdin.flush()
            writer.stderr.readline()
            rotate_large(tmp_path, limit=2_000)
        writer.communicate()

        # 100 lines of 12 bytes at a time: two portions go beyond the limit.
        assert log.read_text() == ""
        kept = log.with_suffix(".log.1").read_text().splitlines()
        assert kept == [f"line {number:06}" for number in range(801, 1001)]

    def test_a_small_log_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "child.log").write_text("few words\n")
        rotate_large(tmp_path, limit=2_000)
        assert [file.name for file in tmp_path.iterdir()] == ["child.log"]

    def test_an_older_piece_does_not_grow_into_many(self, tmp_path: Path) -> None:
        log = tmp_path / "child.log"
        for _ in range(5):
            log.write_text("x" * 3_000)
            rotate_large(tmp_path, limit=2_000)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["child.log", "child.log.1"]


class TestLevel:
    @pytest.fixture
    def plan(self, tmp_path: Path) -> StackPlan:
        layout = Layout(tmp_path)
        layout.create()
        settings = offline_settings(tmp_path, log_level="ERROR")
        return services.plan(settings, layout, "full")

    def test_it_reaches_postgres_and_chroma_in_their_own_words(self, plan: StackPlan) -> None:
        children = {child.name: child for child in plan.children}
        assert "log_min_messages=error" in children["postgres"].command
        assert children["chroma"].environment["RUST_LOG"] == "error"

    def test_it_reaches_the_processes_of_ours_and_of_dagster(self, plan: StackPlan) -> None:
        python = [child for child in plan.children if child.name not in {"postgres", "chroma"}]
        assert len(python) == 5
        assert {child.environment["LOG_LEVEL"] for child in python} == {"ERROR"}

    def test_it_reaches_the_runs(self, plan: StackPlan) -> None:
        instance = Layout(plan.settings.data_dir).dagster_home / "dagster.yaml"
        assert "python_log_level: ERROR" in instance.read_text()

    def test_dagsters_programs_get_it_as_an_option(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LOG_LEVEL", "ERROR")
        monkeypatch.setattr(sys, "argv", ["daemon", "run"])
        log_level.add_to_command_line("--log-level")
        assert sys.argv == ["daemon", "run", "--log-level", "error"]

    def test_an_option_that_was_given_comes_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["daemon", "run", "--log-level=debug"])
        log_level.add_to_command_line("--log-level")
        assert sys.argv == ["daemon", "run", "--log-level=debug"]
