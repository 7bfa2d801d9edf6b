"""A recorded program's life is its own: each program runs alone and under ``profile``, with a stand-in for PyTorch.

``test_life_gpu.py`` runs the same programs with PyTorch on a GPU.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from tests.collect.life.runner import (
    HERE,
    Place,
    alone,
    finish,
    interrupt_after,
    limit_files,
    prepare,
    profiled,
    run_in_pytest,
    start,
    without_ours,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and fork")

PLACE = Place(standin=True)
NEEDS_CUDA = {"loads_data", "uses_memory"}
NO_PROGRAMS = {"training", "fills_half_the_device"}
"""What programs import, and one that prints what is measured."""

PROGRAMS = sorted({path.stem for path in (HERE / "programs").glob("*.py")} - NO_PROGRAMS)
ENDS_WITHOUT_US = {
    "executes_another": "what it becomes uses no CUDA, and no process is left to write reports",
    "leaves_at_once": "Python is not asked",
}
"""Programs after which nothing of ours runs."""

IN_A_BLOCK = ["prints", "raises_in_a_step", "logs_its_stderr", "excepthooks", "runs_out_of_memory"]
"""Programs that run inside of a block of ours."""


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - NEEDS_CUDA))
def test_a_program_lives_as_it_does_alone(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py", "--steps", "3") if takes_options(name) else alone(
        tmp_path / "alone", PLACE, f"{name}.py"
    )  # fmt: skip
    arguments = ("--steps", "3") if takes_options(name) else ()
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", *arguments)
    assert without_ours(found) == expected
    if name not in ENDS_WITHOUT_US:
        traces = sorted((tmp_path / "ours" / "out").glob("*.json.gz"))
        assert traces and all(map(is_whole, traces)) and all(map(is_counted, traces))
        assert len(re.findall(r"^syncscope: wrote .*out/: trace", found.stderr, re.M)) == (name != "closes_stderr")


def takes_options(name: str) -> bool:
    return name == "facts"


def is_whole(trace: Path) -> bool:
    """Whether the trace is there and can be read; what was written is whole or absent."""
    return trace.exists() and "syncscope" in json.loads(gzip.decompress(trace.read_bytes()))


def is_counted(trace: Path) -> bool:
    """Whether the run was counted, and the steps of its training are known."""
    run = json.loads(gzip.decompress(trace.read_bytes()))["syncscope"]["run"]
    return bool(run["counted"]) and any(phase["kind"] == "train" and phase["steps"] for phase in run["phases"])


@pytest.mark.parametrize("name", ["prints", "raises_in_a_step", "terminated", "forks", "exit_handlers"])
def test_a_full_window_leaves_a_program_its_life(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", options=("--mode", "full"))
    assert without_ours(found) == expected


@pytest.mark.parametrize("name", ["prints", "exit_handlers", "pickles", "interrupted_with_open_files"])
def test_stop_ends_a_program_early_with_its_exit_handlers_and_status_0(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", options=("--stop",))
    assert found.status == 0 and without_ours(found).files == expected.files
    assert set(found.stdout.splitlines()) <= set(expected.stdout.splitlines())
    assert ("bye" in found.stdout) == (name == "exit_handlers")
    assert is_whole(tmp_path / "ours" / "out" / "trace.json.gz")


@pytest.mark.parametrize("name", [b"a\n\x1b[31m\xc2\x9b31m.py", b"bad\xff.py"], ids=["controls", "no UTF-8"])
def test_a_program_of_any_name_is_recorded_and_breaks_no_terminal(tmp_path: Path, name: bytes) -> None:
    folder = prepare(tmp_path / "ours")
    program = os.fsdecode(name)
    (folder / "waits.py").rename(folder / program)
    found = finish(start(folder, [*PLACE.command(), "-o", f"out/{program}", program, "20", "0"], PLACE), folder)
    assert found.status == 0, found.stderr
    assert is_whole(folder / "out" / program / "trace.json.gz")
    assert not set("\x1b\x9b") & set(found.stderr) and "wrote out/" in found.stderr.splitlines()[-1]


def test_a_module_lives_as_it_does_alone(tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone", PLACE, "-m", "package", "--lr", "1")
    assert expected.status == 0, expected.stderr
    found = profiled(tmp_path / "ours", PLACE, "-m", "package", "--lr", "1")
    assert without_ours(found) == expected


@pytest.mark.parametrize("path", ["./facts.py", "linked/facts.py", "package/../facts.py"])
def test_a_script_has_the_path_by_which_it_was_called(tmp_path: Path, path: str) -> None:
    outcomes = []
    for name, run in (("alone", None), ("ours", PLACE.command())):
        folder = prepare(tmp_path / name)
        (folder / "linked").mkdir()
        (folder / "linked" / "facts.py").symlink_to("../facts.py")
        outcomes.append(without_ours(finish(start(folder, [*(run or [sys.executable]), path], PLACE), folder)))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].status == 0, outcomes[0].stderr


@pytest.mark.parametrize("options", [("-W", "error"), ("-O",), ("-B", "-u"), ("-X", "utf8")], ids=" ".join)
def test_pythons_own_options_reach_the_program(tmp_path: Path, options: tuple[str, ...]) -> None:
    expected = alone(tmp_path / "alone", PLACE, "facts.py", python=options)
    found = profiled(tmp_path / "ours", PLACE, "facts.py", python=options)
    assert without_ours(found) == expected


def test_a_program_that_waits_for_nothing_keeps_its_status_on_a_full_disk(tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone", PLACE, "exits_with_a_number.py")
    found = profiled(tmp_path / "ours", PLACE, "exits_with_a_number.py", before=limit_files(64))
    assert without_ours(found) == expected
    assert re.search(r"syncscope: error: nothing was recorded: .*File too large", found.stderr), found.stderr
    assert files_of(tmp_path / "ours" / "out") == []


def test_reports_that_do_not_fit_on_the_disk_leave_the_trace_and_the_status(tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone", PLACE, "exits_with_a_number.py")
    found = profiled(tmp_path / "ours", PLACE, "exits_with_a_number.py", before=limit_files(3000))
    assert without_ours(found) == expected
    assert "syncscope: error: the reports could not be written (OSError" in found.stderr
    assert "Traceback" not in found.stderr
    assert is_whole(tmp_path / "ours" / "out" / "trace.json.gz")


def test_a_folder_that_cannot_be_made_costs_only_the_recording(tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone", PLACE, "exits_with_a_number.py")
    found = profiled(tmp_path / "ours", PLACE, "exits_with_a_number.py", options=("-o", "/proc/nowhere/out"))
    assert without_ours(found) == expected
    assert "could not be written (FileNotFoundError" in found.stderr or "could not be written (" in found.stderr


def test_a_file_where_the_folder_should_be_is_an_error_before_the_program_runs(tmp_path: Path) -> None:
    found = profiled(tmp_path / "ours", PLACE, "exits_with_a_number.py", options=("-o", "prints.py"))
    assert (found.status, found.stdout) == (2, "")
    assert "prints.py is a file: name a folder." in found.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("moment", range(20))
def test_a_signal_at_any_moment_ends_it_and_what_is_written_is_whole(
    tmp_path: Path, moment: int, number: signal.Signals
) -> None:
    found = interrupt_after(tmp_path / "ours", PLACE, 0.05 * moment, number, "prints.py")
    began = "to stdout" in found.stdout
    # Before the program began, the interpreter or the command may be interrupted.
    assert found.status in ({-number, 0} if began else {-number, 1, 130}), found.stderr
    assert not began or "syncscope" not in without_ours(found).stderr
    out = tmp_path / "ours" / "out"
    for file in files_of(out):
        if file == "trace.json.gz":
            assert is_whole(out / file)
        elif file == "report.json":
            json.loads((out / file).read_bytes())
        elif file == "report.html":
            assert (out / file).read_text().rstrip().endswith("</html>")
        else:
            assert number == signal.SIGKILL and file.startswith("."), file  # of a file that was being written


def files_of(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


ENDS_OUR_WRITING = """
import os, signal, training
training.train()
replace = os.replace

def interrupted(source, target):
    if str(target).endswith("report.html"):
        signal.raise_signal(signal.SIGTERM)
    replace(source, target)

os.replace = interrupted
"""


def test_sigterm_while_the_reports_are_written_leaves_no_half_of_one(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "program.py").write_text(ENDS_OUR_WRITING)
    found = finish(start(folder, [*PLACE.command(), "program.py"], PLACE), folder)
    assert found.status == -signal.SIGTERM, found.stderr
    assert [file for file in files_of(folder / "out") if file.startswith(".")] == []
    assert is_whole(folder / "out" / "trace.json.gz")


@pytest.mark.parametrize("name", IN_A_BLOCK)
@pytest.mark.parametrize("how", ["guard"])
def test_a_watched_block_lives_as_it_does_alone(tmp_path: Path, name: str, how: str) -> None:
    under = str(HERE / "under.py")
    expected = alone(tmp_path / "alone", PLACE, under, "nothing", f"{name}.py")
    assert alone(tmp_path / "ours", PLACE, under, how, f"{name}.py") == expected


@pytest.mark.parametrize("name", IN_A_BLOCK)
def test_a_program_in_a_limited_test_lives_as_in_any(tmp_path: Path, name: str) -> None:
    expected = run_in_pytest(tmp_path / "alone", PLACE, f"{name}.py", "")
    found = run_in_pytest(tmp_path / "ours", PLACE, f"{name}.py", "mark.max_syncs(1000)")
    assert found == expected
    assert "test_it.py" in found.stdout if found.status else "1 passed" in found.stdout


@pytest.mark.slow
def test_a_killed_program_leaves_what_was_counted_until_at_most_ten_seconds_before(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    prepare(folder)
    process = start(folder, [*PLACE.command(), "--warmup", "100000", "waits.py", "100000", "0.01"], PLACE)
    began, trace = time.monotonic(), folder / "out" / "trace.json.gz"
    while time.monotonic() - began < 25 and not (trace.exists() and time.monotonic() - began > 14):
        time.sleep(0.1)
    age = time.time() - trace.stat().st_mtime
    process.kill()
    found = finish(process, folder)
    assert found.status == -signal.SIGKILL and age <= 10.5
    assert is_whole(trace)
    report = analyze(trace)
    run = report.traces[0].run
    assert run is not None and not run.complete and run.seconds > 2
    (read,) = [one for one in report.findings if one.site and one.site.expression == "loss.tolist()"]
    assert read.site_source == "count" and (read.occurrences or 0) > 100
    assert read.run_per_step == pytest.approx(1.0, abs=0.01)  # the step under way is not over
