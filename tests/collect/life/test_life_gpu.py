"""A recorded program's life is its own: each program runs alone and recorded, with PyTorch on a GPU."""

from __future__ import annotations

import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.collect.life.runner import HERE, Place, alone, interrupt_after, peak_of, profiled, without_ours
from tests.collect.life.test_life import ENDS_WITHOUT_US, PROGRAMS, files_of, is_whole

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

PLACE = Place(standin=False)
HOST_BYTES = 100 * 2**20
"""How much more host memory a recorded program may need at its peak."""


PROFILER_NOTICE = re.compile(r"^.*Profiler clears events at the end of each cycle.*\n(?:  .*\n)?", re.MULTILINE)
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
    assert without_ours(found) == expected
    if name not in ENDS_WITHOUT_US:
        traces = sorted((tmp_path / "ours" / "out").glob("*.json.gz"))
        assert traces and all(map(is_whole, traces)), found.stderr


@pytest.mark.parametrize("name", ["prints", "exit_handlers", "pickles", "loads_data", "interrupted_with_open_files"])
def test_stop_ends_a_program_early_with_its_exit_handlers_and_status_0(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    found = profiled(tmp_path / "ours", PLACE, f"{name}.py", options=("--stop",))
    assert found.status == 0 and without_ours(found).files == expected.files
    assert set(found.stdout.splitlines()) <= set(expected.stdout.splitlines())
    assert ("bye" in found.stdout) == (name == "exit_handlers")


@pytest.mark.parametrize("how", ["guard", "max_syncs"])
@pytest.mark.parametrize("name", ["prints", "raises_in_a_step", "logs_its_stderr", "excepthooks", "runs_out_of_memory"])
def test_a_watched_block_lives_as_it_does_alone(tmp_path: Path, name: str, how: str) -> None:
    under = str(HERE / "under.py")
    expected = alone(tmp_path / "alone", PLACE, under, "nothing", f"{name}.py")
    assert alone(tmp_path / "ours", PLACE, under, how, f"{name}.py") == expected


def test_a_recorded_program_needs_the_same_memory(tmp_path: Path) -> None:
    before, least = peak_of(tmp_path / "alone", PLACE, [sys.executable, "uses_memory.py"])
    after, most = peak_of(tmp_path / "ours", PLACE, [*PLACE.command(), "uses_memory.py"])
    assert most - least < HOST_BYTES, f"{(most - least) / 2**20:.0f} MiB more of host memory"
    for mine, theirs in zip(after.stdout.split(), before.stdout.split(), strict=True):
        assert int(mine) == pytest.approx(int(theirs), rel=0.01)


@pytest.mark.parametrize("moment", range(20))
def test_ctrl_c_at_any_moment_ends_it_and_what_is_written_is_whole(tmp_path: Path, moment: int) -> None:
    found = interrupt_after(tmp_path / "ours", PLACE, 0.5 * moment, signal.SIGINT, "prints.py")
    began = "to stdout" in found.stdout
    assert found.status in ({-signal.SIGINT, 0} if began else {-signal.SIGINT, 1, 130}), found.stderr
    assert not began or "syncscope" not in without_ours(found).stderr
    written = files_of(tmp_path / "ours" / "out")
    assert set(written) <= {"trace.json.gz", "report.json", "report.html"}
    assert "trace.json.gz" not in written or is_whole(tmp_path / "ours" / "out" / "trace.json.gz")
