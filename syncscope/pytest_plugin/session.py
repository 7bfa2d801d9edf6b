"""The waits of all tests of a session: their limit, a summary of the lines that wait most, and a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from syncscope.pytest_plugin import COUNTED, _unavailable

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from syncscope.collect.live.record import Wait

FORMAT = 1
MOST_LINES = 10
"""Lines that the summary names."""

Line = tuple[str, "int | None", str, "str | None", str, str, str]
"""The fields of a ``Wait``."""


def counted_lines(waits: Sequence[Wait]) -> list[list[Any]]:
    """The lines that wait, each as the fields of its ``Wait`` and how often, as plain data."""
    return [[*wait, number] for wait, number in Counter(waits).items()]


class Session(msgspec.Struct):
    """Registered as a plugin where a limit or the report was asked for. With pytest-xdist the workers count, and the
    controller adds up."""

    limit: int | None
    path: str | None
    waits: Counter[Line] = msgspec.field(default_factory=Counter)
    by_test: dict[str, int | None] = msgspec.field(default_factory=dict)
    """``None`` for a test that recorded itself, whose waits are not its own."""
    tests: dict[Line, set[str]] = msgspec.field(default_factory=dict)
    """The tests that wait at a line."""
    unwritten: str = ""
    """Why the report could not be written."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # "rerun": pytest-rerunfailures runs the test once more, and only its last run counts.
        if report.when == "call" and hasattr(report, COUNTED) and report.outcome != "rerun":  # type: ignore[comparison-overlap]
            self.add(report.nodeid, getattr(report, COUNTED))

    def add(self, test: str, counted: Iterable[Sequence[Any]] | None) -> None:
        """Add what a test waited."""
        if counted is None:
            self.by_test[test] = None
            return
        total = 0
        for *fields, number in counted:
            line: Line = tuple(fields)
            total += number
            self.waits[line] += number
            self.tests.setdefault(line, set()).add(test)
        self.by_test[test] = (self.by_test.get(test) or 0) + total

    @property
    def exceeded(self) -> bool:
        return self.limit is not None and self.waits.total() > self.limit

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        if self.path:
            from syncscope.trace.writing import write_atomically

            try:
                write_atomically(Path(self.path), [self.to_json().encode()])
            except OSError as error:  # what became of the tests is still told
                self.unwritten = f"{self.path}: {error.strerror or error}"
        if (self.exceeded or self.unwritten) and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def to_json(self) -> str:
        """The report: the tests, and the lines that wait, those that wait most first."""
        names = ("file", "line", "function", "expression", "at", "fix", "thread")
        lines = [
            {**dict(zip(names, line, strict=True)), "waits": number, "tests": sorted(self.tests[line])}
            for line, number in self.most()
        ]
        document = {
            "format": FORMAT,
            "not_checked": None if self.by_test else _unavailable() or "no test ran",
            "waits": self.waits.total() if self.by_test else None,
            "limit": self.limit,
            "tests": self.by_test,
            "lines": lines,
        }
        return json.dumps(document, indent=2) + "\n"

    def most(self) -> list[tuple[Line, int]]:
        """The lines that wait most first; equal ones by place."""
        return sorted(self.waits.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or 0, item[0][4]))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        from syncscope.report.escape import terminal
        from syncscope.report.numbers import count

        write = terminalreporter.write_line
        terminalreporter.section("waits for the GPU")
        if self.unwritten:
            write(terminal(f"FAILED: not written to {self.unwritten}"), red=True)
        if not self.by_test:
            why = _unavailable()
            write(f"not counted: {f'counting waits {why}' if why else 'no test ran'}")
            return
        counted = [number for number in self.by_test.values() if number is not None]
        own = len(self.by_test) - len(counted)
        besides = f"; {count(own, 'test')} recorded with profile, not counted" if own else ""
        waiting = sum(number > 0 for number in counted)
        write(f"{count(self.waits.total(), 'wait')} in {waiting} of {count(len(counted), 'test')}{besides}")
        for line, number in self.most()[:MOST_LINES]:
            file, row, function, expression, *_ = line
            tests = count(len(self.tests[line]), "test")
            write(terminal(f"{number:>5} ×  {file}:{row}  {expression or ''}  in {function}  ({tests})"))
        if len(self.waits) > MOST_LINES:
            where = "" if self.path else ": --syncscope-report"
            write(f"        and {count(len(self.waits) - MOST_LINES, 'more line')}{where}")
        if self.path and not self.unwritten:
            write(f"written to {self.path}")
        if self.exceeded:
            write(f"FAILED: {count(self.waits.total(), 'wait')} in all, at most {self.limit} allowed", red=True)
