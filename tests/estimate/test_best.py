"""What a fix saves at best where its advice has two ways."""

from __future__ import annotations

import pytest

from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.estimate.prepare import Prepared
from syncscope.schema.findings import Finding
from syncscope.schema.recording import Bare
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.estimate.test_questions import STEPS
from tests.rules.scenes import line

MADE, MOVED = "torch.tensor(weights, device='cuda')", "batch.to('cuda')"


def copied(expression: str, bytes: int = 400) -> Timeline:
    """Steps of 1 ms, in each of which the host takes 40 µs to make a tensor that it copies to a device with nothing to
    do, and waits for the copy."""
    builder, marks = TraceBuilder(), [0.0]
    op = "aten::lift_fresh" if expression == MADE else "aten::to"
    for number in range(STEPS):
        at = 1000.0 * number
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 17, 20))
        builder.op(op, at + 55, 25)
        builder.call("cudaStreamIsCapturing", at + 55, 1)
        builder.copy("HtoD", call=(at + 57, 8), runs=(at + 66, 2), memory="pageable", bytes=bytes)
        builder.stream_sync(at + 66, 5).warning(at + 81, line(3, expression))
        builder.launch("gemm", call=(at + 500, 5), runs=(at + 507, 20))
        marks.append(at + 1000)
    bare = Bare(steps_ns=(1_000_000,) * 8, drain_ns=1000)
    return Timeline(builder.recording(*marks, drained=marks[-1] + 5, bare=bare).trace())


def found(expression: str) -> Finding:
    timeline = copied(expression)
    estimate = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    return next(one for one in estimate.findings if one.rule == "SYN101")


def test_a_tensor_that_may_be_made_once_saves_up_to_all_of_its_making() -> None:
    made, moved = found(MADE), found(MOVED)
    assert "once outside the loop" in made.fix
    assert made.saving_ms_per_step == pytest.approx(moved.saving_ms_per_step, abs=0.001)
    assert made.saving_high_ms_per_step is not None and moved.saving_high_ms_per_step is not None
    assert made.saving_high_ms_per_step > moved.saving_high_ms_per_step + 0.02


def test_all_together_save_no_less_at_best() -> None:
    timeline = copied(MADE)
    estimate = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    highs = [one.saving_high_ms_per_step or 0.0 for one in estimate.findings]
    assert estimate.together.high is not None and estimate.together.high >= max(highs)


def test_other_copies_have_one_way_only() -> None:
    timeline = copied(MOVED)
    prepared = prepare(timeline, rules.find(timeline)[0])
    assert not any(prepared.at_best)


def test_what_is_saved_at_best_travels_to_where_ranks_are_compared() -> None:
    timeline = copied(MADE)
    prepared = prepare(timeline, rules.find(timeline)[0])
    assert any(prepared.at_best)
    assert estimate_savings(Prepared.from_bytes(prepared.to_bytes())) == estimate_savings(prepared)
