"""What the first recorded step does more of than others, and whether it comes back."""

from __future__ import annotations

import pytest

from syncscope import rules
from syncscope.estimate.prepare import prepare
from syncscope.estimate.savings import Estimate, estimate_savings
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

STEP = 4000
"""Length of a step, µs."""


def allocating(*, gives_back: bool) -> TraceBuilder:
    """Three steps that ask for memory between two kernels; the first does nine times as much of it."""
    builder = TraceBuilder().steps(*range(0, 4 * STEP, STEP))
    for start, many in ((0, 9), (STEP, 1), (2 * STEP, 1)):
        builder.launch("gemm", call=(start + 10, 5), runs=(start + 20, 400)).stream_sync(start + 30, 395)
        for number in range(many):
            call = "cudaFree" if gives_back and number % 2 else "cudaMalloc"
            builder.op("aten::empty", start + 440 + 300 * number, 298).call(call, start + 441 + 300 * number, 296)
        after = start + 450 + 300 * many
        builder.launch("gemm", call=(after, 5), runs=(after + 10, 400)).stream_sync(after + 20, 395)
    return builder


def estimated(builder: TraceBuilder) -> Estimate:
    timeline = Timeline(builder.trace())
    return estimate_savings(prepare(timeline, rules.find(timeline)[0]))


def saving_ms(estimate: Estimate) -> float:
    (saving,) = [finding.likely_saving_ms_per_step or 0.0 for finding in estimate.findings if finding.rule == "SYN106"]
    return saving


def test_memory_that_the_first_step_takes_is_kept() -> None:
    assert saving_ms(estimated(allocating(gives_back=False))) == pytest.approx(3 * 0.296 / 3, rel=0.1)


def test_memory_that_the_first_step_also_gives_back_is_asked_for_again() -> None:
    estimate = estimated(allocating(gives_back=True))
    assert saving_ms(estimate) == pytest.approx(11 * 0.296 / 3, rel=0.1)
    causes = {cause.cause: cause for finding in estimate.findings for cause in finding.causes}
    assert (causes["allocation"].saving_high_ms_per_step or 0) > 2 * 3 * 0.296 / 3
