"""For how long a host may wait for collectives without a row of a wait. Times in µs."""

from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.rank_scenes import ALL_REDUCE, rank, stragglers

STEPS = (0.0, 10_000.0, 20_000.0)


def reduces(goes_on: float | None = None, memory: float = 0.0, waits: float = 0.0) -> TraceBuilder:
    """Two steps in which an all-reduce runs from 100 to 9000. Behind it the host calls nothing until ``goes_on`` after
    its end, asks for ``memory`` for so long, or ``waits``."""
    builder = TraceBuilder(rank=0, world_size=2).steps(*STEPS)
    for at in STEPS[:-1]:
        builder.launch("k", call=(at + 1, 5), runs=(at + 10, 80))
        builder.launch(ALL_REDUCE, call=(at + 10, 5), runs=(at + 100, 8900), stream=13)
        if memory:
            builder.call("cudaMalloc", at + 200, memory)
        if waits:
            builder.device_sync(at + 200, waits)
        if goes_on is not None:
            builder.launch("k", call=(at + 9000 + goes_on, 5), runs=(at + 9010 + goes_on, 80))
    return builder


@pytest.mark.parametrize(
    ("trace", "held"),
    [
        (reduces(), 0.0),  # and may be at work
        (reduces(goes_on=10), 8.9),
        (reduces(goes_on=-3000), 0.0),
        (reduces(memory=2000), 2.0),
        (reduces(memory=2000, goes_on=10), 8.8),
        (reduces(waits=8800, goes_on=10), 0.0),  # which has a row
    ],
)
def test_a_host_may_wait_for_a_collective_without_a_row_of_a_wait(trace: TraceBuilder, held: float) -> None:
    meetings = Timeline(trace.trace()).info().meetings
    assert meetings is not None
    assert meetings.unseen_ms == pytest.approx(held, abs=0.05)


def test_a_late_rank_may_gain_all_that_another_waits_without_a_row() -> None:
    """The other's host is in an op that makes no call until the all-reduce ends, or that launches meanwhile."""

    def early(launches: float) -> TraceBuilder:
        builder = rank(0, 0, 0, 0, ends=(1900, 1900, 1900))
        for step in range(3):
            builder.op("aten::cat", 2000.0 * step + 450, 1460)
            builder.launch("k", call=(2000.0 * step + launches, 3), runs=(2000.0 * step + 1910, 20))
        return builder

    late = rank(1, 1400, 1400, 1400, ends=(1900, 1900, 1900))
    (known,), (cut,) = (stragglers(early(launches), late) for launches in (1905, 1200))
    assert known.saving_high_ms_per_step == pytest.approx(1.4, abs=0.1)
    assert (cut.saving_high_ms_per_step or 0.0) < 0.1
