"""What is said of a device that pauses in one of the recorded steps, and of the rest of its idle time."""

from __future__ import annotations

import pytest

from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.timeline.pauses import ONCE
from tests.builders import TraceBuilder
from tests.rules.scenes import findings


def steps_with(*gaps: float) -> TraceBuilder:
    """Steps that each end with a gap of so many µs, behind 1000 of work; the last one has none behind it."""
    ends = [0.0]
    for gap in gaps:
        ends.append(ends[-1] + 1000 + gap)
    builder = TraceBuilder().steps(*ends)
    for start in ends[:-1]:
        builder.launch("k", call=(start, 1), runs=(start + 1, 999))
    return builder


def starved(builder: TraceBuilder) -> Finding:
    (found,) = findings(builder, "OVL303")
    return found


def paused_us(builder: TraceBuilder) -> float:
    return float(Timeline(builder.trace()).bubbles.due_to(ONCE).sum()) * 1e-3


@pytest.mark.parametrize(
    ("gaps", "paused"),
    [
        ([500, 500, 500, 500, 500], 0),
        ([9000, 500, 500, 500, 500], 9000),
        ([500, 500, 9000, 500, 500], 9000),
        ([500, 900, 500, 500, 500], 0),  # not long enough
        ([3000, 500, 3000, 500, 500], 0),  # two steps have it
        ([9000, 2500, 500, 500, 500], 0),  # another has the same in little
        ([9000, 500], 0),  # two steps do not tell
    ],
)
def test_a_pause_of_one_step_of_several_is_set_apart(gaps: list[float], paused: float) -> None:
    assert paused_us(steps_with(*gaps)) == pytest.approx(paused, abs=5)


def test_a_pause_is_no_part_of_what_a_device_is_idle_for_each_step() -> None:
    """Of 11,000 µs in five steps 9,000 are one pause, in the second."""
    found = starved(steps_with(500, 9000, 500, 500, 500))
    assert found.idle_ms_per_step == pytest.approx(0.4, abs=0.01)
    assert sum(cause.ms_per_step for cause in found.causes) == pytest.approx(0.4, abs=0.01)
    assert ONCE not in {cause.cause for cause in found.causes}
    assert "besides 9 ms once, in step 3 of the 5 recorded" in found.message
    assert "idle for 9 ms once" in found.fix and "no part of each step" in found.fix


def test_where_a_device_only_pauses_once_it_is_a_note() -> None:
    found = starved(steps_with(10, 9000, 10, 10, 10))
    assert (found.severity, found.causes) == ("note", ())
    assert found.idle_ms_per_step == pytest.approx(1.8, abs=0.01)
    assert "9 ms once, in step 3 of the 5 recorded" in found.message


def test_each_step_that_pauses_at_another_place_is_no_single_pause() -> None:
    """A pause of 3,000 µs in each of four steps, before another kernel each time."""
    builder = TraceBuilder().steps(*(7000 * i for i in range(5)))
    for step in range(4):
        for number in range(4):
            at = 7000 * step + 1000 * number + (3000 if number >= step else 0)
            builder.launch(f"k{number}", call=(at, 1), runs=(at + 1, 998))
    assert paused_us(builder) == 0


def test_a_slow_batch_is_no_single_pause() -> None:
    """Workers that fall behind make one step in so many wait."""

    def with_load(builder: TraceBuilder) -> TraceBuilder:
        return builder.entry("DataLoader", 2500, 11400, ("train.py", 8, "train", "next(batches)"))

    assert paused_us(steps_with(500, 9000, 500, 500, 500)) > 8000
    assert paused_us(with_load(steps_with(500, 9000, 500, 500, 500))) == 0


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        ([9000], "One pause takes 9 ms of the one step recorded"),
        ([9000, 500], "One pause takes 9 ms of the 2 steps recorded"),
        ([600, 600], ""),
    ],
)
def test_fewer_steps_do_not_tell_whether_a_pause_comes_back(gaps: list[float], told: str) -> None:
    found = starved(steps_with(*gaps))
    assert found.idle_ms_per_step == pytest.approx(sum(gaps) / len(gaps) * 1e-3, abs=0.01)
    assert ("One pause" in found.fix) is bool(told) and told in found.fix
