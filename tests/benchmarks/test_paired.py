"""Blocks in pairs tell what a step costs more, whatever the clock of the host does."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the loops are PyTorch's")

from benchmarks.count import BEGIN, END, SHADOW, SHORT_SHADOW, OnStep, Row, _rare, write
from benchmarks.paired import Pair, Stretch, estimate, midmean


def drifting(more: float, rare: float) -> tuple[list[Pair], list[Stretch]]:
    """Pairs of six steps, and stretches of a hundred. The host's clock differs between them by a third; one step of ten
    is ``rare``, and one of six is disturbed by another process."""
    draw = random.Random(3)

    def steps(length: float, count: int) -> list[float]:
        return [length * draw.uniform(0.97, 1.03) * draw.choice([1, 1, 1, 1, 1, 1.5]) for _ in range(count)]

    pairs, stretches = [], []
    for _ in range(300):
        length = draw.uniform(1.0, 1.3)
        on = [step + length * (more - 1) for step in steps(length, 6)]
        pairs.append(Pair(tuple(steps(length, 6)), tuple(on)))
    for _ in range(60):
        length = draw.uniform(1.0, 1.3)
        few = [step + length * rare for step in steps(length, 10)]
        stretches.append(Stretch(tuple(steps(length, 90)), tuple(few)))
    return pairs, stretches


@pytest.mark.parametrize(("more", "rare"), [(1.0, 0.0), (1.015, 0.0), (1.0, 0.2), (1.01, 0.5)])
def test_what_a_step_costs_more_is_found_in_spite_of_drift_and_other_processes(more: float, rare: float) -> None:
    found = estimate(*drifting(more, rare))
    truth = more + rare / 10
    assert found.low < found.ratio < found.high
    assert found.ratio == pytest.approx(truth, abs=0.01)
    assert found.high - found.low < 0.03


def test_rare_steps_are_a_mean_over_all_steps_in_a_row() -> None:
    same = [Pair((1.0,) * 4, (1.0,) * 4)] * 10
    assert estimate(same, [Stretch((2.0,) * 6, (2.8,) * 4)] * 3).ratio == pytest.approx(1.16)
    assert estimate(same, [Stretch((), (2.8,) * 4)] * 3).ratio == pytest.approx(1.0)  # nothing to compare with
    with pytest.raises(ValueError, match="no pair"):
        estimate([Pair((1.0,) * 4, ())])


def test_a_disturbed_usual_step_and_a_disturbed_rare_one_weigh_the_same() -> None:
    same = [Pair((1.0,) * 4, (1.0,) * 4)] * 10
    assert estimate(same, [Stretch((1.0,) * 9 + (5.0,), (1.0,) * 9 + (5.0,))] * 3).ratio == pytest.approx(1.0)
    assert midmean([1.0, 1.0, 2.0, 100.0]) == 1.5


def test_steps_behind_a_drawn_one_are_rare_for_longer_where_wrappers_were_moved() -> None:
    usual, drawn = OnStep(1.0, False, False, False), OnStep(1.0, True, True, False)
    moved = drawn._replace(moved=True)
    known = [usual] * SHADOW
    assert _rare([*known, drawn, *[usual] * 5], False)[SHADOW:] == [True] * (1 + SHORT_SHADOW) + [False] * 2
    assert _rare([*known, moved, *[usual] * (SHADOW + 4)], False)[SHADOW:] == [True] * (1 + SHADOW) + [False] * 4
    counted = OnStep(1.0, True, False, False)
    left_out = counted._replace(counted=False)
    assert _rare([*[counted] * SHADOW, left_out, *[counted] * 5], True)[SHADOW:] == [True] * 4 + [False] * 2
    assert _rare([usual, moved, usual, usual], False, shadow=False) == [False, True, False, False]


def test_the_table_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    row = Row("a loop", 7.5, 100, 1.004, 1.001, 1.007, 0.998, 1.002, 1.01, 0.003, 1.0, 0.5, 2.0, 14.4)
    for _ in range(2):
        write(page, {"device": "a GPU", "torch": "2", "seconds": 30, "loops": {"a loop": {"row": asdict(row)}}})
    assert page.read_text().startswith("before\n") and page.read_text().endswith(f"{END}\nafter\n")
    assert (
        page.read_text().count(
            "| a loop | 7.5 | 100 | 1.0040 | 1.0010 – 1.0070 | 0.9980 – 1.0020 | 1.0100 | 0.30% | 1 | 14 |"
        )
        == 1
    )
