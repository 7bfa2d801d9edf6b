"""The benchmark of many ranks prints its tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.ranks import LONGER

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_tables_have_a_row_for_each_engine_and_number_of_workers_and_for_each_kind_of_longer_ranks() -> None:
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ranks", "--ranks", "8", "--workers", "1", "2"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    engines, longer = (
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        for table in done.stdout.split("\n\n")
    )
    assert [row[:3] for row in engines] == [["8", engine, str(n)] for engine in ("local", "dask") for n in (1, 2)]
    assert all(row[-1] == "1" for row in engines)
    assert [row[0] for row in longer] == list(LONGER)
    assert all(float(row[3]) > 0 for row in longer)
