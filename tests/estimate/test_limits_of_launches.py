"""What the trace leaves to gain from fewer launches."""

from __future__ import annotations

from syncscope import rules
from syncscope.estimate.limits import find_limits
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import compile_program
from syncscope.estimate.study import Study
from syncscope.rules.launch_bound import find_most_ms
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder


def test_launches_leave_as_much_to_gain_as_the_device_waits_for_them_at_most() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(7, 1600))
    for number in range(1, 200):
        builder.launch("tiny", call=(20 * number, 5), runs=(max(20.0 * number + 7, 1607 + 3 * number), 3))
    timeline = Timeline(builder.trace())
    program = compile_program(timeline, Costs(*[0.0] * 6))
    assert program is not None
    (hit,) = [hit for hit in rules.find(timeline)[0] if hit.finding.rule == "LCH501"]
    (limit,) = find_limits(Study(timeline, program), [hit])
    assert limit.ms == find_most_ms(timeline)
    assert limit.ms is not None
    assert limit.ms > 1.5 * (hit.finding.idle_ms_per_step or 0.0) > 0
