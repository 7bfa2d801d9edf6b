"""The picture of a timeline, on traces that can be drawn on paper."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest

from syncscope.report.picture.draw import draw_lanes
from syncscope.report.picture.lanes import Lanes, Spot
from syncscope.report.picture.pack import unpacked
from syncscope.rules import find
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

US = 1_000


class Bar(NamedTuple):
    lane: str
    kind: str
    name: str
    ts: int
    dur: int
    bytes: int
    memory: str
    spot: Spot | None
    merged: int
    busy: int
    link: int
    """Number of another bar, −1 none."""


def picture(builder: TraceBuilder, max_items: int = 9_000) -> Lanes:
    timeline = Timeline(builder.trace())
    return draw_lanes(timeline, find(timeline)[0], max_items)


def every(made: Lanes) -> list[Bar]:
    """All bars in the order that links count."""
    column = {name: unpacked(packed).tolist() for name, packed in made.bars.items()}
    link = dict(zip(unpacked(made.links[0]).tolist(), unpacked(made.links[1]).tolist(), strict=True))
    found = []
    for series in made.series:
        for i in range(series.first, series.first + series.count):
            spot = column["spot"][i]
            bar = Bar(
                made.lanes[series.lane].label, made.kinds[series.kind], made.names[column["name"][i]], column["ts"][i],
                column["dur"][i], column["bytes"][i], made.memory[column["memory"][i]],
                None if spot < 0 else made.spots[spot], column["merged"][i], column["dur"][i] - column["gaps"][i],
                link.get(i, -1),
            )  # fmt: skip
            found.append(bar)
    assert len(found) == made.bars["ts"].count
    return found


def shown(made: Lanes, label: str) -> list[tuple[str, str, int, int]]:
    """(kind, name, ts, dur) of a lane's bars in order of time, in µs."""
    mine = sorted((bar for bar in every(made) if bar.lane == label), key=lambda bar: bar.ts)
    return [(bar.kind, bar.name, bar.ts // US, bar.dur // US) for bar in mine]


def of(made: Lanes, kind: str) -> list[Bar]:
    return [bar for bar in every(made) if bar.kind == kind]


def spans(made: Lanes, kind: str, label: str) -> list[tuple[int, int]]:
    """(ts, dur) of the bars of one kind in a lane, in µs."""
    return [(bar.ts // US, bar.dur // US) for bar in of(made, kind) if bar.lane == label]


def item_read() -> TraceBuilder:
    return (
        TraceBuilder()
        .on(4000, "main")
        .step(100, 100)
        .op("aten::mm", 105, 10)
        .launch("gemm", call=(107, 3), runs=(115, 30))
        .op("aten::item", 120, 40)
        .op("aten::_local_scalar_dense", 121, 38)
        .copy("DtoH", call=(122, 3), runs=(146, 5), memory="pinned", bytes=4)
        .stream_sync(126, 30)
    )


def test_times_count_from_the_first_step() -> None:
    made = picture(item_read())
    assert made.steps[0].ts == 0
    assert made.steps[0].dur == 100 * US
    assert shown(made, "stream 7")[0] == ("compute", "gemm", 15, 30)
    assert [row[0] for row in shown(made, "stream 7")] == ["compute", "DtoH", "exposed"]


def test_a_thread_shows_its_outermost_ops_launches_and_waits() -> None:
    made = picture(item_read())
    assert shown(made, "main") == [
        ("op", "aten::mm", 5, 10),
        ("launch", "cudaLaunchKernel", 7, 3),
        ("op", "aten::item", 20, 40),
        ("launch", "cudaMemcpyAsync", 22, 3),
        ("wait", "cudaStreamSynchronize", 26, 30),
    ]


def test_step_markers_are_steps_and_nothing_else() -> None:
    made = picture(item_read().annotation("ProfilerStep#0", 100, 100).annotation("Optimizer.step#SGD.step", 165, 20))
    names = [name for _, name, _, _ in shown(made, "main")]
    assert "Optimizer.step#SGD.step" in names
    assert not any(name.startswith("ProfilerStep#") for name in names)


def test_a_launch_leads_to_its_kernel_and_a_wait_to_its_copy() -> None:
    made = picture(item_read())
    items = every(made)
    links = {bar.name: items[bar.link].name for bar in items if bar.link >= 0}
    assert links["cudaLaunchKernel"] == "gemm"
    assert links["cudaStreamSynchronize"].startswith("Memcpy DtoH")


def test_a_device_wait_leads_to_the_last_work_to_end() -> None:
    builder = (
        TraceBuilder()
        .step(0, 100)
        .launch("short", call=(2, 2), runs=(10, 5), stream=7)
        .launch("long", call=(5, 2), runs=(12, 60), stream=9)
        .launch("later", call=(90, 2), runs=(95, 3), stream=7)
    )
    made = picture(builder.op("op", 15, 60).device_sync(16, 57))
    items = every(made)
    (wait,) = of(made, "wait")
    assert items[wait.link].name == "long"


def test_a_device_wait_may_wait_for_work_launched_before_the_trace() -> None:
    builder = TraceBuilder().step(0, 100).kernel("from before", 5, 50).op("op", 1, 60).device_sync(2, 55)
    made = picture(builder.launch("after", call=(70, 2), runs=(75, 5)))
    items = every(made)
    (wait,) = of(made, "wait")
    assert items[wait.link].name == "from before"


def test_a_wait_on_an_empty_device_leads_nowhere() -> None:
    builder = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).op("op", 49, 30).device_sync(50, 2)
    (wait,) = of(picture(builder), "wait")
    assert wait.link < 0


def test_a_pageable_copy_blocks_in_its_own_call() -> None:
    builder = TraceBuilder().step(0, 100).copy("HtoD", call=(10, 40), runs=(15, 30), memory="pageable", bytes=1 << 20)
    made = picture(builder)
    (host,) = of(made, "wait")
    assert (host.bytes, host.memory) == (1 << 20, "pageable")
    assert made.blocked_ms_per_step == pytest.approx(0.040)


def test_blocked_time_is_a_mean_over_steps_and_counts_no_wait_outside_them() -> None:
    builder = TraceBuilder().step(0, 100).step(100, 100)
    for start in (10, 110, 310):
        builder.op("aten::item", start, 30).copy("DtoH", call=(start, 2), runs=(start + 5, 3), memory="pinned", bytes=4)
        builder.stream_sync(start + 3, 20)
    assert picture(builder).blocked_ms_per_step == pytest.approx(0.020)


def test_threads_that_are_blocked_at_once_count_once_with_a_picture_and_without() -> None:
    builder = TraceBuilder().step(0, 1000)
    for tid in (1, 2):
        builder.on(tid).launch("gemm", call=(5 + tid, 1), runs=(10, 900)).op("op", 90, 820).device_sync(100, 800)
    timeline = Timeline(builder.trace())
    each = timeline.info().each_step
    assert each is not None
    assert each.blocked_ms == (0.8,)
    assert picture(builder).blocked_ms_per_step == pytest.approx(0.8)


def test_in_a_trace_without_steps_blocked_time_is_that_of_all() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 1), runs=(5, 100)).op("op", 9, 50).device_sync(10, 40)
    assert picture(builder.op("op", 69, 20).device_sync(70, 15)).blocked_ms_per_step == pytest.approx(0.055)


def test_without_runtime_calls_it_is_unknown_how_long_the_host_is_blocked() -> None:
    made = picture(TraceBuilder().kernel("gemm", 10, 20))
    assert made.blocked_ms_per_step is None


def test_exposed_parts_are_what_no_compute_covers() -> None:
    builder = (
        TraceBuilder()
        .step(0, 100)
        .launch("gemm", call=(1, 2), runs=(30, 20), stream=7)
        .copy("HtoD", call=(5, 2), runs=(20, 50), stream=9, memory="pinned", bytes=1000)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40, 20, stream=11)
    )
    made = picture(builder)
    assert spans(made, "exposed", "stream 9") == [(20, 10), (50, 20)]
    assert spans(made, "exposed", "stream 11") == [(50, 10)]
    assert spans(made, "exposed", "stream 7") == []


def test_a_bubble_names_its_cause_and_the_wait_behind_it() -> None:
    made = picture(item_read().launch("next", call=(170, 3), runs=(180, 10)))
    bubble = max(of(made, "idle"), key=lambda one: one.dur)
    assert (bubble.lane, bubble.ts, bubble.dur) == ("idle", 51 * US, 29 * US)
    assert bubble.name in {"wait", "host work"}
    assert every(made)[bubble.link].kind == "wait"


def test_all_steps_are_drawn_and_a_step_lasts_until_its_device_work_has_ended() -> None:
    builder = TraceBuilder()
    for start in (0, 100, 200):
        builder.step(start, 100).launch(f"k{start}", call=(start + 90, 5), runs=(start + 110, 20))
    made = picture(builder)
    assert [(step.ts // US, step.dur // US, step.until // US) for step in made.steps] == [
        (0, 100, 130), (100, 100, 230), (200, 100, 330)
    ]  # fmt: skip
    assert {"k0", "k100", "k200"} <= set(made.names)
    assert (made.start_ns, made.dur) == (0, 330 * US)


def test_without_steps_the_whole_trace_is_drawn() -> None:
    made = picture(TraceBuilder().launch("a", call=(50, 5), runs=(60, 10)).launch("b", call=(500, 5), runs=(600, 10)))
    assert made.steps == ()
    assert made.dur == 560 * US
    assert {"a", "b"} <= set(made.names)


def many(n: int) -> TraceBuilder:
    builder = TraceBuilder().step(0, 10 * n)
    for i in range(n):
        builder.launch(f"kernel {i % 3}", call=(10 * i, 2), runs=(10 * i + 4, 3))
    return builder


def test_too_many_events_are_merged_and_none_is_lost() -> None:
    made = picture(many(500), max_items=150)
    bars = [bar for bar in every(made) if bar.kind != "idle"]
    assert len(every(made)) <= 150
    assert sum(bar.merged for bar in bars) == made.events == 1000
    assert sum(bar.merged for bar in bars if bar.merged > 1) == made.events_merged
    assert sum(bar.busy for bar in bars) == 500 * 5 * US
    assert all(bar.busy <= bar.dur for bar in bars)


def test_links_lead_to_the_bar_that_stands_for_the_kernel() -> None:
    made = picture(many(500), max_items=150)
    bars = every(made)
    launches = of(made, "launch")
    assert launches
    assert all(bars[bar.link].kind == "compute" for bar in launches)


def test_what_fits_is_not_merged() -> None:
    made = picture(many(40), max_items=200)
    assert all(bar.merged == 1 for bar in every(made))
    assert made.events_merged == 0


def test_the_first_steps_keep_every_event_and_the_others_are_merged() -> None:
    builder = TraceBuilder()
    for step in range(40):
        start = 100_000 * step
        builder.step(start, 100_000)
        for i in range(20):
            builder.launch("k", call=(start + 50 * i, 2), runs=(start + 50 * i + 4, 3))
    made = picture(builder, max_items=500)
    last = made.steps[2]
    early = [bar for bar in every(made) if bar.ts + bar.dur <= last.ts + last.dur and bar.kind != "idle"]
    late = [bar for bar in every(made) if bar.ts >= last.until and bar.kind != "idle"]
    assert len(early) == 3 * 40 and all(bar.merged == 1 for bar in early)
    assert sum(bar.merged for bar in late) == 37 * 40 and len(late) < 37 * 20


def test_around_the_first_wait_of_a_line_every_event_is_kept_however_late_it_comes() -> None:
    builder = many(2000).step(20_000, 200_000)
    for i in range(2000):
        builder.launch("late", call=(30_000 + 10 * i, 2), runs=(30_000 + 10 * i + 4, 3))
    builder.op("aten::item", 120_000, 60).copy("DtoH", call=(120_005, 2), runs=(120_010, 2), memory="pinned", bytes=4)
    builder.launch("beside", call=(120_070, 2), runs=(120_080, 1)).launch(
        "beside", call=(120_083, 2), runs=(120_090, 1)
    )
    made = picture(builder.stream_sync(120_010, 40), max_items=400)
    assert made.events_merged > 7000
    assert [bar.merged for bar in every(made) if bar.name == "beside"] == [1, 1]


def test_waits_of_different_lines_are_never_merged() -> None:
    builder = TraceBuilder().step(0, 40_000)
    for i in range(400):
        builder.op(("aten::item", "aten::nonzero")[i % 2], 100 * i, 60)
        builder.copy("DtoH", call=(100 * i + 5, 2), runs=(100 * i + 10, 2), memory="pinned", bytes=4)
        builder.stream_sync(100 * i + 10, 40)
        builder.warning(100 * i + 65, ("train.py", 10 + i % 2, "step", ("x.item()", "x.nonzero()")[i % 2]))
    made = picture(builder.steps(0, 40_000), max_items=60)
    waits = of(made, "wait")
    assert sum(bar.merged for bar in waits) == 400 > len(waits)
    assert {(bar.spot.line, bar.spot.findings[0]) for bar in waits if bar.spot} == {(10, 1), (11, 0)}
    assert all(bar.spot for bar in waits)


def test_threads_of_one_name_are_told_apart() -> None:
    builder = TraceBuilder().step(0, 100)
    for tid in (1, 2):
        builder.on(tid, "worker").launch("k", call=(10 * tid, 2), runs=(10 * tid + 5, 2))
    assert {one.label for one in picture(builder).lanes if one.place == "host"} == {"worker 1", "worker 2"}


def test_a_picture_travels_as_json() -> None:
    made = picture(item_read())
    assert msgspec.json.decode(msgspec.json.encode(made), type=Lanes) == made


def test_times_that_no_browser_can_hold_are_no_reason_to_fail() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 2), runs=(5, 1))
    builder.events[-1]["ts"] = 3.9e15
    assert picture(builder).dur > 2**53


def test_the_thread_of_the_backward_pass_is_called_autograd_whatever_the_trace_calls_it() -> None:
    builder = (
        TraceBuilder()
        .on(1, "python")
        .launch("k", call=(1, 1), runs=(3, 1))
        .op("aten::linear", 0, 10)
        .op("AddmmBackward0", 12, 2)
    )
    builder.on(2, "python").op("autograd::engine::evaluate_function: AddmmBackward0", 10, 9).op("aten::add", 20, 0.5)
    builder.on(3, "python").op("ReluBackward1", 10, 5).op("torch::autograd::AccumulateGrad", 16, 2)
    builder.on(4, "pt_autograd_0").op("aten::add", 10, 5)
    labels = {lane.tid: lane.label for lane in picture(builder).lanes if lane.place == "host"}
    assert labels == {1: "python", 2: "autograd 2", 3: "autograd 3", 4: "autograd 4"}


def test_a_thread_of_a_recording_that_launches_and_is_not_pythons_is_autograds() -> None:
    builder = TraceBuilder().on(1, "MainThread").launch("k", call=(1, 1), runs=(3, 1))
    builder.on(2).launch("k", call=(5, 1), runs=(7, 1)).on(3).stream_sync(9, 1)
    foreign = {lane.tid: lane.label for lane in picture(builder).lanes if lane.place == "host"}
    assert foreign == {1: "MainThread", 2: "thread 2", 3: "thread 3"}
    recorded = {lane.tid: lane.label for lane in picture(builder.recording(0, 20)).lanes if lane.place == "host"}
    assert recorded == {1: "MainThread", 2: "autograd", 3: "thread 3"}


def test_the_names_of_compiled_kernels_have_their_lines() -> None:
    trace = TraceBuilder().recording(0, 100).phase("train", steps=1).run()
    trace.kernel("triton_poi_fused_0", 10, 20).kernel("cutlass", 40, 5)
    trace.kernel_line("triton_poi_fused_0", ("train.py", 9, "step", "model(x)"))
    trace.kernel_line("triton_not_run", ("train.py", 9, "step", "model(x)"))
    made = picture(trace)
    (known,) = made.kernel_lines
    assert made.names[known.name] == "triton_poi_fused_0"
    (line,) = known.lines
    assert (line.file, line.line, line.function, line.expression, line.inside) == (
        "train.py", 9, "step", "model(x)", None,
    )  # fmt: skip
