"""The profiler's share of the host's work goes to the call whose work holds it."""

from syncscope.estimate.device import find_device_part
from syncscope.estimate.host import find_host_part
from syncscope.estimate.profiler_cost import LEAST_LEFT, Costs, profiler_cost, without_profiler
from syncscope.estimate.program import compile_program
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

COSTS = Costs(launch=3_000, call=1_000, warning=5_000, entry=700, op=100, frame=10)


def profiler_costs(builder: TraceBuilder) -> list[float]:
    timeline = Timeline(builder.trace())
    host = find_host_part(timeline)
    return profiler_cost(timeline, host, find_device_part(timeline, host), COSTS).tolist()


def test_launches_cost_more_than_other_calls_and_step_ends_nothing() -> None:
    builder = TraceBuilder().launch("k", call=(10, 5), runs=(20, 5)).call("cudaStreamIsCapturing", 30, 1)
    assert profiler_costs(builder.recording(0, 100)) == [3_000, 1_000, 0]


def test_a_warning_is_paid_for_before_the_next_call() -> None:
    builder = TraceBuilder().launch("k", call=(10, 5), runs=(20, 5)).stream_sync(16, 14)
    builder.warning(33, ("train.py", 1, "step")).launch("k", call=(50, 5), runs=(60, 5)).recording(0, 100)
    assert profiler_costs(builder) == [3_000, 1_000, 8_000, 0]


def test_entry_points_ops_and_frames_are_paid_for_too() -> None:
    builder = TraceBuilder().op("aten::add", 5, 12).op("aten::add_", 6, 10).frame("train.py", 3, "step", 2, 30)
    builder.launch("k", call=(10, 5), runs=(20, 5)).entry("Tensor.to", 18, 22, ("train.py", 1, "step"))
    builder.launch("k", call=(40, 5), runs=(50, 5)).recording(0, 100)
    assert profiler_costs(builder) == [3_210, 3_700, 0]


def test_what_the_steps_do_not_hold_is_not_paid_for() -> None:
    builder = TraceBuilder().op("aten::add", 5, 12).launch("k", call=(60, 5), runs=(70, 5))
    assert profiler_costs(builder.recording(50, 100)) == [3_000, 0]


def test_some_work_is_always_left() -> None:
    timeline = Timeline(TraceBuilder().launch("k", call=(1, 2), runs=(20, 5)).recording(0, 100).trace())
    program = compile_program(timeline, Costs(launch=50_000))
    assert program is not None
    left = without_profiler(program.items)
    assert left.pre[0] == LEAST_LEFT * 1_000
    assert left.own[0] == LEAST_LEFT * 2_000
