"""What a trace's own rows say of torch.compile: parts inside of each other, and what is compiled."""

from __future__ import annotations

from syncscope.timeline import Timeline
from syncscope.timeline.compiling import Compiled
from tests.builders import TraceBuilder

COMPILING = "_compile.compile_inner (dynamo_timed)"


def compiled(trace: TraceBuilder) -> Compiled | None:
    return Timeline(trace.launch("kernel", call=(5000, 5), runs=(5010, 5)).trace()).compiled


def region(trace: TraceBuilder, name: str, ts: int, dur: int) -> TraceBuilder:
    return trace.op(f"Torch-Compiled Region: {name}", ts, dur)


def test_a_trace_without_a_compiled_function_says_nothing() -> None:
    assert compiled(TraceBuilder().op("aten::add", 10, 5)) is None


def test_a_function_that_runs_in_one_part_has_no_break() -> None:
    trace = region(region(TraceBuilder(), "0/0", 10, 50), "0/0", 100, 50)
    found = compiled(trace)
    assert found is not None and found.events == ()


def test_a_part_inside_of_another_is_a_break_of_the_outermost() -> None:
    trace = TraceBuilder()
    for begin in (0, 1000):
        region(region(region(trace, "0/0", begin, 500), "1/0", begin + 100, 300), "2/0", begin + 200, 100)
    found = compiled(trace)
    assert found is not None
    (event,) = found.events
    assert (event.event.kind, event.event.count, event.event.graphs) == ("break", 2, 3)
    assert event.event.compile_ids == ("0/0",)
    assert event.place.site is None and event.place.source == "compile"


def test_functions_one_after_the_other_are_no_break() -> None:
    found = compiled(region(region(TraceBuilder(), "0/0", 10, 50), "1/0", 100, 50))
    assert found is not None and found.events == ()


def test_steps_decide_what_counts() -> None:
    trace = region(region(TraceBuilder(), "0/0", 10, 50), "1/0", 20, 20).step(100, 50)
    found = compiled(trace)
    assert found is not None and found.events == ()


def test_what_is_compiled_is_what_runs_next_and_a_second_variant_is_compiled_again() -> None:
    trace = region(TraceBuilder().op(COMPILING, 10, 400), "0/0", 500, 20)
    trace = region(trace.op(COMPILING, 600, 300), "3/1", 1000, 20).op(COMPILING, 2000, 100)
    found = compiled(trace)
    assert found is not None
    told = [(one.event.kind, one.event.compile_ids, one.event.time_ns) for one in found.events]
    assert told == [("compile", ("0/0",), 400_000), ("recompile", ("3/1",), 300_000), ("compile", (), 100_000)]
    assert [span.event for span in found.spans] == [0, 1, 2]


def test_the_line_is_that_of_the_function_around_where_there_are_stacks() -> None:
    trace = TraceBuilder().frame("train.py", 7, "train_step", 0, 900)
    found = compiled(region(region(trace, "0/0", 10, 500), "1/0", 100, 300))
    assert found is not None
    site = found.events[0].place.site
    assert site is not None and (site.file, site.line) == ("train.py", 7)
