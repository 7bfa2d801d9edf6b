from __future__ import annotations

from collections.abc import Sequence

import pytest

from syncscope.rules import find
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder
from tests.rules.scenes import findings, line

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BY_HAND = line(19, "dist.all_reduce(p.grad)")
BACKWARD = line(31, "loss.backward()")


def training(*reduced: tuple[float, float], steps: int = 2, by_hand: bool = False, skew: float = 0) -> TraceBuilder:
    """Steps of 1000 µs: 600 of compute, collectives at the given times of the step, 100 of compute from 900 on. The
    first collective of the first step takes ``skew`` longer, from before."""
    builder = TraceBuilder(rank=0, world_size=2).recording(*(1000 * i for i in range(steps + 1)))
    for step in range(steps):
        at = 1000.0 * step
        builder.on(TID).launch("backward", call=(at + 1, 5), runs=(at + 10, 600))
        if not by_hand:
            builder.entry("backward", at + 8, at + 890, BACKWARD).on(TID + 1)
        for begin, runs in reduced:
            longer = skew if step == 0 else 0
            builder.launch(ALL_REDUCE, call=(at + 9, 3), runs=(at + begin, runs + longer), stream=13)
        builder.on(TID).launch("sgd", call=(at + 60, 5), runs=(at + 900, 90))
        if by_hand:
            builder.entry("ProcessGroup.allreduce", at + 8, at + 13, BY_HAND)
    return builder


def exposed(builder: TraceBuilder) -> list[Finding]:
    return findings(builder, "OVL302")


def test_a_collective_that_nothing_hides_is_found_at_the_backward_that_starts_it():
    (found,) = exposed(training((620, 200)))
    assert found.site is not None
    assert (found.site.line, found.severity, found.per_step) == (31, "warning", 1)
    assert found.exposed_ms_per_step == pytest.approx(0.2)
    assert "allreduce × 1 a step, with no compute beside them for 0.2 ms a step" in found.message
    assert "what computes next waits for them" in found.message
    assert "another rank comes late" in found.message
    assert "bucket_cap_mb" in found.fix


def test_by_hand_it_is_found_at_its_line_with_the_fix_for_that():
    (found,) = exposed(training((620, 200), by_hand=True))
    assert found.site is not None
    assert found.site.line == 19
    assert "async_op=True" in found.fix


def test_beside_compute_it_is_clean():
    assert exposed(training((20, 200), (300, 200))) == []


def test_a_last_bucket_that_cannot_hide_is_a_note():
    assert [finding.severity for finding in exposed(training((20, 200), (595, 40)))] == ["note"]


def test_most_of_it_exposed_is_more_than_a_note_however_short():
    assert [finding.severity for finding in exposed(training((600, 40)))] == ["warning"]


def test_what_is_under_a_hundredth_of_the_step_is_not_spoken_of():
    assert exposed(training((601, 18))) == []


def test_the_first_step_counts_for_no_more_than_the_others_where_there_are_three():
    assert exposed(training((620, 200), steps=2, skew=60))[0].exposed_ms_per_step == pytest.approx(0.23)
    assert exposed(training((620, 200), steps=3, skew=60))[0].exposed_ms_per_step == pytest.approx(0.2)


def test_sharded_weights_get_their_own_fix():
    builder = training((620, 200))
    for event in builder.events:
        event["name"] = event["name"].replace("AllReduce", "AllGather")
    assert "prefetch" in exposed(builder)[0].fix


def test_sizes_that_the_trace_does_not_tell_are_said_to_be_missing():
    def partly(builder: TraceBuilder) -> Sequence[str]:
        return [entry.why for entry in find(Timeline(builder.trace()))[1] if entry.rule == "OVL302" and entry.partial]

    assert "how large" in partly(training((620, 200)))[0]
    told = training((620, 200))
    for event in told.events:
        if event["cat"] == "kernel" and "nccl" in event["name"]:
            event["args"] |= {"In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"}
    assert partly(told) == []
    assert exposed(told)[0].bytes == 80
    assert partly(TraceBuilder().launch("k", call=(0, 1), runs=(2, 5))) == []
