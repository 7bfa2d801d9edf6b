"""Ctrl-C at any moment ends the command soon, silently, and with all its processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.interrupts import Ending, run_moments
from fixtures import repeat

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
def test_an_interrupt_at_any_moment_ends_the_command_and_its_processes(tmp_path: Path, jobs: int) -> None:
    paths = [tmp_path / f"rank{number}.json" for number in range(4 if jobs > 1 else 1)]
    for path in paths:
        repeat.write(path, events=12_000 if jobs > 1 else 120_000)
    assert run_moments("test", [*map(str, paths), "--jobs", str(jobs)], 10, 1) == 0


@pytest.mark.parametrize(
    ("status", "took", "err", "left", "faults"),
    [
        (130, 0.1, "", [], []),
        (130, 0.1, "Traceback (most recent call last):", [], ["noise"]),
        (130, 11.0, "", [7], ["took 11.0 s", "left 1 processes"]),
        (None, 20.0, "", [], ["did not end"]),
        (1, 0.1, "", [], ["status 1"]),
    ],
)
def test_what_is_wrong_with_an_ending_is_said(
    status: int | None, took: float, err: str, left: list[int], faults: list[str]
) -> None:
    assert Ending(1.0, status, took, err, left).faults() == faults
