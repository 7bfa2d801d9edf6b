"""Which bare steps are something else, how well their median is known, and which moments all of them have."""

from __future__ import annotations

import random

import pytest

from syncscope.collect.bare.steps import Median, Moment, Step, is_known, set_aside, stamps

MS = 1_000_000


def steps(*lengths_ms: float, intruders: dict[int, str] | None = None) -> list[Step]:
    begin, made = 0, []
    for number, length in enumerate(lengths_ms):
        made.append(Step(begin, int(length * MS), (intruders or {}).get(number)))
        begin += int(length * MS)
    return made


def test_the_interval_of_the_median_holds_it_in_95_of_100_samples() -> None:
    draw, held = random.Random(1), 0
    for _ in range(400):
        median = Median()
        for _ in range(30):
            median.add(round(draw.lognormvariate(0, 0.5) * 1e6))
        assert median.interval is not None
        low, high = median.interval
        held += low <= 1e6 <= high
    assert 0.92 <= held / 400 <= 0.995


def test_the_median_of_few_numbers_has_no_interval() -> None:
    median = Median()
    for number in (10, 11, 12, 13, 14):
        median.add(number)
    assert median.interval is None and not median.known
    assert is_known([1000, 1001, 1002, 1003, 1004, 1005])
    assert not is_known([1000, 1100] * 10)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("epoch end", "epoch end"), ("checkpoint", "checkpoint"), ("evaluate", "evaluation"),
        ("train", "first of its phase"), ("rollout", "rollout"),
    ],
)  # fmt: skip
def test_a_step_with_another_phase_in_it_is_set_aside_by_its_name(kind: str, reason: str) -> None:
    kept, others = set_aside(steps(10, 10, 900, 10, intruders={2: kind}), 0)
    assert [step.length_ns for step in kept] == [10 * MS] * 3
    assert [(one.length_ns, one.reason) for one in others] == [(900 * MS, reason)]


def test_a_step_far_from_the_others_is_an_outlier_long_or_short() -> None:
    usual = [10.0, 10.1, 9.9] * 10
    kept, others = set_aside(steps(*usual, 30, 3, *usual), 0)
    assert [(one.length_ns / MS, one.reason) for one in others] == [(30, "outlier"), (3, "outlier")]
    assert len(kept) == 60


def test_what_the_program_does_every_few_steps_is_no_outlier() -> None:
    kept, others = set_aside(steps(*([10.0, 10.0, 10.0, 30.0] * 6)), 0)
    assert len(kept) == 24 and others == ()


def test_where_the_host_runs_ahead_no_step_is_an_outlier() -> None:
    lengths = [10.0] * 20 + [2.0]
    assert len(set_aside(steps(*lengths, 80), drain_ns=70 * MS)[1]) == 0
    assert len(set_aside(steps(*lengths, 11), drain_ns=MS)[1]) == 1


def test_the_last_step_which_ends_with_our_sync_stays() -> None:
    assert set_aside(steps(*[10.0] * 20, 30), drain_ns=MS)[1] == ()


def test_where_every_step_has_another_phase_in_it_they_are_the_steps() -> None:
    kept, others = set_aside(steps(10, 12, intruders={0: "evaluate", 1: "evaluate"}), 0)
    assert len(kept) == 2 and others == ()


def moments(begin: int, *made: tuple[str, int | None, int]) -> tuple[Moment, ...]:
    """Of a step: the name, begin and end of each from the step's begin."""
    return tuple(
        Moment("wait" if left is None else "loader", name, 7, None if left is None else begin + left, begin + end)
        for name, left, end in made
    )


def test_a_stamp_is_a_moment_that_all_steps_have_and_counts_from_their_begin() -> None:
    first = Step(1000, 100, moments=moments(1000, ("", None, 40), ("DataLoader", 5, 10), ("", None, 90)))
    second = Step(1100, 100, moments=moments(1100, ("DataLoader", 6, 20), ("", None, 50)))
    loader, wait = sorted(stamps([first, second]), key=lambda stamp: stamp.event)
    assert (loader.event, loader.name, loader.stack, loader.begins_ns, loader.ends_ns) == (
        "loader", "DataLoader", 7, (5, 6), (10, 20),
    )  # fmt: skip
    assert (wait.event, wait.ordinal, wait.begins_ns, wait.ends_ns) == ("wait", 0, (), (40, 50))


def test_a_call_around_the_boundary_begins_with_the_step() -> None:
    (stamp,) = stamps([Step(1000, 100, moments=moments(1000, ("Trainer", -30, 40)))])
    assert (stamp.begins_ns, stamp.ends_ns) == ((0,), (40,))


def test_equal_moments_of_a_step_are_told_apart_by_their_order() -> None:
    both = [Step(0, 100, moments=moments(0, ("", None, 10), ("", None, 30)))] * 2
    assert [(stamp.ordinal, stamp.ends_ns) for stamp in stamps(both)] == [(0, (10, 10)), (1, (30, 30))]
    assert stamps([]) == ()
