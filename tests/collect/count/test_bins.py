"""The picture of a run keeps its length and its sums, however long it is and however often the phase changes."""

from __future__ import annotations

import itertools

import pytest

from syncscope.collect.count.bins import FIRST_WIDTH_NS, Bins
from syncscope.schema.counting import MAX_BINS

MS = 1_000_000


def test_a_bin_holds_one_phase_and_ends_when_it_is_long() -> None:
    bins = Bins(1_000)
    for step in range(20):
        bins.add(1_000 + (step + 1) * 10 * MS, 1, steps=1, counted=1, waits=2)
    bins.add(1_000 + 205 * MS, 2)
    bins.add(1_000 + 210 * MS, 2, windows=True)
    taken = bins.taken()
    assert [each.phase for each in taken] == [1, 1, 1, 1, 2, 2]
    assert (taken[0].start_ns, taken[0].length_ns, taken[0].steps, taken[0].waits) == (0, FIRST_WIDTH_NS, 5, 10)
    assert [each.windows for each in taken] == [False] * 5 + [True]


def test_long_steps_are_told_with_the_time_in_which_they_ended() -> None:
    """Waits and the time are told first, and then that a step was over."""
    bins = Bins(0)
    for step in range(3):
        bins.add((step + 1) * 2 * FIRST_WIDTH_NS, 1, waits=4)
        bins.add((step + 1) * 2 * FIRST_WIDTH_NS, 1, steps=1, counted=1)
    assert [(each.length_ns, each.steps, each.waits) for each in bins.taken()] == [(2 * FIRST_WIDTH_NS, 1, 4)] * 3


@pytest.mark.parametrize("phases", [1, 2, 3])
@pytest.mark.parametrize("step_ns", [MS // 2, 100 * MS])
def test_long_runs_keep_their_length_and_their_sums_in_many_bins(phases: int, step_ns: int) -> None:
    bins, steps = Bins(0), 30_000
    for step in range(steps):
        bins.add((step + 1) * step_ns, step % phases, steps=1, counted=1, waits=3)
    taken = bins.taken()
    assert MAX_BINS / 10 < len(taken) <= MAX_BINS
    assert sum(each.length_ns for each in taken) == steps * step_ns
    assert (sum(each.steps for each in taken), sum(each.waits for each in taken)) == (steps, 3 * steps)
    assert all(a.start_ns + a.length_ns == b.start_ns for a, b in itertools.pairwise(taken))
    assert max(each.length_ns for each in taken) < steps * step_ns / 20


def test_windows_are_told_apart_however_many_there_are() -> None:
    bins = Bins(0)
    for step in range(5_000):
        bins.add((step + 1) * MS, 1, steps=1, windows=bool(step % 2))
    taken = bins.taken()
    assert len(taken) <= MAX_BINS and sum(each.steps for each in taken) == 5_000


def test_the_bins_of_a_phase_that_was_part_of_another_are_its() -> None:
    bins = Bins(0)
    for phase in (1, 2, 1):
        bins.add(bins.taken()[-1].start_ns + 60 * MS if bins.taken() else 60 * MS, phase, steps=1)
    bins.fold(2, 1)
    assert {each.phase for each in bins.taken()} == {1}
