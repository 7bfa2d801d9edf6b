"""Launches that block: on a full queue, and all of them."""

from __future__ import annotations

import pytest

from tests.builders import TraceBuilder
from tests.rules.scenes import blind, findings


def ahead(launches: int, *, last: float = 500, kernel: str = "small") -> TraceBuilder:
    """A kernel of 10 ms, ``launches`` small ones behind it, 2 µs each, and one more launch that takes ``last`` µs."""
    builder = TraceBuilder().steps(0, 20_000).launch("gemm", call=(0, 2), runs=(5, 10_000))
    for number in range(launches):
        builder.launch("small", call=(4 + 3 * number, 2), runs=(10_010 + 2 * number, 2))
    return builder.launch(kernel, call=(9_000, last), runs=(15_000, 2))


class TestLaunchQueueFull:
    def test_a_long_launch_a_thousand_launches_ahead_is_one(self):
        found = findings(ahead(1021), "SYN107")
        assert [(finding.count, finding.per_step, finding.severity) for finding in found] == [(1, 1, "note")]
        assert found[0].stall_ms == pytest.approx(0.5)
        assert "1,022 launches behind" in found[0].message

    def test_it_keeps_nothing_from_other_rules(self):
        assert "SYN107" not in blind(ahead(1021).device_sync(19_000, 5))

    @pytest.mark.parametrize(
        "builder",
        [ahead(1021, last=4), ahead(300), ahead(0, last=3000), ahead(1021, kernel="seen for the first time")],
        ids=["short", "few ahead", "empty queue", "code is loaded"],
    )
    def test_others_are_not(self, builder: TraceBuilder):
        assert findings(builder, "SYN107") == []

    def test_a_copy_inside_the_device_meets_the_full_queue_too(self):
        builder = ahead(1021).copy("DtoD", call=(9_600, 800), runs=(15_010, 2), bytes=512)
        (found,) = findings(builder, "SYN107")
        assert (found.count, found.stall_ms) == (2, pytest.approx(1.3))
        assert found.message.startswith("a launch or copy waits")

    def test_a_graph_counts_as_one_launch_however_many_kernels_it_runs(self):
        builder = TraceBuilder().steps(0, 20_000)
        for number in range(2):
            builder.call("cudaGraphLaunch", 10 + 100 * number, 90)
            for kernel in range(1000):
                builder.kernel("k", 200 + kernel, 1, correlation=builder.events[-1]["args"]["correlation"])
        assert findings(builder, "SYN107") == []

    def test_without_device_activity_it_cannot_see(self):
        assert "SYN107" in blind(TraceBuilder().call("cudaLaunchKernel", 0, 500))


def serial(launches: int, *, said: bool = False) -> TraceBuilder:
    """Steps whose launches each last until their kernel has ended, the device idle in between; a read at the end."""
    builder = TraceBuilder().steps(0, 100 * launches + 200)
    if said:
        builder = TraceBuilder().recording(0, 100 * launches + 200, launch_blocking=True)
    for number in range(launches):
        builder.launch("gemm", call=(100 * number, 50), runs=(100 * number + 5, 40))
    end = 100 * launches
    return (
        builder.op("aten::item", end, 60).copy("DtoH", call=(end + 5, 4), runs=(end + 10, 2)).stream_sync(end + 11, 9)
    )


class TestLaunchBlocking:
    def test_one_finding_for_all_launches(self):
        found = findings(serial(20), "SYN108")
        assert [(finding.count, finding.per_step, finding.site) for finding in found] == [(20, 20, None)]
        assert found[0].stall_ms == pytest.approx(1.0)

    def test_what_would_run_side_by_side_is_not_checked_and_not_said(self):
        assert findings(serial(20), "OVL301", "OVL303") == []
        assert {"OVL301", "OVL303"} <= set(blind(serial(20)))
        assert "CUDA_LAUNCH_BLOCKING" in blind(serial(20))["OVL303"]

    def test_other_waits_are_found_as_ever(self):
        assert [finding.per_step for finding in findings(serial(20), "SYN102")] == [1]

    def test_a_few_launches_need_the_recordings_word(self):
        assert findings(serial(5), "SYN108") == []
        assert findings(serial(5, said=True), "SYN108")[0].count == 5

    def test_a_variable_that_came_too_late_blocks_nothing(self):
        builder = TraceBuilder().recording(0, 900, launch_blocking=True)
        for number in range(5):
            builder.launch("gemm", call=(10 * number, 5), runs=(50 + 100 * number, 90))
        assert findings(builder, "SYN108") == []
