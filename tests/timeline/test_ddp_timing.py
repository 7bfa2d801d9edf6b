"""The waits by which DistributedDataParallel times its first steps."""

from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.warm_up import TIMING
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

WHERE = ("train.py", 7, "train", "done.synchronize()")


def timed(builder: TraceBuilder, at: float, *, pairs: int = 4) -> TraceBuilder:
    """What DistributedDataParallel asks at the beginning of a forward pass; 30 µs for each pair."""
    for number in range(pairs):
        start = at + 30 * number
        builder.event_sync(start, 8).event_sync(start + 10, 8).call("cudaEventElapsedTime", start + 20, 2)
    return builder


def in_steps(builder: TraceBuilder) -> TraceBuilder:
    """Two steps with a kernel at their end."""
    builder.steps(0, 1000, 2000)
    for begin in (0, 1000):
        builder.launch("gemm", call=(begin + 900, 5), runs=(begin + 910, 50))
    return builder


def timings(builder: TraceBuilder) -> list[tuple[float, float]]:
    """Begin and end in µs."""
    found = Timeline(builder.trace()).warm_ups
    rows = found.take(found.name == TIMING)
    return list(zip((rows.ts / 1000).tolist(), (rows.end / 1000).tolist(), strict=True))


@pytest.mark.parametrize("host", ["op", "annotation"])
@pytest.mark.parametrize("pairs", [1, 4])
def test_waits_for_two_events_at_the_beginning_of_its_forward_pass_are_its_own(host: str, pairs: int) -> None:
    builder = in_steps(TraceBuilder())
    getattr(builder, host)("DistributedDataParallel.forward", 100, 400)
    assert timings(timed(builder, 110, pairs=pairs)) == [(110, 110 + 30 * (pairs - 1) + 18)]


def test_they_are_a_note() -> None:
    builder = timed(in_steps(TraceBuilder()).annotation("DistributedDataParallel.forward", 100, 400), 110)
    (finding,) = findings(builder, "SYN105")
    assert finding.severity == "note" and "times its first steps" in finding.message
    assert "in every hundredth" in finding.fix


def test_what_the_model_itself_waits_for_in_that_pass_is_not() -> None:
    builder = in_steps(TraceBuilder()).annotation("DistributedDataParallel.forward", 100, 400)
    builder.annotation("attention", 105, 300)
    assert timings(timed(builder, 110)) == []
    (finding,) = findings(builder, "SYN105")
    assert "warm-up" not in finding.message


def test_in_a_recording_without_the_hosts_rows_eight_waits_that_nobody_asked_for_are_its_own() -> None:
    builder = in_steps(TraceBuilder()).recording(0, 1000, 2000)
    assert timings(timed(builder, 110)) == [(110, 218)]
    assert timings(timed(in_steps(TraceBuilder()).recording(0, 1000, 2000), 110, pairs=3)) == []


def test_eight_waits_that_the_program_asked_for_are_the_programs() -> None:
    builder = timed(in_steps(TraceBuilder()).recording(0, 1000, 2000), 110)
    builder.entry("Event.synchronize", 139, 160, WHERE)
    assert timings(builder) == []


def test_in_a_trace_of_others_eight_waits_alone_tell_nothing() -> None:
    assert timings(timed(in_steps(TraceBuilder()), 110)) == []
