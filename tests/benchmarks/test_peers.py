"""The table beside others takes ratios round by round."""

import sys

import pytest

pytest.importorskip("psutil")

from benchmarks import peers
from benchmarks.peers import Program, Run


def test_ratios_are_taken_round_by_round():
    runs = {
        "read": [Run(0.5, 10), Run(1.0, 10), Run(1.0, 10)],
        "ours": [Run(1.0, 10), Run(2.0, 10), Run(4.0, 10)],
        "other": [Run(3.0, 20), Run(4.0, 20), Run(20.0, 20)],
    }
    assert "| 5 MB | other | 4.00 | 6.00 (4.00–20.00) | 3.00 (2.00–5.00) | 20 |" in peers.table({"5 MB": runs})


def test_a_program_that_fails_is_said_to():
    runs: dict[str, list[Run | None]] = {
        "read": [Run(1.0, 10)],
        "ours": [Run(1.0, 10)],
        "other": [None],
        "third": [Run(2.0, 1, ("get_x: KeyError",))],
    }
    made = peers.table({"5 MB": runs})
    assert "| other | fails |" in made
    assert "get_x: KeyError" in made


def test_a_run_is_measured_and_a_failure_is_none(tmp_path):
    said = Program("says", (sys.executable, "-c", "print('[\"one\"]')"))
    run = peers.measure(said, tmp_path / "trace.json", tmp_path)
    assert run is not None
    assert run.failed == ("one",)
    assert run.seconds > 0
    assert peers.measure(Program("fails", (sys.executable, "-m", "nothing")), tmp_path, tmp_path) is None
