from __future__ import annotations

import pytest

from syncscope.rules.launch_bound import find_most_ms
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import findings, line


def loop(*, runs: float, every: float = 20, bare: float | None = 400, many: int = 20, early: float = 0) -> TraceBuilder:
    """Three steps of ``many`` launches, one ``every`` so many µs; the kernels run one after the other. Their clock is
    ``early``."""
    length = every * many
    builder = TraceBuilder().recording(*(length * i for i in range(4)), bare_us=None if bare is None else [bare])
    free = 0.0
    for i in range(3 * many):
        at = every * i
        free = max(at + 6, free)
        builder.launch("tiny", call=(at, 5), runs=(free - early, runs))
        free += runs
    return builder


def bound(builder: TraceBuilder) -> list[Finding]:
    return findings(builder, "LCH501")


def test_kernels_smaller_than_their_launch_are_bound_by_launches():
    found = bound(loop(runs=3))
    assert len(found) == 1
    assert (found[0].count, found[0].per_step, found[0].severity, found[0].site) == (60, 20, "warning", None)
    assert "takes 0.4 ms a step for 20 launches that run for 60 µs" in found[0].message
    assert "within 6 µs" in found[0].message
    assert found[0].message.endswith("would take away 19 of them")


def test_how_soon_kernels_begin_is_not_said_where_their_clock_is_early():
    (finding,) = bound(loop(runs=3, early=10))
    assert "of being launched" not in finding.message
    assert "-" not in finding.message


def in_part(launches: int, *, bare: float | None = None) -> TraceBuilder:
    """A step of 4 ms: launches 20 µs apart, then one pageable copy after the other."""
    builder, at = TraceBuilder().recording(0, 4000, bare_us=None if bare is None else [bare]), 20.0 * launches
    for number in range(launches):
        builder.launch("tiny", call=(20 * number, 5), runs=(20 * number + 7, 3))
    while at < 3900:
        builder.op("aten::to", at, 58).copy("HtoD", call=(at, 5), runs=(at + 8, 3), memory="pageable", bytes=64)
        builder.stream_sync(at + 6, 50)
        at += 60
    return builder


def test_a_part_that_only_launches_is_enough_where_the_device_waits_for_a_fifth():
    (finding,) = bound(in_part(80))
    assert finding.message.endswith("adds half to the host's time where the device waits for a launch")
    assert bound(in_part(40)) == []
    assert bound(in_part(80, bare=2600)) == []


def beside_compute(*, bare: float | None = None) -> TraceBuilder:
    """A step of 4 ms: launches 20 µs apart, and a kernel that computes for the first 1.6 ms of it."""
    builder = TraceBuilder().recording(0, 4000, bare_us=None if bare is None else [bare])
    builder.launch("gemm", call=(0, 5), runs=(7, 1600))
    free = 1607.0
    for number in range(1, 200):
        free = max(20.0 * number + 7, free)
        builder.launch("tiny", call=(20 * number, 5), runs=(free, 3))
        free += 3
    return builder


def test_the_most_is_what_each_wait_leaves_where_compute_hides_what_the_profiler_adds():
    (finding,) = bound(beside_compute())
    behind = 119  # launches that the device waits for, each 20 µs after the one before, whose kernel runs for 3 µs
    most_ms = find_most_ms(Timeline(beside_compute().trace()))
    assert most_ms == pytest.approx(behind * (17 - 20 / 3) / 1000, rel=0.15)
    assert most_ms > 2 * (finding.idle_ms_per_step or 0.0) > 0
    assert "the device waits 0.452 ms to 1.08 ms for the next one" in finding.message
    assert finding.message.endswith("half to the host's time, everywhere or only where the device waits for a launch")


def test_a_timed_step_shows_how_long_the_device_waits():
    (finding,) = bound(beside_compute(bare=3600))
    assert find_most_ms(Timeline(beside_compute(bare=3600).trace())) == finding.idle_ms_per_step
    assert "the device waits 1.39 ms for the next one" in finding.message


def test_what_is_done_once_is_no_part_of_the_time_that_the_device_waits_for_a_share_of():
    builder = TraceBuilder().launch("fill", call=(0, 5), runs=(10, 5)).op("aten::mm", 20, 40_000)
    builder.launch("ampere_sgemm", call=(40_000, 5), runs=(40_010, 5))
    for number in range(100):
        builder.launch("tiny", call=(40_030 + 20 * number, 5), runs=(40_040 + 20 * number, 3))
    (finding,) = bound(builder)
    assert "for 102 launches" in finding.message


def test_a_device_that_is_busy_for_longer_than_the_host_is_not():
    assert bound(loop(runs=25)) == []


def test_kernels_nearly_as_long_as_their_launch_are_not():
    assert bound(loop(runs=19)) == []


def test_a_handful_of_launches_is_not():
    assert bound(loop(runs=3, many=9, bare=180)) == []
    assert bound(loop(runs=3, many=10, bare=200)) != []


def test_pauses_of_the_host_are_not_launches():
    assert bound(loop(runs=3, every=1500, bare=30_000)) == []


def test_a_slow_host_that_only_launches_is_bound_by_launches():
    assert bound(loop(runs=3, every=400, bare=8000)) != []


def test_the_function_that_launches_is_named_where_frames_know_it():
    builder = loop(runs=3).frame("train.py", 3, "step", -1, 1250)
    (finding,) = bound(builder.frame("<site-packages>/lib/opt.py", 7, "update", 0, 1200))
    assert finding.site is not None and (finding.site.function, finding.site_source) == ("step", "stack")
    assert "all of it in update (<site-packages>/lib/opt.py:7)" in finding.message


def test_a_wait_behind_every_kernel_is_the_waits_fault():
    builder = TraceBuilder().recording(0, 400, 800, bare_us=[400])
    for i in range(40):
        builder.launch("k", call=(20 * i, 3), runs=(20 * i + 4, 3)).stream_sync(20 * i + 5, 3, record=True)
    assert bound(builder) == []


def test_waits_that_empty_the_queue_of_a_busy_device_are_no_sign_of_it():
    # The device computes for 300 of 400 µs; the host launches for 100 and waits for the rest.
    builder = TraceBuilder().recording(0, 400, 800, bare_us=[400])
    for start in (0, 400):
        for i in range(9):
            builder.launch("small", call=(start + 10 * i, 4), runs=(start + 10 * i + 5, 2))
        builder.launch("large", call=(start + 91, 4), runs=(start + 96, 300)).device_sync(start + 96, 301)
    assert bound(builder) == []


def test_what_the_profiler_adds_is_no_launch_time():
    # Profiled the host takes 400 µs a step, bare 130; the device works for 120.
    assert bound(loop(runs=6, bare=130)) == []


def test_without_bare_steps_the_profilers_share_is_assumed_and_said():
    found = bound(loop(runs=3, bare=None))
    assert "assumes" in found[0].message
    assert "takes 0.267 ms" in found[0].message
    assert bound(loop(runs=12, bare=None)) == []


def test_what_is_compiled_is_not_told_to_be_compiled():
    builder = loop(runs=3)
    assert "It is compiled already" not in bound(builder)[0].fix
    fix = bound(builder.op("Torch-Compiled Region: 0/0", 0, 10_000))[0].fix
    assert fix.startswith("It is compiled already") and "mode='reduce-overhead'" in fix


def test_what_is_compiled_beside_the_launches_that_the_device_waits_for_does_not_count():
    builder = loop(runs=3).on(7777).op("Torch-Compiled Region: 0/0", 0, 1200)
    for i in range(100):
        builder.launch("fused", call=(10 * i, 2), runs=(2000 + 5 * i, 5), stream=9)
    assert "It is compiled already" not in bound(builder)[0].fix
    for code in ("LCH501", "OVL303"):
        assert findings(builder, code)[0].fix.startswith("Most launches are of compiled code already")


def test_launches_that_no_other_step_repeats_get_another_fix_than_graphs():
    assert "Replay" in bound(loop(runs=3))[0].fix
    changing = loop(runs=3)
    for number, event in enumerate(changing.events):
        if event["cat"] == "kernel":
            event["name"] = f"k{number}"
    found = bound(changing)[0]
    assert "no stretch of them is the same in every step" in found.message
    assert "Replay" not in found.fix


def test_the_idle_finding_points_to_it():
    starved, launches = findings(loop(runs=3), "OVL303")[0], bound(loop(runs=3))[0]
    assert launches.fingerprint in starved.related
    assert "launching" in starved.message


def test_waiting_for_the_launch_of_a_graph_is_no_waiting_for_launches_that_a_graph_would_save():
    builder = TraceBuilder().recording(0, 1000, 2000, 3000, bare_us=[1000])
    for number in range(3):
        at = 1000.0 * number
        for launch in range(12):
            builder.launch("tiny", call=(at + 8 * launch, 5), runs=(at + 8 * launch + 6, 8))
        builder.call("cudaGraphLaunch", at + 100, 800, correlation=700 + number)
        builder.kernel("node", at + 905, 90, correlation=700 + number)
    assert bound(builder) == []
    (idle,) = findings(builder, "OVL303")
    assert idle.causes[0].cause == "launching"
    assert idle.causes[0].covered_by == ()


def cut_up(waits: int) -> TraceBuilder:
    """Three steps of 200 launches, with as many waits in each as asked."""
    builder = loop(runs=3, bare=4000, many=200)
    for step in range(3):
        for number in range(waits):
            at = 4000 * step + 20 * (number + 1) - 12
            builder.stream_sync(at, 3).warning(at + 3.5, line(102 + number % 2, f"read{number % 2}.item()"))
    return builder


def test_waits_that_cut_the_launches_up_come_before_a_graph() -> None:
    (found,) = bound(cut_up(15))
    assert "; 15 waits a step cut them up" in found.message
    assert found.fix.startswith(
        "Take out the waits between the launches, most of which are at train.py:102 and train.py:103, then replay what "
        "is left as a CUDA graph"
    )
    (whole,) = bound(cut_up(2))
    assert whole.fix.startswith("Replay the launches as a CUDA graph") and "cut them up" not in whole.message


def test_a_graph_of_launches_with_few_waits_between_them_is_without_these() -> None:
    (few,), (none,) = bound(cut_up(2)), bound(cut_up(0))
    assert "A graph can hold no wait: take them out first, as at train.py:102 and train.py:103, or" in few.fix
    assert none.fix.startswith("Replay the launches as a CUDA graph") and "no wait" not in none.fix


def test_no_graph_is_promised_where_hooks_of_fsdp_come_between_the_launches() -> None:
    for mark in ("FSDP::all_gather (layers.0)", "FullyShardedDataParallel.forward"):
        (found,) = bound(loop(runs=3).annotation(mark, 0, 300))
        assert "FSDP's hooks come between them, so no CUDA graph can hold a step" in found.message
        assert found.fix.startswith("Launch fewer and larger kernels: compile each block") and "Replay" not in found.fix


SENDS = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def test_no_graph_holds_what_a_rank_sends_and_receives() -> None:
    exchanging = loop(runs=3)
    kernels = [event for event in exchanging.events if event["cat"] == "kernel"]
    for kernel in kernels[10::20]:
        kernel["name"] = SENDS
    (found,) = bound(exchanging)
    assert "CUDA graphs would take away 17 of them" in found.message
    assert "compile what a stage computes between two exchanges" in found.fix and "Replay" not in found.fix


def test_a_few_launches_that_a_graph_could_hold_are_told_as_few() -> None:
    changing = loop(runs=3)
    kernels = [event for event in changing.events if event["cat"] == "kernel"]
    for number, kernel in enumerate(kernels):
        if number % 20 >= 9:
            kernel["name"] = f"of_step_{number // 20}"
    for step in range(3):
        changing.stream_sync(400 * step + 20 * 8 + 10, 3)  # between the 9th launch and the 10th
    (found,) = bound(changing)
    assert found.message.endswith("CUDA graphs could take the place of only 8 of these launches")
    assert "Replay" not in found.fix
