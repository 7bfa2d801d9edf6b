"""A recorded program's life is its own: each program runs alone and recorded, with PyTorch on a GPU."""

from __future__ import annotations

import gzip
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.collect.life.runner import (
    HERE,
    Outcome,
    Place,
    alone,
    interrupt_after,
    peak_of,
    profiled,
    run_in_pytest,
    without_ours,
)
from tests.collect.life.test_life import ENDS_WITHOUT_US, IN_A_BLOCK, PROGRAMS, files_of, is_whole

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

PLACE = Place(standin=False)
HOST_BYTES = 100 * 2**20
"""How much more host memory a recorded program may need at its peak."""


PROFILER_NOTICE = re.compile(r"^.*Profiler clears events at the end of each cycle.*\n(?:  .*\n)?", re.MULTILINE)
THREAD_NOTICE = re.compile(r"^ERROR: External init callback must run in same thread .*\n", re.MULTILINE)
"""What PyTorch's profiler prints where it is first started in another thread than the one that imported PyTorch."""
EXECUTOR_NOTICE = re.compile(
    r"^Exception ignored in: <function _ExecutorManagerThread.*\n(?:Traceback.*\n)?(?:  .*\n)*\S+Error: .*\n",
    re.MULTILINE,
)
"""What Python prints at some exits where a program leaves an executor of processes that is still at work: whether it
does depends on which modules are gone by then."""
TRAIN_ON_A_THREAD = {"trains_on_a_thread", "leaves_executors"}
INTERRUPTED = {"interrupts_itself", "interrupted_in_a_step", "interrupted_with_open_files"}


@pytest.mark.parametrize("options", [(), ("--hazards",)], ids=["profile", "hazards"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_lives_as_it_does_alone(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", options=options)
    if name in INTERRUPTED and expected.status == 1:
        # Something in PyTorch runs Python code at exit, and Python then forgets that it was interrupted.
        expected = replace(expected, status=-signal.SIGINT)
    if name == "profiles_itself":  # PyTorch says this once in a process, and our profiler came first
        expected = replace(expected, stderr=PROFILER_NOTICE.sub("", expected.stderr))
    found = without_ours(found)
    if name in TRAIN_ON_A_THREAD:
        found = replace(found, stderr=THREAD_NOTICE.sub("", found.stderr))
    if name == "leaves_executors":
        expected, found = (replace(one, stderr=EXECUTOR_NOTICE.sub("", one.stderr)) for one in (expected, found))
    if name == "interrupted_with_open_files":  # alone, Python may drop the compressed file before its end is written
        assert gzip.decompress((tmp_path / "ours" / "packed.gz").read_bytes()) == b"not finished"
        expected, found = without_packed(expected), without_packed(found)
    assert found.stderr == expected.stderr
    assert found == expected
    if name not in ENDS_WITHOUT_US:
        traces = sorted((tmp_path / "ours" / "out").glob("*.json.gz"))
        assert traces and all(map(is_whole, traces)), found.stderr


def without_packed(outcome: Outcome) -> Outcome:
    """Without the file that a program leaves open whose end is written when Python drops it."""
    return replace(outcome, files=tuple(file for file in outcome.files if file[0] != "packed.gz"))


@pytest.mark.parametrize("name", ["prints", "exit_handlers", "pickles", "loads_data", "interrupted_with_open_files"])
def test_stop_ends_a_program_early_with_its_exit_handlers_and_status_0(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", options=("--stop",))
    assert found.status == 0
    assert without_packed(without_ours(found)).files == without_packed(expected).files
    assert set(found.stdout.splitlines()) <= set(expected.stdout.splitlines())
    assert ("bye" in found.stdout) == (name == "exit_handlers")


@pytest.mark.parametrize("how", ["guard", "max_syncs"])
@pytest.mark.parametrize("name", IN_A_BLOCK)
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


def test_the_limit_of_a_test_fails_a_program_that_waits_more_often(tmp_path: Path) -> None:
    found = run_in_pytest(tmp_path / "ours", PLACE, "prints.py", "mark.max_syncs(1)")
    assert found.status == 1 and "training.py" in found.stdout and "loss.item()" in found.stdout


def test_a_recorded_program_needs_the_same_memory(tmp_path: Path) -> None:
    before, least = peak_of(tmp_path / "alone", PLACE, [sys.executable, "uses_memory.py"])
    after, most = peak_of(tmp_path / "ours", PLACE, [*PLACE.command(), "uses_memory.py"])
    assert most - least < HOST_BYTES, f"{(most - least) / 2**20:.0f} MiB more of host memory"
    for mine, theirs in zip(after.stdout.split(), before.stdout.split(), strict=True):
        assert int(mine) == pytest.approx(int(theirs), rel=0.01)


@pytest.mark.parametrize("options", [(), ("--hazards",), ("--mode", "full")], ids=["profile", "hazards", "full"])
def test_a_recorded_program_needs_the_same_memory_of_the_device(tmp_path: Path, options: tuple[str, ...]) -> None:
    """By NVML, for the whole device: PyTorch's memory, its context, and what CUPTI takes while windows are open."""
    pytest.importorskip("pynvml", reason="asks NVML")
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        pytest.skip("measures the whole device, which tests of other workers use: run it with -n 0")
    before = alone(tmp_path / "alone", PLACE, "fills_half_the_device.py")
    after = profiled(tmp_path / "ours", PLACE, "fills_half_the_device.py", options=options)
    assert (before.status, after.status) == (0, 0), after.stderr
    least, most = int(before.stdout), int(after.stdout)
    print(f"{(most - least) / 2**20:.1f} MiB more than {least / 2**20:.0f} MiB")
    assert most - least <= 0.01 * least, f"{(most - least) / 2**20:.0f} MiB more of the device's memory"


@pytest.mark.parametrize("moment", range(20))
def test_ctrl_c_at_any_moment_ends_it_and_what_is_written_is_whole(tmp_path: Path, moment: int) -> None:
    found = interrupt_after(tmp_path / "ours", PLACE, 0.5 * moment, signal.SIGINT, "prints.py")
    began = "to stdout" in found.stdout
    assert found.status in ({-signal.SIGINT, 0} if began else {-signal.SIGINT, 1, 130}), found.stderr
    assert not began or "syncscope" not in without_ours(found).stderr
    written = files_of(tmp_path / "ours" / "out")
    assert set(written) <= {"trace.json.gz", "report.json", "report.html"}
    assert "trace.json.gz" not in written or is_whole(tmp_path / "ours" / "out" / "trace.json.gz")
