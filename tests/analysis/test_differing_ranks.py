from __future__ import annotations

from syncscope.analysis.differing_ranks import describe_differences
from syncscope.schema.counting import CountedWait, RecordedPhase, RecordedRun
from syncscope.schema.recording import RecordedFrame, RecordedSteps, Recording


def rank(*counts: int, steps: int = 100) -> Recording:
    """A rank whose lines 1, 2, … waited so often in 100 counted steps of training."""
    frames = tuple(
        RecordedFrame(file="train.py", line=number, function="step", expression=f"x{number}.item()", user=True)
        for number in range(1, len(counts) + 1)
    )
    waits = tuple(CountedWait(phase=0, stack=n, kind="warning", count=count) for n, count in enumerate(counts) if count)
    phases = (RecordedPhase(name="train", kind="train", steps=steps, counted_steps=steps),)
    run = RecordedRun(id="r", started_ns=0, time_ns=1, complete=True, phases=phases, waits=waits)
    stacks = tuple((number,) for number in range(len(counts)))
    return Recording(format=1, version="0", steps=RecordedSteps(source="none"), frames=frames, stacks=stacks, run=run)


def test_the_rank_that_differs_is_named_with_its_line() -> None:
    found = describe_differences({0: rank(100), 1: rank(100), 2: rank(200), 3: rank(100)})
    assert found == {
        2: "Rank 2 differs from the other ranks: train.py:1 x1.item() waits 2 times a step of train there, 1 times on "
        "most others."
    }


def test_a_line_that_only_one_rank_has_is_a_difference() -> None:
    found = describe_differences({0: rank(100, 10), 1: rank(100), 2: rank(100)})
    assert list(found) == [0]
    assert "x2.item() waits 0.1 times" in found[0] and "0 times on most others" in found[0]


def test_small_differences_are_none() -> None:
    assert describe_differences({0: rank(100), 1: rank(101), 2: rank(95)}) == {}


def test_of_two_ranks_nobody_can_say_which_is_the_odd_one() -> None:
    assert describe_differences({0: rank(100), 1: rank(200)}) == {}


def test_ranks_that_all_differ_name_none() -> None:
    assert describe_differences({0: rank(100), 1: rank(200), 2: rank(400), 3: rank(100, 0), 4: rank(300)}) == {}


def test_ranks_with_other_numbers_of_steps_are_compared_by_their_frequency() -> None:
    assert describe_differences({0: rank(100), 1: rank(100), 2: rank(50, steps=50)}) == {}
