"""What commands import before they answer: that is most of what a short one takes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope import garbage
from syncscope.cli import light
from syncscope.cli.app import COMMANDS, make_command
from syncscope.cli.console import unwrap
from tests.builders import TraceBuilder

ANALYSIS = {"numpy", "pandas", "pyarrow", "plotly", "msgspec", "isal", "torch", "pydantic"}


def imported_by(*command: str) -> set[str]:
    """The modules that a fresh ``syncscope`` imports for a command, below their packages too."""
    line = [sys.executable, "-X", "importtime", "-m", "syncscope", *command]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    timed = (row.rpartition("|")[2].strip() for row in done.stderr.splitlines() if row.startswith("import time:"))
    names = {name for name in timed if name != "imported package"}
    assert "syncscope.cli.app" in names
    return names


@pytest.mark.parametrize(
    "command", [("--help",), ("--version",), ("rules",), ("rules", "SYN102"), ("rules", "scalar-read")]
)
def test_what_needs_no_trace_imports_no_analysis(command: tuple[str, ...]) -> None:
    assert imported_by(*command).isdisjoint(ANALYSIS)


@pytest.mark.parametrize("command", [("rules",), ("rules", "SYN102")])
def test_rules_are_listed_without_the_rules(command: tuple[str, ...]) -> None:
    assert not {name for name in imported_by(*command) if name.startswith(("syncscope.rules", "syncscope.timeline"))}


@pytest.mark.parametrize(("words", "commands"), [(("--help",), set()), (("rules",), {"rules"})])
def test_a_command_imports_no_other(words: tuple[str, ...], commands: set[str]) -> None:
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from syncscope.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()[-1].split()
    assert {name.removeprefix("syncscope.cli.") for name in names} & COMMANDS.keys() == commands


def test_rules_are_piped_without_what_writes_on_terminals() -> None:
    assert not {name for name in imported_by("rules") if name.startswith("rich")}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_a_command_what_the_command_says_of_itself(name: str) -> None:
    assert unwrap(make_command(name).help)[0] == COMMANDS[name]


@pytest.mark.parametrize("command", [("--help",), ("analyze", "--help")])
def test_help_is_written_without_what_writes_markdown_and_tracebacks(command: tuple[str, ...]) -> None:
    names = imported_by(*command)
    assert "typer.rich_utils" in names
    assert names.isdisjoint({"rich.markdown", "rich.traceback", "rich.syntax", "markdown_it", "pygments"})


@pytest.mark.parametrize("format", ["text", "concise", "json", "sarif", "markdown", "html"])
def test_a_report_imports_nothing_that_it_does_not_use(tmp_path: Path, format: str) -> None:
    file = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 9)).write(tmp_path / "trace.json")
    names = imported_by("analyze", str(file), "-o", f"{format}={tmp_path / 'report'}")
    assert names.isdisjoint({"pandas", "pyarrow", "torch", "pydantic", "rich.markdown", "markdown_it", "pygments"})
    assert names.isdisjoint({"syncscope.trace.cache", "syncscope.trace.decoding.salvage", "syncscope.report.perfetto"})
    if format != "html":
        assert names.isdisjoint({"plotly", "syncscope.report.html"})


def test_numbers_are_taken_without_what_converts_them(tmp_path: Path) -> None:
    file = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 9)).write(tmp_path / "trace.json")
    assert "pydantic" not in imported_by("analyze", str(file), "--jobs", "1", "--top", "3")


def test_what_was_kept_is_shown_without_what_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("platformdirs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 9)).write(tmp_path / "trace.json")
    command = ("analyze", str(file), "--cache", "-o", f"json={tmp_path / 'report.json'}", "--format", "json")
    names = imported_by(*command)
    assert "syncscope.rules" in names
    assert names.isdisjoint({"pandas", "pyarrow"})  # they take more memory than the columns of 200 MB
    first = (tmp_path / "report.json").read_bytes()
    names = imported_by(*command)
    assert names.isdisjoint({"numpy", "pandas", "pyarrow", "syncscope.rules", "syncscope.timeline"})
    assert (tmp_path / "report.json").read_bytes() == first
    # Where nothing is said on a terminal, what says it is not imported either.
    assert "rich.console" not in imported_by("analyze", str(file), "--cache", "--format", "json")


def trace_with_a_wait(folder: Path) -> Path:
    step = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 9))
    return step.device_sync(90, 5).write(folder / "trace.json")


def test_a_verdict_imports_no_frames(tmp_path: Path) -> None:
    file = trace_with_a_wait(tmp_path)
    assert imported_by("check", str(file)).isdisjoint({"pandas", "pyarrow", "plotly", "torch", "pygments"})


@pytest.mark.parametrize("command", [("check",), ("diff",)])
def test_a_saved_report_is_read_without_what_judges_traces(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = trace_with_a_wait(tmp_path)
    report = str(tmp_path / "report.json")
    assert "numpy" in imported_by("analyze", str(file), "-o", report)
    names = imported_by(*command, *([report] * (2 if command == ("diff",) else 1)))
    assert names.isdisjoint({"numpy", "syncscope.rules", "syncscope.timeline", "syncscope.trace.reader"})


def test_reading_a_report_again_imports_no_frames(tmp_path: Path) -> None:
    file = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 9)).write(tmp_path / "trace.json")
    assert not imported_by("analyze", str(file), "-o", str(tmp_path / "report.json")) & {"pandas"}
    page = f"html={tmp_path / 'page'}"
    assert imported_by("report", str(tmp_path / "report.json"), "-o", page).isdisjoint(
        {"pandas", "pyarrow", "torch", "pygments"}
    )


def _unset(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Also where a test sets it."""
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)


def test_numpy_is_told_before_its_import_what_the_environment_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    _unset(monkeypatch, "NUMPY_MADVISE_HUGEPAGE")
    light.prepare_numpy()
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["NUMPY_MADVISE_HUGEPAGE"]) == ("3", "0")


def test_numpy_that_is_imported_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", sys)
    _unset(monkeypatch, "NUMPY_MADVISE_HUGEPAGE")
    light.prepare_numpy()
    assert "NUMPY_MADVISE_HUGEPAGE" not in os.environ


def test_python_looks_for_cycles_as_before_when_a_command_has_ended() -> None:
    before = gc.get_threshold()
    with garbage.collect_rarely():
        assert gc.get_threshold()[0] == garbage.COLLECT_AFTER
    assert gc.get_threshold() == before
