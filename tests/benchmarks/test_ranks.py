"""The benchmark of many ranks prints its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_table_has_a_row_for_each_engine_and_number_of_workers() -> None:
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ranks", "--ranks", "8", "--workers", "1", "2"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [["8", engine, str(n)] for engine in ("local", "dask") for n in (1, 2)]
    assert all(row[-1] == "1" for row in rows)
