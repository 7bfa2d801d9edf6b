from __future__ import annotations

import msgspec
import numpy as np
import pytest

from syncscope.advice import INFERENCE, UNCACHED
from syncscope.report.html_page import BECAUSE
from syncscope.rules import find
from syncscope.rules.base.host_math import DRAWS, ON_CPU
from syncscope.rules.base.idle_circumstances import (
    ALONE,
    BACK_TO_BACK,
    BEFORE_COPIES,
    BEFORE_FIRST,
    BESIDE_GRAPH,
    ENDS_WORKERS,
    GRAPH_LAUNCH,
    IN_COMPILED,
    IN_COPY,
    IN_DATASET,
    IN_FIRST,
    IN_GRAPH,
    IN_LAUNCHER,
    IN_MODULE,
    IN_OPS,
    IN_STEP,
    IN_WALK,
    MADE_ON_HOST,
    ONE_STREAM,
    OURS,
    RECORDS,
    SAMPLED,
    SAMPLED_PARTLY,
    SAMPLED_STEP,
    SPREAD,
    STARTS_WORKERS,
    UNSEEN,
)
from syncscope.rules.base.late_begins import LATE
from syncscope.rules.base.program import BESIDE_COMPILED, COMPILED, PARTLY
from syncscope.rules.device_starved import DeviceStarved
from syncscope.schema.counting import PhaseKind
from syncscope.schema.findings import Finding, IdleCause
from syncscope.schema.idle import main_cause
from syncscope.timeline import Timeline
from syncscope.timeline.tables import CAUSES
from tests.builders import FrameSpec, TraceBuilder
from tests.rules.scenes import findings, line


def loop(gap: float, *, wait: bool) -> TraceBuilder:
    """Four steps of 100 µs: a kernel, then a bubble of ``gap`` µs, behind a wait or behind host work."""
    builder = TraceBuilder().recording(*(100 * i for i in range(5)))
    for step in range(4):
        start = 100 * step
        builder.launch("k", call=(start, 1), runs=(start + 1, 99 - gap))
        if wait:
            builder.op("aten::item", start + 2, 96).copy("DtoH", call=(start + 3, 2), runs=(start + 100 - gap, 1))
            builder.stream_sync(start + 6, 96 - gap).warning(start + 99.5, line(12, "loss.item()"))
    return builder


def test_a_device_idle_for_a_tenth_is_starved():
    found = findings(loop(40, wait=False), "OVL303")
    assert len(found) == 1
    assert "40 %" in found[0].message or "41 %" in found[0].message
    assert "): launching " in found[0].message
    assert found[0].site is None


def test_of_a_recording_of_ours_the_fix_names_what_profile_can_record() -> None:
    """It has no Python stacks of what launches, and ``profile`` has no option for them."""
    scene = mostly_busy(30, 30)
    (foreign,) = findings(scene, "OVL303")
    (ours,) = findings(scene.recording(), "OVL303")
    assert "with_stack=True" in foreign.fix and "--mode full" not in foreign.fix
    assert "--mode full" in ours.fix and "with_stack" not in ours.fix


def masks(*lines: int) -> TraceBuilder:
    """A step in which the host works for 3 ms before each of the copies at some lines, which wait."""
    builder = TraceBuilder().recording(0, 3100 * len(lines))
    for number, of in enumerate(lines):
        start = 3100 * number
        builder.launch("k", call=(start, 5), runs=(start + 10, 20))
        builder.op("aten::copy_", start + 3000, 50).copy(
            "HtoD", call=(start + 3005, 5), runs=(start + 3012, 10), memory="pageable"
        )
        builder.stream_sync(start + 3012, 15).warning(start + 3049, line(of, f"mask{of}.copy_(made)"))
    return builder


def test_host_work_that_nothing_names_has_the_line_of_the_copy_at_which_it_ends() -> None:
    (found,) = findings(masks(22, 22), "OVL303")
    assert found.site is not None and (found.site.line, found.site_source) == (22, "hook")
    assert found.message.endswith("% of the host work ends at the copy of train.py:22")
    assert found.fix.startswith("Prepare what is copied there ahead") and "not what takes the time" in found.fix
    assert "request" not in found.fix and not found.asks_for_more
    assert [(end.site.line, end.share > 0.9) for end in found.work_ends_at] == [(22, True)]


def test_in_a_program_that_only_infers_such_work_may_be_the_wait_for_a_request() -> None:
    def fix(*kinds: PhaseKind) -> str:
        scene = masks(22, 22)
        for kind in kinds:
            scene.phase(kind, steps=40)
        (found,) = findings(scene.run(), "OVL303")
        return found.fix

    assert "gather several requests" in fix("evaluate") and "waits for a request" in fix("evaluate", "generate")
    assert "request" not in fix("evaluate", "train") + fix("other")


def test_host_work_that_ends_at_several_copies_names_their_lines() -> None:
    (found,) = findings(masks(13, 14, 15, 16), "OVL303")
    assert found.site is None and not found.asks_for_more
    assert "of the host work ends at the copy of train.py:13, 2" in found.message
    assert "at that of train.py:15" in found.message and "train.py:16" not in found.message
    assert [end.site.line for end in found.work_ends_at] == [13, 14, 15]


def test_what_only_asks_for_another_recording_says_so() -> None:
    (unnamed,) = findings(mostly_busy(30, 30).recording(), "OVL303")
    (loading,) = findings(slow_loader(line(8, "DataLoader(data)")), "OVL303")
    assert (unnamed.asks_for_more, loading.asks_for_more) == (True, False)


def test_a_busy_device_is_not():
    assert findings(loop(5, wait=False), "OVL303") == []


def mostly_busy(*gaps: float, behind: float = 0) -> TraceBuilder:
    """Kernels of 200 ms in all, with host work of some ms between them, and at last a read that blocks with nothing
    queued for ``behind`` ms."""
    builder, at = TraceBuilder(), 0.0
    for gap in gaps:
        builder.launch("k", call=(at, 5), runs=(at + 10, 200_000 / len(gaps)))
        at += 10 + 200_000 / len(gaps) + 1000 * gap
    builder.launch("k", call=(at, 5), runs=(at + 10, 10))
    if behind:
        builder.copy("HtoD", call=(at + 30, 5), runs=(at + 40, behind * 1000), memory="pinned", bytes=10**8)
        builder.launch("k", call=(at + 50, 5), runs=(at + 50 + behind * 1000, 10))
    return builder


def test_a_long_wait_for_the_host_is_told_where_it_is_the_most_there_is_to_gain() -> None:
    (found,) = findings(mostly_busy(3, 3, 3, 3), "OVL303")
    assert found.severity == "warning" and "(5.7 %): host work 12" in found.message
    assert found.fix.startswith("Nothing in the trace names most of the work")


def test_a_device_that_seldom_waits_for_the_host_is_busy() -> None:
    assert findings(mostly_busy(3), "OVL303") == []  # under 2 % of the span
    assert findings(mostly_busy(*[0.3] * 40), "OVL303") == []  # as long as launches may be apart
    assert findings(mostly_busy(3, 3, 3, 3, behind=14), "OVL303") == []  # less than a finding of its own


def test_the_wait_behind_most_of_it_lends_its_line_and_is_related():
    found = findings(loop(40, wait=True))
    starved = next(finding for finding in found if finding.rule == "OVL303")
    read = next(finding for finding in found if finding.rule == "SYN102")
    assert starved.site is not None
    assert starved.site.line == 12
    assert starved.related == (read.fingerprint,)
    assert "train.py:12" in starved.message


def slow_loader(*frames: FrameSpec) -> TraceBuilder:
    """A step of 1000 µs, of which the next batch takes 700."""
    builder = TraceBuilder().recording(0, 1000).launch("k", call=(0, 1), runs=(2, 100))
    if frames:
        builder.entry("DataLoader", 150, 850, *frames)
    return builder.launch("k", call=(900, 1), runs=(903, 90))


def test_a_loader_that_the_device_waits_for_lends_its_line():
    loop, library = line(8, "DataLoader(data)"), ("<site-packages>/lib/loaders.py", 3, "__next__")
    (found,) = findings(slow_loader(loop, library), "OVL303")
    assert found.site is not None and found.at is not None
    assert (found.site.line, found.at.line, found.site_source) == (8, 3, "hook")
    assert "): data loading 0.7 ms, host work" in found.message
    assert "DataLoader workers" in found.fix


def test_workers_that_are_started_anew_are_data_loading_at_their_line():
    builder = TraceBuilder().recording(0, 1000).launch("k", call=(0, 1), runs=(2, 100))
    builder.entry("DataLoader.__iter__", 150, 600, line(8, "enumerate(loader)"))
    builder.entry("DataLoader", 610, 850, line(8, "next(enumerate(loader))"))
    (found,) = findings(builder.launch("k", call=(900, 1), runs=(903, 90)), "OVL303")
    assert found.site is not None and (found.site.line, found.site.expression) == (8, "enumerate(loader)")
    assert "): data loading 0.69 ms, host work" in found.message
    assert found.fix.startswith("Start the loader's workers once (persistent_workers=True)")


def test_a_loader_in_a_thread_that_launches_nothing_is_not_blamed():
    builder = slow_loader().on(9, "prefetch").entry("DataLoader", 150, 850, line(8, "DataLoader(data)"))
    (found,) = findings(builder, "OVL303")
    assert found.site is None
    assert "data loading" not in found.message


def test_the_fix_fits_the_greatest_cause():
    builder = TraceBuilder().step(0, 200).launch("k", call=(0, 1), runs=(1, 50))
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 60, 100)
    assert "DataLoader" in findings(builder.launch("k", call=(170, 1), runs=(172, 20)), "OVL303")[0].fix


@pytest.mark.parametrize("builder", [TraceBuilder().step(0, 100).stream_sync(10, 5)])
def test_without_device_activity_it_cannot_see(builder: TraceBuilder):
    found, blind = find(Timeline(builder.trace()))
    assert "OVL303" in {entry.rule for entry in blind}
    assert "OVL303" not in {hit.finding.rule for hit in found}


def test_every_cause_has_its_fix_and_its_sentence():
    assert set(BECAUSE) == set(CAUSES)
    advised = {DeviceStarved().advise(*cause.split()) for cause in CAUSES}
    about = (
        "shared",
        ALONE,
        "recorded",
        UNCACHED,
        BACK_TO_BACK,
        BEFORE_COPIES,
        f"{INFERENCE} {BEFORE_COPIES}",
        GRAPH_LAUNCH,
        BESIDE_GRAPH,
        BESIDE_COMPILED,
        COMPILED,
        DRAWS,
        IN_COMPILED,
        IN_COPY,
        ENDS_WORKERS,
        IN_DATASET,
        IN_FIRST,
        IN_GRAPH,
        IN_LAUNCHER,
        IN_MODULE,
        IN_OPS,
        IN_STEP,
        IN_WALK,
        LATE,
        MADE_ON_HOST,
        ON_CPU,
        ONE_STREAM,
        PARTLY,
        RECORDS,
        SAMPLED,
        SAMPLED_PARTLY,
        SAMPLED_STEP,
        SPREAD,
        STARTS_WORKERS,
        UNSEEN,
        f"{SPREAD} {OURS}",
        f"{UNSEEN} {OURS}",
        f"{UNSEEN} {OURS} {BEFORE_FIRST}",
    )
    by_circumstance = {DeviceStarved().advise(*one.split(), *cause.split()) for one in about for cause in CAUSES}
    both = DeviceStarved().advise(UNSEEN, BEFORE_FIRST, "host", "work")
    assert {both} | advised | by_circumstance == {one.sentence for one in DeviceStarved.advice}
    assert (len(advised), len(advised | by_circumstance)) == (len(CAUSES), len(CAUSES) + len(about))


def test_the_launcher_of_a_kernel_language_is_not_work_for_another_thread():
    builder = TraceBuilder().frame("model.py", 3, "step", 0, 1000).launch("a", call=(1, 5), runs=(10, 20))
    builder.frame("<site-packages>/triton/runtime/jit.py", 563, "run", 50, 700).launch(
        "b", call=(700, 5), runs=(710, 9)
    )
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "step" and "jit.py" in found.message
    assert "CUDA graph" in found.fix and "Move the work" not in found.fix


def test_the_function_that_the_host_is_in_lends_its_line_where_frames_know_it():
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 1000).launch("a", call=(1, 5), runs=(10, 20))
    builder.frame("<site-packages>/lib/video.py", 9, "preprocess", 50, 700).frame("<python>/re.py", 5, "sub", 60, 650)
    (finding,) = findings(builder.launch("b", call=(900, 5), runs=(910, 20)), "OVL303")
    assert finding.site is not None and finding.site.function == "main"
    assert finding.at is not None and finding.at.function == "preprocess"
    assert finding.message.endswith("; all of the host work in preprocess (<site-packages>/lib/video.py:9)")


def test_a_host_that_waits_for_other_ranks_by_itself_is_told_where():
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 1000).launch("a", call=(1, 5), runs=(10, 20))
    builder.frame("train.py", 40, "agree", 50, 700).annotation("gloo:all_reduce", 60, 680)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32(x)", call=(800, 5), runs=(810, 60))
    (finding,) = findings(builder.launch("b", call=(900, 5), runs=(910, 20)), "OVL303")
    assert "host collective 680 µs" in finding.message or "host collective 0.68 ms" in finding.message
    assert "; all of the host collective in agree (train.py:40)" in finding.message
    assert finding.fix.startswith("The host waits there for the other ranks")
    assert not next(one for one in finding.causes if one.cause == "host collective").covered_by


def test_where_a_host_sleeps_is_told_though_a_wait_is_named_too():
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 3000).launch("a", call=(1, 5), runs=(10, 20))
    builder.frame("train.py", 40, "pace", 45, 1500).builtin("sleep", 50, 1400)
    builder.launch("b", call=(1600, 5), runs=(1610, 400)).stream_sync(1620, 392, record=True)
    (finding,) = findings(builder.launch("c", call=(2400, 5), runs=(2410, 400)), "OVL303")
    assert finding.site is not None and finding.site.function == "pace"
    assert "; all of the host idle in pace (train.py:40)" in finding.message
    assert finding.fix.startswith("See what keeps the host there")


def test_what_a_first_pass_does_besides_loading_kernels_is_no_finding():
    builder = TraceBuilder().launch("fill", call=(0, 5), runs=(10, 5)).launch("a", call=(20, 40_000), runs=(40_025, 20))
    builder.launch("a", call=(43_000, 5), runs=(43_010, 20))
    (finding,) = findings(builder, "OVL303")
    assert (finding.severity, finding.fix[:19]) == ("note", "Record later steps:")


def test_idle_time_that_nothing_explains_is_a_note():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 900)).launch("b", call=(10, 5), runs=(3000, 900))
    (finding,) = findings(builder, "OVL303")
    assert (finding.severity, finding.fix[:22]) == ("note", "Do not trust this part")


def test_the_spaces_between_queued_kernels_are_no_wait_of_a_stream():
    builder = TraceBuilder().step(0, 600)
    for number in range(100):
        builder.launch("k", call=(number, 1), runs=(101 + 5 * number, 4))
    (found,) = findings(builder, "OVL303")
    assert "queued but held back" in found.message
    assert "fewer and larger" in found.fix


@pytest.mark.parametrize("ranks", [1, 2])
def test_streams_that_wait_on_one_rank_wait_for_no_other(ranks: int) -> None:
    nccl = "ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgsStorage<4096ul>)"
    builder = TraceBuilder(rank=0, world_size=ranks).step(0, 4000)
    for number in range(10):
        builder.launch("k", call=(10 * number, 5), runs=(20 + 300 * number, 9), stream=7 + number % 2)
    if ranks > 1:
        builder.launch(nccl, call=(110, 5), runs=(3200, 100), stream=13)
    (found,) = findings(builder, "OVL303")
    assert "Look at what the streams wait for" in found.fix
    assert ("another rank" in found.fix) == (ranks > 1)


def test_a_fix_for_the_device_itself_has_no_line_of_the_host() -> None:
    builder = TraceBuilder().recording(0, 3000)
    for number in range(10):
        builder.launch("k", call=(10 * number, 5), runs=(20 + 250 * number, 9))
    builder.launch("k", call=(2800, 5), runs=(2810, 9))
    builder.sampled([2290 + 50 * number for number in range(10)], ("train.py", 5, "main", "prepare()"))
    (found,) = findings(builder, "OVL303")
    assert found.causes[0].cause == "queued on device" and found.fix.startswith("Nothing that the host does")
    assert any(cause.cause == "host work" and cause.site for cause in found.causes)
    assert found.site is None


@pytest.mark.parametrize(("loads", "told"), [(500, True), (100, False)])
def test_a_fix_for_the_device_itself_goes_on_with_what_the_host_could_leave_out(loads: float, *, told: bool) -> None:
    builder = TraceBuilder().recording(0, 3000)
    for number in range(10):
        builder.launch("k", call=(10 * number, 5), runs=(20 + 250 * number, 9))
    builder.entry("DataLoader", 2290, 2290 + loads, line(8, "DataLoader(data)"))
    builder.launch("k", call=(2300 + loads, 5), runs=(2310 + loads, 690 - loads))
    (found,) = findings(builder, "OVL303")
    assert found.asks_for_more and found.fix.startswith("Nothing that the host does changes most of it")
    assert ("Apart from that, there is data loading (train.py:8). Load ahead" in found.fix) == told


def test_a_row_that_begins_late_with_nothing_before_it_may_wait_for_another_process():
    builder = TraceBuilder().step(0, 3000)
    for number in range(10):
        builder.launch("k", call=(10 * number, 5), runs=(20 + 300 * number, 9))
    (found,) = findings(builder, "OVL303")
    assert "queued but held back" in found.message
    assert "as when another process has the device" in found.fix


def test_a_program_without_the_caching_allocator_is_told_so():
    builder = TraceBuilder().step(0, 3000)
    for number in range(60):
        start = 50 * number
        builder.call("cudaMalloc", start, 10).launch("k", call=(start + 11, 1), runs=(start + 13, 5))
        builder.call("cudaFree", start + 20, 29)
    assert any("PYTORCH_NO_CUDA_MEMORY_CACHING" in found.fix for found in findings(builder, "SYN106", "OVL303"))


def test_frees_of_a_cache_that_is_full_are_no_sign_of_that():
    builder = TraceBuilder().step(0, 3000)
    for number in range(60):
        start = 50 * number
        builder.launch("k", call=(start + 11, 1), runs=(start + 13, 5))
        if number % 10 == 0:
            builder.call("cudaFree", start + 20, 29).call("cudaMalloc", start, 10)
    found = findings(builder, "SYN106", "OVL303")
    assert found and not any("PYTORCH_NO_CUDA_MEMORY_CACHING" in one.fix for one in found)


def decoding(graph_us: float, between: float, graphs: int = 1, small: int = 4) -> TraceBuilder:
    """``small`` launches, ``between`` µs apart, and then a graph, whose launch takes ``graph_us`` while the device
    waits; it runs for 300 µs."""
    builder, at = TraceBuilder(), 0.0
    for _ in range(small):
        builder.launch("small", call=(at, 5), runs=(at + 6, 3))
        at += between
    for number in range(graphs):
        builder.call("cudaGraphLaunch", at, graph_us, correlation=900 + number)
        for node in range(30):
            builder.kernel("node", at + graph_us + 10 * node, 10, correlation=900 + number)
        at += graph_us
    return builder


@pytest.mark.parametrize(
    ("builder", "part"),
    [
        (decoding(400, 20), "launch of a graph itself"),
        (decoding(40, 90), "replays a graph already"),
        (decoding(400, 90, graphs=0), "Launch fewer and larger kernels"),
        (decoding(40, 90, small=300), "Launch fewer and larger kernels"),
    ],
)
def test_graphs_are_no_answer_to_the_launch_of_one(builder: TraceBuilder, part: str):
    (found,) = findings(builder, "OVL303")
    assert part in found.fix
    assert ("CUDA graphs" in found.fix) == part.startswith("Launch")


def test_a_function_that_runs_all_the_time_names_no_place():
    builder = TraceBuilder().frame("pipeline.py", 3, "run", 0, 2000).launch("a", call=(1, 5), runs=(10, 20))
    builder.frame("<site-packages>/lib/hooks.py", 9, "set_context", 50, 700)
    builder.launch("b", call=(900, 5), runs=(910, 1080))
    (finding,) = findings(builder, "OVL303")
    assert finding.site is not None and (finding.site.file, finding.site.line) == ("<site-packages>/lib/hooks.py", 9)


def test_a_kernel_behind_a_collective_that_begins_late_without_one_is_unknown():
    nccl = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    builder = TraceBuilder(rank=0, world_size=2).launch("a", call=(0, 5), runs=(10, 900))
    builder.launch(nccl, call=(20, 5), runs=(3000, 900), stream=13)
    (finding,) = findings(builder, "OVL303")
    assert {cause.cause for cause in finding.causes} == {"unknown"}


def test_a_cause_that_the_host_could_leave_out_comes_before_one_that_it_could_not():
    beyond = IdleCause(cause="queued on device", ms_per_step=0.5)
    launching = IdleCause(cause="launching", ms_per_step=0.3)
    (found,) = findings(TraceBuilder().launch("a", call=(0, 5), runs=(10, 9)).launch("b", call=(900, 5), runs=(910, 9)))
    idle = msgspec.structs.replace(found, idle_ms_per_step=1.0, causes=(beyond, launching))
    assert main_cause(idle) == launching
    assert main_cause(msgspec.structs.replace(idle, causes=(beyond,))) == beyond


def test_a_fix_that_is_not_for_the_longest_cause_says_so():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 100))
    builder.op("aten::item", 12, 510).copy("DtoH", call=(13, 2), runs=(110, 1)).stream_sync(16, 500)
    idle = next(f for f in findings(builder.launch("b", call=(1400, 5), runs=(1410, 9))) if f.rule == "OVL303")
    longest, own = idle.causes[0], main_cause(idle)
    assert longest.cause == "wait" and own is not None and own.cause == "host work"
    assert idle.message.endswith("; the fix is for host work, since the longest cause has findings of its own")
    assert idle.fix.startswith("Nothing in the trace names most of the work")


@pytest.mark.parametrize(("calls", "told"), [(2, True), (1, False)])
def test_graphs_that_several_calls_record_anew_are_named_as_the_hosts_work(calls: int, told: bool):
    builder = TraceBuilder().launch("first", call=(0, 5), runs=(10, 20))
    for number in range(2):
        start = 1000 + 12_500 * number
        builder.op("CompiledFunction", start, 12_000)
        builder.launch("warm", call=(start + 9000, 5), runs=(start + 9010, 20))
        if number < calls:
            builder.call("cudaStreamBeginCapture", start + 10_000, 5).call("cudaStreamEndCapture", start + 10_100, 5)
        builder.launch("after", call=(start + 11_000, 5), runs=(start + 11_010, 20))
    found = next(finding for finding in findings(builder, "OVL303") if finding.severity != "note")
    assert ("recorded anew" in found.fix, "2 calls there record CUDA graphs" in found.message) == (told, told)


def compiled(*, inside: bool) -> TraceBuilder:
    """Parts of compiled code with a pause of 4 ms in each, or between them."""
    builder = TraceBuilder()
    for start in range(0, 60_000, 10_000):
        builder.op("Torch-Compiled Region: 0/0", start, 6000 if inside else 100)
        for at in (start + 10, start + (5000 if inside else 50)):
            builder.launch("triton_k", call=(at, 5), runs=(at + 8, 30))
    return builder


def test_what_the_host_does_to_enter_and_leave_compiled_code_is_for_no_other_thread():
    (within,) = findings(compiled(inside=True), "OVL303")
    assert "fullgraph=True" in within.fix
    (between,) = findings(compiled(inside=False), "OVL303")
    assert "fullgraph=True" not in between.fix


@pytest.mark.parametrize(("kernels", "first"), [("abcdef", True), ("aaaaaa", False), ("abcabc", False)])
def test_what_the_trace_does_not_name_is_no_work_to_be_moved(kernels: str, first: bool) -> None:
    builder = TraceBuilder().launch("begin", call=(0, 5), runs=(8, 30))
    for number, kernel in enumerate(kernels, 1):
        builder.launch(kernel, call=(5000 * number, 5), runs=(5000 * number + 8, 30))
    (finding,) = findings(builder, "OVL303")
    assert finding.fix.startswith("Nothing in the trace names most of the work")
    assert ("for the first time" in finding.fix) == first
    named = builder.frame("train.py", 3, "main", 0, 60_000).frame("lib/text.py", 9, "tokenize", 20, 40_000)
    (finding,) = findings(named, "OVL303")
    assert finding.fix.startswith("Move the work that the host does")


@pytest.mark.parametrize(("again", "op_us", "told"), [(False, 9000, True), (True, 9000, False), (False, 900, False)])
def test_what_an_op_does_before_it_launches_a_kernel_for_the_first_time_may_be_done_once(
    op_us: float, *, again: bool, told: bool
) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 60_000).launch("begin", call=(0, 5), runs=(8, 30))
    for number, kernel in enumerate("aab" if again else "abc", 1):
        at = 10_000 * number
        builder.op("my::op", at - op_us - 10, op_us + 40).op("aten::mm", at - op_us, op_us + 20)
        builder.launch(kernel, call=(at, 5), runs=(at + 8, 30))
    (finding,) = findings(builder, "OVL303")
    assert ("PyTorch's own operators" in finding.fix) == told


@pytest.mark.parametrize("ran", [False, True])
def test_that_the_first_kernel_of_a_trace_is_launched_for_the_first_time_says_nothing(*, ran: bool) -> None:
    builder = TraceBuilder().step(0, 30_000)
    if ran:
        builder.launch("begin", call=(10, 5), runs=(18, 30))
    builder.op("aten::ones", 100, 20_020).launch("k", call=(20_000, 5), runs=(20_008, 9000))
    (finding,) = findings(builder, "OVL303")
    assert ("PyTorch's own operators" in finding.fix) == ran


@pytest.mark.parametrize(("before", "said"), [(0, "all of the host work"), (3, "70 % of the host work")])
def test_how_much_lies_in_a_function_is_said_by_its_share(before: int, said: str) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 60_000)
    builder.frame("lib/text.py", 9, "tokenize", 5000 * before + 10, 5000 * (10 - before) + 100)
    for number in range(11):
        builder.launch("k", call=(5000 * number, 5), runs=(5000 * number + 8, 30))
    (finding,) = findings(builder, "OVL303")
    assert finding.message.endswith(f"; {said} in tokenize (lib/text.py:9)")


@pytest.mark.parametrize(("parts", "asks"), [(0, "torch.compile, CUDA"), (1, "neither compiled nor replayed")])
def test_what_is_done_already_is_not_asked_for(parts: int, asks: str) -> None:
    builder = TraceBuilder()
    for number in range(60):
        if number < 10 * parts:
            builder.op("Torch-Compiled Region: 0/0", 100 * number, 60)
        builder.launch("k", call=(100 * number + 10, 5), runs=(100 * number + 18, 5))
    assert [asks in finding.fix for finding in findings(builder, "OVL303")] == [True]


def test_what_the_host_does_within_a_compiled_graph_enters_and_leaves_nothing():
    builder = compiled(inside=True)
    for start in range(0, 60_000, 10_000):
        builder.annotation("## Call CompiledFxGraph fabc ##", start + 5, 5500)
    (within,) = findings(builder, "OVL303")
    assert "inside of one compiled graph" in within.fix


def test_a_host_that_sleeps_is_no_part_of_a_first_pass():
    def first_pass(*, sleeps: bool) -> str:
        builder = TraceBuilder().frame("train.py", 3, "main", 0, 400_000).launch("first", call=(0, 10), runs=(12, 20))
        builder.op("aten::mm", 100, 300_100).launch("gemm", call=(110, 300_000), runs=(300_115, 20))
        for at in range(301_000, 310_000, 1000):
            if sleeps:
                builder.frame("train.py", 40, "pace", at - 900, 700).builtin("sleep", at - 890, 680)
            builder.launch("later", call=(at, 10), runs=(at + 12, 100))
        (finding,) = findings(builder, "OVL303")
        assert (finding.severity, "warm-up" in finding.message) == ("note", True)
        return finding.message

    assert "; for 6.08 ms of the rest it is idle while the host sleeps" in first_pass(sleeps=True)
    assert first_pass(sleeps=False).endswith("which later steps do not repeat")


def test_warm_up_is_told_with_the_op_that_it_is_in() -> None:
    builder = TraceBuilder().launch("first", call=(0, 10), runs=(12, 20))
    builder.op("aten::mm", 100, 300_100).launch("gemm", call=(110, 300_000), runs=(300_115, 20))
    (finding,) = findings(builder, "OVL303")
    assert "are warm-up (loading of kernels; all of it in aten::mm), in which" in finding.message
    (with_stacks,) = findings(builder.frame("train.py", 3, "main", 0, 400_000), "OVL303")
    assert "are warm-up (loading of kernels), in which" in with_stacks.message


@pytest.mark.parametrize(
    ("function", "op", "told"), [("set_context", False, True), (None, False, False), ("set_context", True, False)]
)
def test_what_the_host_works_at_length_in_a_known_function_is_no_part_of_a_first_pass(
    function: str | None, op: bool, told: bool
) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 400_000).launch("first", call=(0, 10), runs=(12, 20))
    builder.op("aten::mm", 100, 300_100).launch("gemm", call=(110, 300_000), runs=(300_115, 20))
    for at in range(301_000, 331_000, 3000):
        if function:
            builder.frame("lib/hooks.py", 268, function, at + 30, 2900)
        if op:
            builder.op("aten::conv2d", at + 40, 2880)
        builder.launch("later", call=(at, 10), runs=(at + 12, 100))
    (finding,) = findings(builder, "OVL303")
    assert (finding.severity, "warm-up" in finding.message) == ("note", True)
    said = "of the rest it is idle while the host works in set_context (lib/hooks.py:268)"
    assert finding.message.endswith(said) == told


@pytest.mark.parametrize("in_module", [True, False])
def test_python_of_the_model_itself_is_for_no_other_thread(*, in_module: bool) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 60_000)
    for start in range(0, 60_000, 10_000):
        builder.frame(
            "/x/site-packages/torch/nn/modules/module.py" if in_module else "loop.py", 1779, "_call_impl", start, 9900
        )
        builder.frame("model.py", 36, "forward", start + 1, 9890)
        for at in (start + 10, start + 5000):
            builder.launch("k", call=(at, 5), runs=(at + 8, 30))
    (finding,) = findings(builder, "OVL303")
    assert "all of the host work in forward (model.py:36)" in finding.message
    assert ("this is Python of the model itself" in finding.fix) == in_module


@pytest.mark.parametrize(
    ("op", "launches", "dur", "on_cpu"),
    [("aten::bmm", False, 1900, True), ("aten::bmm", True, 1900, False), ("aten::view", False, 1900, False),
     ("aten::bmm", False, 90, False)],
)  # fmt: skip
def test_products_that_launch_nothing_are_computed_on_the_cpu(
    op: str, dur: float, *, launches: bool, on_cpu: bool
) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 60_000)
    for start in range(0, 60_000, 10_000):
        builder.frame("/x/site-packages/torch/nn/modules/module.py", 1779, "_call_impl", start, 9900)
        builder.frame("attention.py", 363, "attention_cpu", start + 1, 9890)
        builder.launch("k", call=(start + 10, 5), runs=(start + 18, 30)).op(op, start + 1000, dur)
        if launches:
            builder.launch("gemm", call=(start + 1800, 5), runs=(start + 1810, 30))
        builder.launch("k", call=(start + 5000, 5), runs=(start + 5008, 30))
    (finding,) = findings(builder, "OVL303")
    assert finding.fix.startswith("The program computes on the CPU") == on_cpu


@pytest.mark.parametrize("lost", [False, True])
def test_products_whose_launches_are_lost_are_not_said_to_be_computed_on_the_cpu(*, lost: bool) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 90_000).device_sync(1, 5)
    for start in range(0, 90_000, 10_000):
        builder.launch("k", call=(start + 10, 5), runs=(start + 18, 30)).op("aten::mm", start + 1000, 1900)
        if start >= 60_000:
            builder.launch("gemm", call=(start + 1800, 5), runs=(start + 1810, 30))
        elif not lost:
            builder.op("aten::resolve_conj", start + 1010, 5)
        builder.launch("k", call=(start + 5000, 5), runs=(start + 5008, 30))
    (finding,) = findings(builder, "OVL303")
    assert finding.fix.startswith("The program computes on the CPU") != lost


@pytest.mark.parametrize(
    ("op", "launches", "dur", "drawn"),
    [("aten::normal_", False, 3800, True), ("aten::normal_", True, 3800, False), ("aten::copy_", False, 3800, False),
     ("aten::normal_", False, 1500, False)],
)  # fmt: skip
def test_random_numbers_that_launch_nothing_are_drawn_on_the_cpu(
    op: str, dur: float, *, launches: bool, drawn: bool
) -> None:
    builder = TraceBuilder().frame("train.py", 3, "main", 0, 60_000)
    for start in range(0, 60_000, 5_000):
        builder.frame("train.py", 9, "batch", start + 1, 4900)
        builder.launch("k", call=(start + 10, 5), runs=(start + 18, 30)).op(op, start + 1000, dur)
        if launches:
            builder.launch("normal", call=(start + 2400, 5), runs=(start + 2410, 30))
    (finding,) = findings(builder, "OVL303")
    assert ("to the device: most of it draws random numbers on the CPU" in finding.fix) == drawn


def through_ops(length: float) -> list[Finding]:
    """Of four launches 3 ms late, before each of which the host passes through other ops of some length, µs."""
    builder = mostly_busy(3, 3, 3, 3)
    for number in range(4):
        end = (number + 1) * 53_010
        for at in np.arange(end - 2900, end - length, length + 10).tolist():
            builder.op(f"aten::{'abcd'[number]}", at, length)
    return findings(builder, "OVL303")


def test_the_way_through_the_ops_of_pytorch_is_named_by_them() -> None:
    (found,) = through_ops(100)
    assert found.fix.startswith("Launch less (larger batches, foreach or fused")
    assert not found.asks_for_more


def test_an_op_that_takes_far_longer_than_its_work_names_nothing() -> None:
    (found,) = through_ops(2000)
    assert found.fix.startswith("Nothing in the trace names most of the work")


def test_what_a_long_first_step_of_an_epoch_waits_for_is_not_the_profilers() -> None:
    builder = TraceBuilder().recording(0, 7000, 7500, bare_us=[350])
    builder.entry("DataLoader", 5, 6400, line(9, "for x, y in loader"))
    for start in (6450, 7050):
        builder.launch("k", call=(start, 1), runs=(start + 2, 40))
    (found,) = findings(builder, "OVL303")
    assert found.idle_ms_per_step == pytest.approx(3.7, abs=0.1)
    assert found.causes[0].cause == "data loading"
    longer = TraceBuilder().recording(0, 400, 800, bare_us=[350])  # by what the profiler adds
    for start in (2, 402):
        longer.launch("k", call=(start, 1), runs=(start + 2, 345))
    assert findings(longer, "OVL303") == []
