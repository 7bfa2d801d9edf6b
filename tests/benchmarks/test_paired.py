"""Blocks in pairs tell what a step costs more, whatever the clock of the host does."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the loops are PyTorch's")

from benchmarks.count import BEGIN, END, Row, write
from benchmarks.paired import Pair, estimate, midmean, plain_ratio


def drifting(more: float, rare: float, pairs: int = 200) -> list[Pair]:
    """Pairs of six steps. The host's clock differs between pairs by a third; one step of ten is ``rare``."""
    draw = random.Random(3)
    found = []
    for _ in range(pairs):
        length = draw.uniform(1.0, 1.3)
        steps = [length * draw.uniform(0.97, 1.03) for _ in range(16)]
        steps[draw.randrange(16)] *= draw.choice([1, 1, 1, 1, 1, 9])  # another process
        usual = tuple(step * more for step in steps[6:15])
        found.append(Pair(tuple(steps[:6]), usual, (steps[15] * more + rare * length,)))
    return found


@pytest.mark.parametrize(("more", "rare"), [(1.0, 0.0), (1.015, 0.0), (1.0, 0.2), (1.01, 0.5)])
def test_what_a_step_costs_more_is_found_in_spite_of_drift_and_other_processes(more: float, rare: float) -> None:
    found = estimate(drifting(more, rare))
    truth = more + rare / 10
    assert found.low < found.ratio < found.high
    assert found.ratio == pytest.approx(truth, abs=0.01)
    assert found.high - found.low < 0.03


def test_pairs_without_a_usual_step_count_with_their_rare_ones() -> None:
    pairs = [Pair((1.0,) * 4, (1.0,) * 4), Pair((1.0,) * 4, (), (1.4,) * 4)] * 10
    assert estimate(pairs).ratio == pytest.approx(1.2)
    with pytest.raises(ValueError, match="no pair"):
        estimate(pairs[1:2])


def test_the_plain_ratio_hides_nothing() -> None:
    assert plain_ratio([Pair((1.0, 1.0), (1.0, 4.0), (1.0,))]) == pytest.approx(2.0)
    assert midmean([1.0, 1.0, 2.0, 100.0]) == 1.5


def test_the_table_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    row = Row("a loop", 7.5, 100, 1.004, 1.001, 1.007, 0.998, 1.002, 1.01, 0.003, 1.0, 0.5, 2.0, 14.4)
    for _ in range(2):
        write(page, {"device": "a GPU", "torch": "2", "seconds": 30, "loops": {"a loop": {"row": asdict(row)}}})
    assert page.read_text().startswith("before\n") and page.read_text().endswith(f"{END}\nafter\n")
    assert (
        page.read_text().count("| a loop | 7.5 | 100 | 1.0040 | 1.0010 – 1.0070 | 0.9980 – 1.0020 | 0.30% | 1 | 14 |")
        == 1
    )
