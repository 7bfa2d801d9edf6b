"""The rules about copies: memory, pinning, overlap."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.schema.findings import Finding
from syncscope.schema.recording import Bare, RecordedLoader
from tests.builders import TID, TraceBuilder
from tests.rules.scenes import blind, chain, findings, line, lines_of, waiting

COPY = line(17, "x.to(device, non_blocking=True)")


def read_one_by_one(size: int) -> TraceBuilder:
    """Values that are copied to the host one by one, each as it is needed."""
    builder = TraceBuilder()
    for number in range(20):
        at = 50 * number
        builder.launch("k", call=(at, 4), runs=(at + 5, 5)).op("aten::to", at + 6, 30).op("aten::copy_", at + 7, 28)
        builder.copy("DtoH", call=(at + 8, 8), runs=(at + 12, 2), memory="pageable", bytes=size)
        builder.stream_sync(at + 17, 10)
    return builder.launch("k", call=(1005, 4), runs=(1010, 10))


def test_values_that_are_copied_one_by_one_are_better_copied_at_once() -> None:
    (found,) = findings(read_one_by_one(8), "SYN101")
    assert "copy all of them to the host at once" in found.fix
    (found,) = findings(read_one_by_one(4096), "SYN101")
    assert "just before the values are read" in found.fix


@pytest.mark.parametrize(("more", "severity"), [(0, "warning"), (1, "error")])
def test_a_copy_that_is_all_a_trace_asks_of_the_device_is_a_warning(more: int, severity: str) -> None:
    builder = TraceBuilder()
    for number in range(1 + more):
        at = 1000 * number
        builder.op("aten::to", at, 900).copy("HtoD", call=(at + 8, 400), runs=(at + 12, 390), memory="pageable")
        builder.stream_sync(at + 410, 400, record=True)
    (found,) = findings(builder, "SYN101")
    assert (found.severity, found.count) == (severity, 1 + more)


@pytest.mark.parametrize(("framed", "counts"), [(True, [3]), (False, [2, 1])])
def test_copies_of_one_function_are_one_finding_whether_contiguous_or_not(framed: bool, counts: list[int]) -> None:
    builder = TraceBuilder()
    for number, nested in enumerate((False, True, False)):
        at = 100 * number
        builder.op("aten::to", at, 60).op("aten::copy_", at + 1, 58)
        if nested:
            builder.op("aten::copy_", at + 2, 55)
        builder.copy("DtoH", call=(at + 8, 40), runs=(at + 20, 20), memory="pageable").stream_sync(at + 49, 6)
    if framed:
        builder.frame("model/attention.py", 247, "forward", 0, 400)
    assert [found.count for found in findings(builder, "SYN101")] == counts


def test_nothing_can_run_beside_a_value_that_the_host_waits_for() -> None:
    assert findings(read_one_by_one(8), "OVL301") == []
    assert len(findings(read_one_by_one(4096), "OVL301")) == 1


class TestPageableCopy:
    def test_a_copy_that_only_looks_asynchronous_costs_the_time_in_its_call(self):
        builder = TraceBuilder().recording(0, 1000).entry("Tensor.to", 8, 102, COPY)
        builder.copy("HtoD", call=(10, 90), runs=(40, 50), memory="pageable", bytes=1 << 20)
        found = findings(builder, "CPY201")
        assert lines_of(found) == [17]
        assert (found[0].bytes, found[0].stall_ms_per_step) == (1 << 20, pytest.approx(0.090))
        assert "looks asynchronous" in found[0].message

    @pytest.mark.parametrize(
        ("runs", "part"),
        [
            ((110, 120), "the driver took the bytes at once"),
            ((19.4, 119.4), "the driver took the bytes at once"),  # whole µs round to this
            ((15, 120), "one of 2 calls holds the host"),
            ((15, 115), "the host sits in the call"),
        ],
    )
    def test_a_call_that_returns_before_its_copy_begins_held_nobody(self, runs: tuple[float, float], part: str):
        builder = TraceBuilder().recording(0, 1000)
        for at, begins in zip((10, 110), runs, strict=True):
            builder.entry("Tensor.to", at - 1, at + 11, COPY)
            builder.copy("HtoD", call=(at, 10), runs=(begins, 5), memory="pageable", bytes=1024)
        (found,) = findings(builder, "CPY201")
        assert part in found.message

    def test_copies_of_one_line_of_which_some_wait_are_told_apart(self):
        builder = TraceBuilder().op("aten::to", 5, 60).op("aten::copy_", 6, 58)
        builder.copy("HtoD", call=(10, 15), runs=(26, 2), memory="pageable", bytes=16)
        builder.op("aten::to", 105, 60).op("aten::copy_", 106, 58)
        builder.copy("HtoD", call=(110, 15), runs=(126, 2), memory="pageable", bytes=8).stream_sync(126, 9)
        (found,) = findings(builder, "CPY201")
        assert found.count == 2
        assert "the host waits for 1 of 2, as another finding says, and the driver took" in found.message
        assert "not held" not in found.message

    def test_a_few_bytes_that_no_loader_brings_are_no_batch_to_be_pinned(self):
        builder = TraceBuilder().recording(0, 1000).op("aten::to", 5, 60)
        builder.copy("HtoD", call=(10, 15), runs=(16, 2), memory="pageable", bytes=8)
        (found,) = findings(builder, "CPY201")
        assert "DataLoader" not in found.fix and "once outside the loop" in found.fix

    def test_what_the_lines_before_made_on_the_host_is_made_on_the_device(self):
        builder = TraceBuilder().recording(0, 1000).source("train.py", 16, "x = torch.zeros(n)")
        builder.entry("Tensor.to", 4, 70, COPY).op("aten::to", 5, 60)
        builder.copy("HtoD", call=(10, 15), runs=(16, 20), memory="pageable", bytes=6 << 20).stream_sync(26, 12)
        found = findings(builder.launch("k", call=(70, 5), runs=(76, 50)), "SYN101", "CPY201")
        assert len(found) == 2 and all(
            one.fix.startswith("Make it on the device, which needs no copy") for one in found
        )

    @pytest.mark.parametrize("pinned", [True, False])
    @pytest.mark.parametrize("blocks", [True, False])
    def test_where_the_loader_pins_a_pageable_batch_was_made_from_it(self, pinned: bool, blocks: bool):
        bare = Bare(steps_ns=(1_000_000,) * 5, drain_ns=1000, loader=RecordedLoader(workers=4, pinned=pinned))
        builder = TraceBuilder().recording(0, 1000, bare=bare).entry("DataLoader", 1, 4, line(9, "next(batches)"))
        builder.op("aten::to", 5, 60).copy("HtoD", call=(10, 15), runs=(16, 20), memory="pageable", bytes=6 << 20)
        if blocks:
            builder.stream_sync(26, 12)
        found = findings(builder.launch("k", call=(70, 5), runs=(76, 50)), "SYN101", "CPY201")
        assert {one.rule for one in found} == ({"SYN101", "CPY201"} if blocks else {"CPY201"})
        assert all(one.fix.startswith("Do in collate_fn, or on the device") == pinned for one in found)

    def test_a_value_that_is_read_where_the_wait_was_not_recorded_is_not_to_be_pinned(self):
        builder = TraceBuilder().step(0, 1000).op("aten::item", 5, 60).op("aten::_local_scalar_dense", 6, 50)
        builder.copy("DtoH", call=(10, 15), runs=(16, 2), memory="pageable", bytes=1)
        (found,) = findings(builder, "CPY201")
        assert "read at once" in found.message
        assert "loss.detach()" in found.fix

    def test_pinned_memory_is_clean(self):
        assert findings(chain("aten::to", "aten::copy_", copy="HtoD", memory="pinned"), "CPY201") == []

    def test_the_small_copy_inside_a_read_is_no_copy_of_the_programs(self):
        assert findings(chain("aten::item", memory="pageable"), "CPY201") == []

    def test_rocm_does_not_say_so_nothing_is_claimed(self):
        builder = TraceBuilder(vendor="hip").op("aten::copy_", 5, 80)
        builder.copy("HtoD", call=(10, 40), runs=(30, 10), memory="host", name="hipMemcpyWithStream")
        assert findings(builder, "CPY201") == []
        assert "ROCm" in blind(builder)["CPY201"]

    def test_one_large_copy_among_many_small_ones_makes_no_batches_of_them(self):
        def copies(*sizes: int) -> TraceBuilder:
            builder = TraceBuilder()
            for number, size in enumerate(sizes):
                at = 100 * number
                builder.op("aten::to", at, 30).op("aten::copy_", at + 1, 28)
                builder.copy("HtoD", call=(at + 2, 5), runs=(at + 8, 3), memory="pageable", bytes=size)
                builder.stream_sync(at + 10, 3)
            return builder

        (found,) = findings(copies(2 << 20, *[16] * 29), "SYN101")
        assert "DataLoader" not in found.fix and "on the device" in found.fix
        (found,) = findings(copies(2 << 20, *[16] * 4), "SYN101")
        assert "DataLoader" in found.fix


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

    def test_a_loader_without_workers_is_not_told_to_pin(self):
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        builder = TraceBuilder().steps(0, 1000).annotation(loader, 5, 208).op("aten::pin_memory", 10, 200)
        builder.op("aten::to", 218, 26).copy("HtoD", call=(220, 5), runs=(230, 60), bytes=4096)
        (found,) = findings(builder, "CPY202")
        assert "num_workers=1 or more" in found.fix

    @pytest.mark.parametrize(("size", "loader"), [(4096, False), (2 << 20, True)])
    def test_a_loader_is_advised_only_for_what_may_be_a_batch(self, size: int, loader: bool):
        builder = TraceBuilder().steps(0, 1000).op("aten::pin_memory", 10, 200).op("aten::to", 218, 26)
        (found,) = findings(builder.copy("HtoD", call=(220, 5), runs=(230, 60), bytes=size), "CPY202")
        assert ("DataLoader" in found.fix) == loader

    def test_a_few_bytes_that_no_loader_brings_need_no_loader(self):
        for size, told in ((64, False), (1 << 20, True)):
            builder = TraceBuilder().steps(0, 1000).op("aten::pin_memory", 10, 200)
            builder.op("aten::to", 218, 26).copy("HtoD", call=(220, 5), runs=(230, 60), bytes=size)
            (found,) = findings(builder, "CPY202")
            assert ("DataLoader" in found.fix, "buffer pinned once" in found.fix) == (told, True)

    def test_without_ops_and_records_it_cannot_see(self):
        assert "CPY202" in blind(TraceBuilder().copy("HtoD", call=(220, 5), runs=(230, 60)))


class TestSmallCopies:
    def scene(self, many: int, *, size: int = 1024, steps: int = 2, lines: int = 1, threads: int = 1) -> TraceBuilder:
        """Steps of 2 ms with ``many`` pinned copies each, spread over ``lines`` lines and ``threads``."""
        builder = TraceBuilder().recording(*(2000 * i for i in range(steps + 1)))
        for start in range(0, 2000 * steps, 2000):
            for number in range(many):
                at = start + 20 * number
                builder.on(TID + number % threads)
                builder.entry("Tensor.to", at, at + 18, line(13 + number % lines, "x.to('cuda', non_blocking=True)"))
                builder.copy("HtoD", call=(at + 2, 5), runs=(at + 9, 2), bytes=size)
        return builder

    def test_eight_a_step_at_one_line_are_one_finding(self):
        found = findings(self.scene(8), "CPY203")
        assert lines_of(found) == [13]
        assert (found[0].count, found[0].per_step, found[0].bytes) == (16, 8, 16 * 1024)
        assert "8 copies a step of 1,024 bytes" in found[0].message
        assert "Stack them" in found[0].fix

    @pytest.mark.parametrize(
        "scene",
        [{"many": 7}, {"many": 8, "size": 1 << 17}, {"many": 14, "lines": 2}, {"many": 14, "threads": 2}],
        ids=["few", "large", "two lines", "two threads"],
    )
    def test_others_are_not(self, scene: dict[str, int]):
        assert findings(self.scene(**scene), "CPY203") == []

    def test_reads_of_values_are_no_copies_of_the_programs(self):
        builder = TraceBuilder().recording(0, 2000)
        for number in range(10):
            at = 10 + 100 * number
            waiting(builder, at, "aten::item").warning(at + 70, line(9, "x.item()"))
        assert findings(builder, "CPY203") == []

    def test_it_says_when_lines_or_steps_are_missing(self):
        assert "no lines" in blind(chain("aten::to", "aten::copy_", copy="HtoD"))["CPY203"]
        assert "no steps" in blind(TraceBuilder().recording().copy("HtoD", call=(2, 5), runs=(9, 2)))["CPY203"]


class TestRoundTrip:
    OUT = line(13, "x[0].cpu()")
    BACK = line(15, "row.to('cuda')")

    def scene(
        self, *, there: int = 32768, back: int = 32768, steps: int = 2, trips: int | None = None, swapped: bool = False
    ) -> TraceBuilder:
        """Steps of 1 ms with a copy to the host and one to the device, the first ``trips`` of them (all)."""
        builder = TraceBuilder().recording(*(1000 * i for i in range(steps + 1)))
        out, into = (self.BACK, self.OUT) if swapped else (self.OUT, self.BACK)
        for step in range(steps if trips is None else trips):
            start = 1000 * step
            builder.op("aten::copy_", start + 8, 60).warning(start + 70, out)
            builder.copy("DtoH", call=(start + 10, 40), runs=(start + 40, 8), memory="pageable", bytes=there)
            builder.stream_sync(start + 52, 5)
            builder.op("aten::copy_", start + 108, 60).warning(start + 170, into)
            builder.copy("HtoD", call=(start + 110, 40), runs=(start + 140, 8), memory="pageable", bytes=back)
            builder.stream_sync(start + 152, 5)
        return builder

    def test_what_leaves_and_comes_back_every_step_is_one_finding_where_it_leaves(self):
        found = findings(self.scene(), "CPY204")
        assert lines_of(found) == [13]
        assert (found[0].count, found[0].per_step) == (2, 1)
        assert "32,768 bytes" in found[0].message
        assert "row.to('cuda') (train.py:15) takes as many back" in found[0].message

    def test_it_is_related_to_the_waits_of_both_copies(self):
        found = findings(self.scene(), "CPY204", "SYN101")
        trip = next(finding for finding in found if finding.rule == "CPY204")
        assert {finding.fingerprint for finding in found if finding.rule == "SYN101"} <= set(trip.related)

    @pytest.mark.parametrize(
        "scene",
        [{"back": 16384}, {"there": 512, "back": 512}, {"swapped": True}, {"steps": 4, "trips": 2}],
        ids=["another size", "a value", "the next round of a loop", "now and then"],
    )
    def test_others_are_none(self, scene: dict[str, int]):
        assert findings(self.scene(**scene), "CPY204") == []  # type: ignore[arg-type]

    def test_of_two_that_leave_the_one_that_comes_back_is_meant(self):
        builder = self.scene()
        for start in (0, 1000):
            builder.op("aten::copy_", start, 7).warning(start + 7.5, line(11, "logged.cpu()"))
            builder.copy("DtoH", call=(start + 1, 2), runs=(start + 2, 1), memory="pageable", bytes=32768)
            builder.stream_sync(start + 4, 2)
        assert lines_of(findings(builder, "CPY204")) == [13]

    def test_a_batch_from_pinned_memory_is_no_return(self):
        builder = self.scene(back=1)
        for start in (0, 1000):
            builder.entry("Tensor.to", start + 300, start + 330, self.BACK)
            builder.copy("HtoD", call=(start + 305, 5), runs=(start + 320, 8), memory="pinned", bytes=32768)
        assert findings(builder, "CPY204") == []

    def test_a_step_between_makes_it_another_step_s_data(self):
        builder = TraceBuilder().recording(0, 100, 200, 300)
        for start in (0, 100):
            builder.op("aten::copy_", start + 8, 60).warning(start + 70, self.OUT)
            builder.copy("DtoH", call=(start + 10, 40), runs=(start + 40, 8), memory="pageable", bytes=4096)
            builder.stream_sync(start + 52, 5).op("aten::copy_", start + 108, 30).warning(start + 139, self.BACK)
            builder.copy("HtoD", call=(start + 110, 20), runs=(start + 120, 8), memory="pageable", bytes=4096)
            builder.stream_sync(start + 132, 5)
        assert findings(builder, "CPY204") == []

    def test_without_lines_it_cannot_tell(self):
        assert "no exact lines" in blind(chain("aten::to", "aten::copy_", copy="HtoD"))["CPY204"]


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

    @pytest.mark.parametrize(("expression", "made"), [("torch.zeros(n).cuda()", True), ("batch.cuda()", False)])
    def test_what_is_made_and_moved_at_once_is_to_be_made_there(self, expression: str, made: bool) -> None:
        builder = TraceBuilder().recording(0, 500).launch("k", call=(1, 2), runs=(4, 5)).op("aten::copy_", 5, 140)
        builder.copy("HtoD", call=(10, 110), runs=(20, 100), memory="pageable").stream_sync(125, 15)
        (found,) = findings(builder.warning(146, line(9, expression)), "OVL301")
        assert found.fix.startswith("Make it on the device" if made else "Pin the host memory")

    def test_no_loader_pins_what_goes_to_the_host(self):
        builder = TraceBuilder().recording(0, 500).op("aten::copy_", 5, 140)
        builder.copy("DtoH", call=(10, 110), runs=(20, 100), memory="pageable").stream_sync(125, 15)
        (found,) = findings(builder, "OVL301")
        assert "DataLoader" not in found.fix
        assert ".to('cpu', non_blocking=True)" in found.fix

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

    def test_what_another_device_has_queued_or_computes_next_is_nothing_beside_the_copy(self):
        queued = self.prefetch(launched=225).launch("elsewhere", call=(121, 2), runs=(230, 200), device=1)
        assert "copied.synchronize() (train.py:19)" in findings(queued, "OVL301")[0].message
        never = self.prefetch(launched=121).launch("elsewhere", call=(225, 2), runs=(230, 200), device=1)
        assert findings(never, "OVL301")[0].severity == "note"

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


def result_read(after: bool, memory: str = "pinned") -> TraceBuilder:
    """A trace without steps that reads its result at the end, or before it goes on."""
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 500))
    builder.op("aten::to", 20, 700).op("aten::_to_copy", 21, 698).op("aten::copy_", 22, 696)
    builder.copy("DtoH", call=(30, 5), runs=(520, 100), memory=memory, bytes=1 << 20).stream_sync(40, 600)
    return builder.launch("gemm", call=(800, 5), runs=(810, 500)) if after else builder


def test_a_result_that_is_read_at_the_end_is_a_note() -> None:
    (found,) = findings(result_read(after=False), "SYN101")
    assert (found.severity, found.fix[:36]) == ("note", "Nothing, where the call ends here: t")
    assert found.message.endswith("; nothing follows it in the trace")


def test_a_result_that_is_read_before_more_is_launched_is_not() -> None:
    (found,) = findings(result_read(after=True), "SYN101")
    assert found.severity == "error" and found.fix.startswith("Copy with .to('cpu'")


def test_the_result_of_the_one_recorded_step_is_a_note_and_of_several_steps_is_not() -> None:
    (one,) = findings(result_read(after=False).step(0, 2000), "SYN101")
    assert one.severity == "note" and one.message.endswith("; nothing follows it in the trace")
    (many,) = findings(result_read(after=False).step(0, 1000).step(1000, 1000), "SYN101")
    assert many.severity == "error"


def test_a_pageable_result_is_not_told_to_do_what_its_wait_is_not_told() -> None:
    for after, severity, fix in ((False, "note", "Nothing, where the call"), (True, "warning", "Copy with .to('cpu'")):
        wait, copy = findings(result_read(after=after, memory="pageable"), "SYN101", "CPY201")
        assert (copy.severity, copy.fix.startswith(fix)) == (severity, True)
        assert wait.fix.startswith("Nothing") is copy.fix.startswith("Nothing")


@pytest.mark.parametrize(("held", "begin"), [(300, "Make it on the device"), (20, "Copy from pinned memory")])
def test_where_the_host_waits_for_copies_of_one_value_the_fix_is_about_those(held: float, begin: str) -> None:
    builder = TraceBuilder().steps(0, 1000, 2000)
    for at in (0.0, 1000.0):
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 50)
        for begins, size, waits in ((100.0, 131072, 20.0), (200.0, 4, held)):
            builder.op("aten::to", at + begins, waits + 30).op("aten::copy_", at + begins + 1, waits + 20)
            builder.copy("HtoD", call=(at + begins + 3, 2), runs=(at + begins + 6, 2), memory="pageable", bytes=size)
            builder.stream_sync(at + begins + 8, waits)
        builder.launch("k", call=(at + 600, 5), runs=(at + 610, 50))
    (found,) = findings(builder, "SYN101")
    assert found.fix.startswith(begin)
