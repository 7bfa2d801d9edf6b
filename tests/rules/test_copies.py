"""The rules about copies: memory, pinning, overlap."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.findings import Finding
from tests.builders import TraceBuilder
from tests.rules.scenes import blind, chain, findings, line, lines_of

COPY = line(17, "x.to(device, non_blocking=True)")


class TestPageableCopy:
    def test_a_copy_that_only_looks_asynchronous_costs_the_time_in_its_call(self):
        builder = TraceBuilder().recording(0, 1000).entry("Tensor.to", 8, 102, COPY)
        builder.copy("HtoD", call=(10, 90), runs=(40, 50), memory="pageable", bytes=1 << 20)
        found = findings(builder, "CPY201")
        assert lines_of(found) == [17]
        assert (found[0].bytes, found[0].stall_ms_per_step) == (1 << 20, pytest.approx(0.090))
        assert "looks asynchronous" in found[0].message

    def test_pinned_memory_is_clean(self):
        assert findings(chain("aten::to", "aten::copy_", copy="HtoD", memory="pinned"), "CPY201") == []

    def test_the_small_copy_inside_a_read_is_no_copy_of_the_programs(self):
        assert findings(chain("aten::item", memory="pageable"), "CPY201") == []

    def test_rocm_does_not_say_so_nothing_is_claimed(self):
        builder = TraceBuilder(vendor="hip").op("aten::copy_", 5, 80)
        builder.copy("HtoD", call=(10, 40), runs=(30, 10), memory="host", name="hipMemcpyWithStream")
        assert findings(builder, "CPY201") == []
        assert "ROCm" in blind(builder)["CPY201"]


class TestPinThenCopy:
    def scene(self) -> TraceBuilder:
        pin = line(17, "x.pin_memory()")
        builder = TraceBuilder().recording(0, 1000).entry("Tensor.pin_memory", 8, 212, pin)
        builder.op("aten::pin_memory", 10, 200).op("aten::_pin_memory", 12, 190).entry("Tensor.to", 214, 246, COPY)
        return builder.op("aten::to", 218, 26).copy("HtoD", call=(220, 5), runs=(230, 60), bytes=4096)

    def test_costs_the_time_that_pinning_took(self):
        found = findings(self.scene(), "CPY202")
        assert lines_of(found) == [17]
        assert (found[0].stall_ms, found[0].bytes, found[0].per_step) == (pytest.approx(0.2), 4096, 1)

    def test_it_knows_the_copy_that_follows(self):
        pin, copy = findings(self.scene(), "CPY202", "OVL301")
        assert copy.fingerprint in pin.related

    def test_pinned_once_and_copied_later_is_clean(self):
        builder = TraceBuilder().recording(0, 1000).op("aten::_pin_memory", 12, 190)
        builder.launch("k", call=(205, 5), runs=(211, 5)).copy("HtoD", call=(220, 5), runs=(230, 60))
        assert findings(builder, "CPY202") == []

    def test_without_ops_and_records_it_cannot_see(self):
        assert "CPY202" in blind(TraceBuilder().copy("HtoD", call=(220, 5), runs=(230, 60)))


def quadrant(*, pinned: bool, side: bool, blocking: bool = False, compute_us: float = 300) -> list[Finding]:
    """A step of the pinned-memory tutorial: a copy of 100 µs, then compute of 300 µs."""
    memory, stream = ("pinned" if pinned else "pageable"), (9 if side else 7)
    begins = 30.0 if side and pinned else 150.0
    builder = TraceBuilder().recording(0, 500)
    builder.op("aten::copy_", 5, 140 if not pinned or blocking else 20)
    builder.copy("HtoD", call=(10, 110 if not pinned else 8), runs=(20, 100), memory=memory, stream=stream)
    if blocking:
        builder.stream_sync(125, 15, stream=stream)
    else:
        builder.entry("Tensor.to", 4, 146 if not pinned else 27, COPY)
    if compute_us:
        builder.launch("gemm", call=(begins - 8, 5), runs=(begins, compute_us), stream=7)
    return findings(builder, "OVL301")


class TestCopyNotOverlapped:
    @pytest.mark.parametrize("side", [False, True])
    def test_pageable_memory_comes_first_whatever_the_stream(self, side: bool):
        found = quadrant(pinned=False, side=side)
        assert "pageable memory" in found[0].message
        assert found[0].exposed_ms_per_step == pytest.approx(0.1)

    def test_a_host_that_waits(self):
        assert "the host waits" in quadrant(pinned=True, side=False, blocking=True)[0].message

    def test_pinned_on_the_stream_that_computes(self):
        assert "same stream" in quadrant(pinned=True, side=False)[0].message

    def test_pinned_on_a_side_stream_overlaps(self):
        assert quadrant(pinned=True, side=True) == []

    def test_nothing_to_hide_behind_is_a_note(self):
        found = quadrant(pinned=True, side=True, compute_us=0)
        assert found[0].severity == "note"
        assert "nothing was queued" in found[0].message

    def test_a_copy_engine_held_by_another_copy(self):
        builder = TraceBuilder().recording(0, 500).launch("gemm", call=(0, 2), runs=(400, 90))
        builder.copy("HtoD", call=(5, 5), runs=(20, 100), stream=8).copy(
            "HtoD", call=(12, 5), runs=(121, 200), stream=9
        )
        assert "copy engine" in findings(builder, "OVL301")[0].message

    def test_both_directions_share_the_engine_of_a_device_that_has_but_one(self):
        builder = TraceBuilder().recording(0, 500, copy_engines=1).launch("gemm", call=(0, 2), runs=(400, 90))
        builder.copy("DtoH", call=(5, 5), runs=(20, 100), stream=8).copy(
            "HtoD", call=(12, 5), runs=(121, 200), stream=9
        )
        assert "copy engine" in findings(builder, "OVL301")[1].message

    def test_each_direction_has_an_engine_of_its_own_elsewhere(self):
        builder = TraceBuilder().recording(0, 500, copy_engines=2).launch("gemm", call=(0, 2), runs=(400, 90))
        builder.copy("DtoH", call=(5, 5), runs=(20, 100), stream=8).copy(
            "HtoD", call=(12, 5), runs=(121, 200), stream=9
        )
        assert not any("copy engine" in finding.message for finding in findings(builder, "OVL301"))

    def prefetch(self, *, launched: float) -> TraceBuilder:
        """A pinned copy on a stream of its own, during which the host waits; compute is launched at some time."""
        builder = TraceBuilder().recording(0, 500).launch("gemm", call=(0, 2), runs=(5, 100))
        builder.entry("Tensor.to", 104, 119, COPY).copy("HtoD", call=(105, 5), runs=(120, 100), stream=9)
        wait = line(19, "copied.synchronize()")
        builder.event_sync(124, 95).entry("Event.synchronize", 123, 220, wait)
        return builder.launch("gemm", call=(launched, 2), runs=(230, 200))

    def test_the_wait_that_keeps_compute_away_is_named_and_related(self):
        wait, copy = findings(self.prefetch(launched=225), "SYN105", "OVL301")
        assert copy.severity == "warning"
        assert "copied.synchronize() (train.py:19)" in copy.message
        assert copy.related == (wait.fingerprint,)

    def test_a_wait_is_no_obstacle_where_compute_was_queued_before_it(self):
        found = findings(self.prefetch(launched=121), "OVL301")[0]
        assert (found.severity, found.related) == ("note", ())

    def test_copies_under_a_hundredth_of_the_step_are_not_spoken_of(self):
        builder = TraceBuilder().step(0, 10_000).copy("HtoD", call=(10, 5), runs=(20, 90), memory="pageable")
        assert findings(builder, "OVL301") == []

    def test_the_copy_inside_a_read_is_not_spoken_of(self):
        builder = TraceBuilder().step(0, 100).op("aten::item", 5, 80)
        builder.copy("DtoH", call=(10, 5), runs=(20, 50)).stream_sync(16, 60)
        assert findings(builder, "OVL301") == []


OUT, IN = line(21, "host.copy_(result, non_blocking=True)"), line(22, "batch.copy_(source, non_blocking=True)")


def both_ways(
    *,
    engines: int | None = 2,
    streams: tuple[int, int] = (9, 9),
    second: tuple[float, float] = (124, 200),
    launched: float = 20,
    memory: str = "pinned",
    compute: tuple[float, float] = (400, 90),
) -> TraceBuilder:
    """Out for 100 µs, then in for 200 µs, then compute."""
    builder = TraceBuilder().recording(0, 500, copy_engines=engines)
    builder.entry("Tensor.copy_", 4, 16, OUT).copy("DtoH", call=(5, 5), runs=(20, 100), stream=streams[0])
    builder.entry("Tensor.copy_", launched - 1, launched + 8, IN)
    builder.copy("HtoD", call=(launched, 5), runs=second, stream=streams[1], memory=memory)
    return builder.launch("gemm", call=(330, 2), runs=compute)


class TestCopiesSerialised:
    def test_the_second_copy_of_a_shared_stream_costs_the_shorter_of_the_two(self):
        found = findings(both_ways(), "OVL304")
        assert lines_of(found) == [22]
        assert (found[0].exposed_ms_per_step, found[0].per_step) == (pytest.approx(0.1), 1)

    @pytest.mark.parametrize(
        "clean",
        [
            {"streams": (8, 9), "second": (22, 200)},
            {"engines": 1},
            {"second": (160, 200)},
            {"launched": 122},
            {"memory": "pageable"},
            {"compute": (10, 400)},
            {"streams": (7, 7)},
        ],
        ids=["two streams", "one engine", "a pause", "launched late", "pageable", "hidden", "stream that computes"],
    )
    def test_clean(self, clean: dict[str, Any]):
        assert findings(both_ways(**clean), "OVL304") == []

    def test_a_kernel_between_the_copies_keeps_them_apart(self):
        builder = both_ways(second=(126, 200)).launch("cast", call=(12, 2), runs=(121, 4), stream=9)
        assert findings(builder, "OVL304") == []

    def test_where_the_engines_are_not_known_it_cannot_see(self):
        assert "how many copies" in blind(both_ways(engines=None))["OVL304"]
        assert "OVL304" not in blind(both_ways(engines=None, second=(160, 200)))

    def test_both_directions_seen_at_once_are_two_engines(self):
        builder = both_ways(engines=None)
        builder.copy("DtoH", call=(30, 5), runs=(200, 50), stream=8)
        assert lines_of(findings(builder, "OVL304")) == [22]
