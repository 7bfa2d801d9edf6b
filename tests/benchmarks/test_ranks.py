"""The benchmark of many ranks: its files are ranks of one run, and it prints its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import ranks
from syncscope.analysis.analyze import analyze


def test_the_ranks_that_it_writes_are_those_of_one_run(tmp_path: Path) -> None:
    assert ranks.write_ranks(tmp_path, 10) == sum(file.stat().st_size for file in tmp_path.iterdir())
    report = analyze(tmp_path)
    assert [info.rank for info in report.traces] == list(range(10))
    assert [finding.rank for finding in report.findings if finding.rule == "DST601"] == [7]
    assert report.between_ranks is not None
    clocks = [row.clock_offset_ms for row in report.between_ranks.ranks]
    assert clocks == pytest.approx([0.0] * 8 + [7.919] * 2, abs=0.02)


@pytest.mark.slow
def test_the_table_has_a_row_for_each_engine_and_number_of_workers() -> None:
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, ranks.__file__, "--ranks", "8", "--workers", "1", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [["8", engine, str(n)] for engine in ("local", "dask") for n in (1, 2)]
    assert all(row[-1] == "1" for row in rows)
