"""The picture of a timeline, on traces that can be drawn on paper."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.lanes import Item, Lane, Lanes, lanes
from syncscope.timeline.rows import KINDS
from tests.builders import TraceBuilder

US = 1_000


def picture(builder: TraceBuilder, steps: int = 3, max_items: int = 9_000) -> Lanes:
    return lanes(Timeline(builder.trace()), steps, max_items)


def lane(made: Lanes, label: str) -> Lane:
    return next(one for one in made.lanes if one.label == label)


def shown(made: Lanes, one: Lane) -> list[tuple[str, str, int, int]]:
    """(kind, name, ts, dur) of a lane's items, in µs."""
    return [(made.kinds[i.kind], made.names[i.name], i.ts // US, i.dur // US) for i in one.items]


def every(made: Lanes) -> list[Item]:
    """All items in the order that links count."""
    return [item for one in made.lanes for item in one.items]


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
    assert shown(made, lane(made, "stream 7")) == [("compute", "gemm", 15, 30), ("DtoH", made.names[-1], 46, 5)]


def test_a_thread_shows_its_outermost_ops_launches_and_waits() -> None:
    made = picture(item_read())
    assert shown(made, lane(made, "main")) == [
        ("op", "aten::mm", 5, 10),
        ("launch", "cudaLaunchKernel", 7, 3),
        ("op", "aten::item", 20, 40),
        ("launch", "cudaMemcpyAsync", 22, 3),
        ("wait", "cudaStreamSynchronize", 26, 30),
    ]


def test_step_markers_are_steps_and_nothing_else() -> None:
    made = picture(item_read().annotation("ProfilerStep#0", 100, 100).annotation("Optimizer.step#SGD.step", 165, 20))
    names = [made.names[item.name] for item in lane(made, "main").items]
    assert "Optimizer.step#SGD.step" in names
    assert not any(name.startswith("ProfilerStep#") for name in names)


def test_a_launch_leads_to_its_kernel_and_a_wait_to_its_copy() -> None:
    made = picture(item_read())
    items = every(made)
    links = {made.names[i.name]: made.names[items[i.link].name] for i in items if i.link is not None}
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
    wait = next(item for item in items if made.kinds[item.kind] == "wait")
    assert wait.link is not None
    assert made.names[items[wait.link].name] == "long"


def test_a_device_wait_may_wait_for_work_launched_before_the_trace() -> None:
    builder = TraceBuilder().step(0, 100).kernel("from before", 5, 50).op("op", 1, 60).device_sync(2, 55)
    made = picture(builder.launch("after", call=(70, 2), runs=(75, 5)))
    items = every(made)
    wait = next(item for item in items if made.kinds[item.kind] == "wait")
    assert wait.link is not None
    assert made.names[items[wait.link].name] == "from before"


def test_a_wait_on_an_empty_device_leads_nowhere() -> None:
    builder = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).op("op", 49, 30).device_sync(50, 2)
    wait = next(item for item in every(picture(builder)) if item.kind == KINDS.index("wait"))
    assert wait.link is None


def test_a_pageable_copy_blocks_in_its_own_call() -> None:
    builder = TraceBuilder().step(0, 100).copy("HtoD", call=(10, 40), runs=(15, 30), memory="pageable", bytes=1 << 20)
    made = picture(builder)
    host = next(one for one in made.lanes if one.place == "host").items[0]
    assert made.kinds[host.kind] == "wait"
    assert (host.bytes, host.memory) == (1 << 20, "pageable")
    assert made.wait_ms_per_step == pytest.approx(0.040)


def test_host_wait_time_is_a_mean_over_steps_and_counts_no_wait_outside_them() -> None:
    builder = TraceBuilder().step(0, 100).step(100, 100)
    for start in (10, 110, 310):
        builder.op("aten::item", start, 30).copy("DtoH", call=(start, 2), runs=(start + 5, 3), memory="pinned", bytes=4)
        builder.stream_sync(start + 3, 20)
    assert picture(builder).wait_ms_per_step == pytest.approx(0.020)


def test_without_runtime_calls_the_wait_time_is_unknown() -> None:
    made = picture(TraceBuilder().kernel("gemm", 10, 20))
    assert made.wait_ms_per_step is None


def test_exposed_parts_are_what_no_compute_covers() -> None:
    builder = (
        TraceBuilder()
        .step(0, 100)
        .launch("gemm", call=(1, 2), runs=(30, 20), stream=7)
        .copy("HtoD", call=(5, 2), runs=(20, 50), stream=9, memory="pinned", bytes=1000)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40, 20, stream=11)
    )
    made = picture(builder)
    assert lane(made, "stream 9").exposed == ((20 * US, 10 * US), (50 * US, 20 * US))
    assert lane(made, "stream 11").exposed == ((50 * US, 10 * US),)
    assert lane(made, "stream 7").exposed == ()


def test_a_bubble_names_its_cause_and_the_wait_behind_it() -> None:
    made = picture(item_read().launch("next", call=(170, 3), runs=(180, 10)))
    bubble = max(made.bubbles, key=lambda one: one.dur)
    assert (bubble.ts, bubble.dur) == (51 * US, 29 * US)
    waits = [number for number, item in enumerate(every(made)) if made.kinds[item.kind] == "wait"]
    assert bubble.cause in {"wait", "host work"}
    assert bubble.link == waits[0]


def test_only_the_first_steps_are_drawn_with_the_device_work_they_launched() -> None:
    builder = TraceBuilder()
    for start in (0, 100, 200):
        builder.step(start, 100).launch(f"k{start}", call=(start + 90, 5), runs=(start + 110, 20))
    made = picture(builder, steps=2)
    assert (len(made.steps), made.steps_recorded) == (2, 3)
    assert "k100" in made.names
    assert "k200" not in made.names
    assert made.dur == 230 * US


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
    made = picture(many(500), max_items=100)
    items = every(made)
    assert len(items) <= 100
    assert sum(item.merged for item in items) == made.events == 1000
    assert sum(item.busy for item in items) == 500 * 5 * US
    assert all(item.busy <= item.dur for item in items)


def test_links_lead_to_the_bar_that_stands_for_the_kernel() -> None:
    made = picture(many(500), max_items=100)
    items = every(made)
    launches = [item for item in items if made.kinds[item.kind] == "launch"]
    assert all(item.link is not None and made.kinds[items[item.link].kind] == "compute" for item in launches)


def test_what_fits_is_not_merged() -> None:
    assert all(item.merged == 1 for item in every(picture(many(40), max_items=100)))


def test_waits_of_different_lines_are_never_merged() -> None:
    builder = TraceBuilder().step(0, 40_000)
    for i in range(400):
        builder.op(("aten::item", "aten::nonzero")[i % 2], 100 * i, 60)
        builder.copy("DtoH", call=(100 * i + 5, 2), runs=(100 * i + 10, 2), memory="pinned", bytes=4)
        builder.stream_sync(100 * i + 10, 40)
        builder.warning(100 * i + 65, ("train.py", 10 + i % 2, "step", ("x.item()", "x.nonzero()")[i % 2]))
    made = picture(builder.steps(0, 40_000), max_items=60)
    waits = [item for item in every(made) if made.kinds[item.kind] == "wait"]
    assert sum(item.merged for item in waits) == 400
    assert {made.spots[item.spot].line for item in waits if item.spot is not None} == {10, 11}
    for item in waits:
        assert item.spot is not None
        assert made.spots[item.spot].expression == ("x.item()" if made.spots[item.spot].line == 10 else "x.nonzero()")


def test_threads_of_one_name_are_told_apart() -> None:
    builder = TraceBuilder().step(0, 100)
    for tid in (1, 2):
        builder.on(tid, "worker").launch("k", call=(10 * tid, 2), runs=(10 * tid + 5, 2))
    assert {one.label for one in picture(builder).lanes if one.place == "host"} == {"worker 1", "worker 2"}


def test_a_picture_travels_as_json() -> None:
    made = picture(item_read())
    assert msgspec.json.decode(msgspec.json.encode(made), type=Lanes) == made
