"""Work that a program does once: graphs are captured, code is compiled, kernels are chosen and loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.compiled_regions import GRAPH, REGION
from syncscope.timeline.compiling import CompiledSpan
from syncscope.timeline.ddp_timing import find_timings
from syncscope.timeline.first_launches import (
    find_compilations,
    find_loading_launches,
    find_made_modules,
    find_scripted,
)
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.library_starts import (
    find_first_choices,
    find_handles,
    find_library_starts,
    find_slow_inquiries,
)
from syncscope.timeline.python_stacks import PythonStacks
from syncscope.timeline.tables import Activities, Calls, Marks, Objects, Ops, Steps, WarmUps, objects
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different, either_of

CAPTURE: Final = "graph capture"
COMPILATION: Final = "compilation"
SEARCH: Final = "search for kernels"
LOADING: Final = "loading of kernels"
COLLECTIVES: Final = "setup of collectives"
GROWTH: Final = "growth of the allocator's cache"
TIMING: Final = "DistributedDataParallel times its first steps"
NAMED: Final = "named so by the program"
START: Final = "start of the recording"
KINDS = (CAPTURE, COMPILATION, SEARCH, LOADING, COLLECTIVES, GROWTH, TIMING, NAMED, START)
"""``WarmUps.name``, the strongest first where they overlap."""

PIECES = 10_000_000
"""Nanoseconds between the captures of two pieces of one program, at most: what runs between them is their warm-up."""

PROLOGUE = 1_000_000
"""Nanoseconds before a capture, at most, in which PyTorch fills the seed and the offset of its random numbers, when it
has waited for the device, collected garbage and emptied its cache."""

LONG_START, LONGEST_START, LITTLE = 100_000, 2_000_000, 64 << 10
"""Nanoseconds that the first call of a recording takes, at least and at most, where the profiler prepares itself in it,
and bytes that such a copy moves at most. A call takes 5 to 20 µs, and that first one 150 to 500."""

COMPILES = compile_later(r"\(dynamo_timed\)$")
"""Names that torch.compile gives to its own work, autotuning and the recording of graphs included (torch ≥ 2.6)."""

NAMES_WARM_UP = compile_later(r"(?:^|.*[^a-z])warm[-_ ]?up(?![a-z])", re.IGNORECASE)
LEARNING_RATE = compile_later(r"lr|sched|rate", re.IGNORECASE)
"""Annotations of the program's own warm-up begin like the first, and have nothing of the second, which is of the
learning rate's."""

COMPILERS = {
    "flashinfer/jit/core.py": ("build", "build_and_load", "load_cuda_ops"),
    "flashinfer/jit/cubin_loader.py": ("get_cubin", "load_cubin"),
    "torch/_dynamo/convert_frame.py": ("_compile", "compile_inner"),
    "torch/_inductor/compile_fx.py": ("compile_fx", "compile_fx_inner"),
    "torch/_inductor/cudagraph_trees.py": ("record_function", "run_eager"),
    "torch/_inductor/runtime/triton_heuristics.py": (
        "benchmark_all_configs", "autotune_to_one_config", "coordinate_descent_tuning", "precompile",
    ),
    "torch/utils/cpp_extension.py": ("load", "load_inline"),
    "torch/cuda/graphs.py": ("__enter__", "__exit__", "capture_begin", "capture_end", "make_graphed_callables"),
    "triton/compiler/compiler.py": ("compile",),
    "triton/runtime/autotuner.py": ("_bench", "benchmark"),
    "triton/testing.py": ("do_bench", "do_bench_cudagraph"),
}  # fmt: skip
"""Functions that run once, by the end of their file."""

CAPTURERS = ("torch/cuda/graphs.py", "torch/_inductor/cudagraph_trees.py")
"""Those of them that capture graphs."""

BEGINS_CAPTURE = compile_later("StreamBeginCapture")
ENDS_CAPTURE = compile_later("StreamEndCapture")

LIBRARIES = compile_later(r"cudnn|miopen|^aten::(?:convolution|conv_transpose\w*)_backward$")
"""In the names of ops whose library tries its kernels in turn. It times them by events, which nothing else there waits
for, and then gives back the memory that it took (ATen/native/cudnn/Conv_v8.cpp)."""

LOADERS = compile_later(r"(?:cu|cuda|hip)(?:Module|Library)(?:Load|GetFunction|GetKernel)\w*")
"""Calls that load kernels."""

COMMUNICATORS = compile_later(r"c10d::|record_param_comms|nccl:")
"""How the ops and annotations of collectives begin."""

SETS_UP = compile_later(
    r"(?:cuda|hip)(?:HostAlloc|HostRegister|HostMalloc|Ipc\w+)|(?:cu|hip)Mem(?:Create|Map|SetAccess)"
)
"""Calls by which a communicator takes memory of its own. PyTorch's allocator calls ``cudaMalloc``."""


def find_warm_ups(
    calls: Calls, ops: Ops, activities: Activities, stacks: PythonStacks, marks: Marks, steps: Steps,
    compiled: Sequence[CompiledSpan] = (), recorded: Marks | None = None,
) -> WarmUps:  # fmt: skip
    """The stretches of warm-up on the host; ``marks`` are the trace's annotations, ``compiled`` what the recording
    saw of ``torch.compile``, ``recorded`` the calls that it saw, ``None`` in traces of others. They may overlap."""
    found = [
        *_captures(calls),
        *_waits_for_recorded_graphs(calls, ops),
        *_compilations(ops, marks),
        *((span.ts, span.end, span.tid, CAPTURE if span.kind == "record" else COMPILATION) for span in compiled),
        *_compiling_frames(stacks),
        *_searches(calls, ops),
        *_loads(ops, calls, activities, steps),
        *_named_so(marks),
        *_first_uses(ops, calls, activities),
        *_set_ups(calls, ops),
        *_growth(calls, steps),
        *((begin, end, tid, TIMING) for begin, end, tid in find_timings(calls, ops, marks, recorded)),
        *_start(calls, activities),
    ]
    found.sort()
    ts, end, tid = (np.array([row[i] for row in found], dtype=np.int64) for i in range(3))
    return WarmUps(
        row=np.arange(len(found), dtype=np.int64), ts=ts, end=end, tid=tid, name=objects([row[3] for row in found])
    )


def warming_up(warm_ups: WarmUps, ts: Ints, end: Ints, tid: Ints) -> Objects:
    """For each interval (n,) of a thread, the kind of the warm-up that it lies in, ``""`` outside."""
    kind = np.full(len(ts), "", dtype=object)
    for name in sorted(warm_ups.by_kind, key=KINDS.index, reverse=True):
        kind[warm_ups.by_kind[name].innermost(tid, ts, end) >= 0] = name
    return kind


def are_warming_up(warm_ups: WarmUps, ts: Ints, end: Ints, tid: Ints) -> Bools:
    """Which intervals (n,) of a thread lie in warm-up of any kind."""
    inside = np.zeros(len(ts), dtype=bool)
    for nesting in warm_ups.by_kind.values():
        inside |= nesting.innermost(tid, ts, end) >= 0
    return inside


_Found = Iterator[tuple[int, int, int, str]]


def in_capture(calls: Calls) -> Bools:
    """Which calls (n,) were made while some thread captured a CUDA graph, which runs nothing."""
    begins, ends = calls.named(BEGINS_CAPTURE.search), calls.named(ENDS_CAPTURE.search)
    captured: Bools = np.cumsum(begins) > np.cumsum(ends)
    return captured


def _captures(calls: Calls) -> _Found:
    """From the last command before a capture to the first one behind it: PyTorch waits for the device, collects garbage
    and empties its cache before, and makes the graph of what was captured after. Captures of one program in pieces
    are one."""
    captured = in_capture(calls)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], captured, [False]]).astype(np.int8))).reshape(-1, 2)
    pieces: list[list[int]] = []
    for first, behind in edges.tolist():
        last = min(behind, len(calls) - 1)
        if pieces and calls.tid[first] == calls.tid[pieces[-1][0]] and _near(calls, pieces[-1][1], first):
            pieces[-1][1] = last
        else:
            pieces.append([first, last])
    commands = np.flatnonzero(calls.do(COMMANDS) & ~captured)
    for first, last in pieces:
        own = calls.tid == calls.tid[first]
        mine = commands[own[commands]]
        before, after = mine[mine < first], mine[mine > last]
        if len(pieces) == 1:  # graphs that are recorded again and again are no work that is done once
            before = _before_prologue(calls, before, first)
        begin = calls.end[before[-1]] if len(before) else calls.ts[own][0]
        end = calls.ts[after[0]] if len(after) else calls.end[own].max()
        yield int(begin), max(int(end), int(calls.end[last])), int(calls.tid[first]), CAPTURE


def _before_prologue(calls: Calls, commands: Ints, first: int) -> Ints:
    """The commands before a capture, without the one or two with which PyTorch begins it once it has waited for the
    device or emptied its cache."""
    prepares = np.flatnonzero(calls.do(["device-sync", "device-free"]) & (calls.tid == calls.tid[first]))
    prepares = prepares[prepares < first]
    fills = int((commands > prepares[-1]).sum()) if len(prepares) else 0
    near = fills and calls.ts[first] - calls.ts[commands[-fills]] <= PROLOGUE
    return commands[:-fills] if near and fills <= 2 else commands


def _waits_for_recorded_graphs(calls: Calls, ops: Ops) -> _Found:
    """Waits for the device that come right in a compiled function which captures a graph: PyTorch waits there before
    the capture, and when it has first run what it captured. Where it records again and again, that is what costs, and
    not these."""
    captured = np.flatnonzero(in_capture(calls))
    if not len(captured) or not len(ops):
        return
    inside = different(ops.nesting.innermost(calls.tid[captured], calls.ts[captured], calls.end[captured]))
    around = {row for op in inside[inside >= 0].tolist() for row in ops.nesting.chain(op)}
    waits = np.flatnonzero(calls.do(["device-sync"]))
    op = ops.nesting.innermost(calls.tid[waits], calls.ts[waits], calls.end[waits])
    for wait, row in zip(waits.tolist(), op.tolist(), strict=True):
        if row in around and (REGION.match(ops.name[row]) or GRAPH.match(ops.name[row])):
            yield int(calls.ts[wait]), int(calls.end[wait]), int(calls.tid[wait]), CAPTURE


def _near(calls: Calls, last: int, first: int) -> bool:
    return bool(calls.ts[first] - calls.end[last] <= PIECES)


def _compilations(ops: Ops, marks: Marks) -> _Found:
    for table in (ops, marks):
        for row in np.flatnonzero(table.named(COMPILES.search)).tolist():
            kind = CAPTURE if "CUDAGraph" in table.name[row] else COMPILATION
            yield int(table.ts[row]), int(table.end[row]), int(table.tid[row]), kind


def _compiling_frames(stacks: PythonStacks) -> _Found:
    for file, functions in COMPILERS.items():
        kind = CAPTURE if file in CAPTURERS else COMPILATION
        for row in np.flatnonzero(stacks.are_in(file, functions)).tolist():
            yield int(stacks.ts[row]), int(stacks.end[row]), int(stacks.tid[row]), kind


def _searches(calls: Calls, ops: Ops) -> _Found:
    """Ops of a library that time its kernels, or give memory back when they have done so."""
    tells = calls.take(calls.do(["event-sync", "device-free"]))
    op = different(ops.nesting.innermost(tells.tid, tells.ts, tells.end))
    for row in op[op >= 0].tolist():
        if LIBRARIES.search(ops.name[row]):
            yield int(ops.ts[row]), int(ops.end[row]), int(ops.tid[row]), SEARCH


def _loads(ops: Ops, calls: Calls, activities: Activities, steps: Steps) -> _Found:
    """Calls that load kernels, first launches that do, and the first use of a library."""
    slow = find_loading_launches(activities, calls)
    loaders = either_of(find_slow_inquiries(calls), np.flatnonzero(calls.named(LOADERS.match)))
    for row in either_of(slow, loaders).tolist():
        yield int(calls.ts[row]), int(calls.end[row]), int(calls.tid[row]), LOADING
    for begin, end, tid in find_library_starts(ops, calls, activities, slow):
        yield begin, end, tid, LOADING
    for begin, end, tid in find_handles(ops, calls):
        yield begin, end, tid, LOADING
    for begin, end, tid in find_first_choices(ops, calls, activities, steps):
        yield begin, end, tid, LOADING


def _named_so(marks: Marks) -> _Found:
    names = {name for name in set(marks.name.tolist()) if NAMES_WARM_UP.match(name) and not LEARNING_RATE.search(name)}
    for row in np.flatnonzero([name in names for name in marks.name.tolist()]).tolist():
        yield int(marks.ts[row]), int(marks.end[row]), int(marks.tid[row]), NAMED


def _first_uses(ops: Ops, calls: Calls, activities: Activities) -> _Found:
    for begin, end, tid in find_compilations(ops, calls, activities):
        yield begin, end, tid, COMPILATION
    for begin, end, tid in find_made_modules(ops, calls):
        yield begin, end, tid, COMPILATION
    for begin, end, tid in find_scripted(ops, calls):
        yield begin, end, tid, COMPILATION


def _set_ups(calls: Calls, ops: Ops) -> _Found:
    """Collectives in which the communicator takes its memory: the first of each group."""
    taking = calls.take(calls.named(SETS_UP.match))
    op = different(ops.nesting.innermost(taking.tid, taking.ts, taking.end))
    for row in op[op >= 0].tolist():
        if COMMUNICATORS.match(ops.name[row]):
            yield int(ops.ts[row]), int(ops.end[row]), int(ops.tid[row]), COLLECTIVES


def _growth(calls: Calls, steps: Steps) -> _Found:
    """Allocations of the first step, of the device's memory or of page-locked memory, where no later one allocates
    such."""
    for role in ("device-alloc", "host-alloc") if len(steps) > 1 else ():
        allocating = calls.take(calls.do([role]))
        if len(allocating) and allocating.ts.max() < steps.end[0]:
            for row in range(len(allocating)):
                yield int(allocating.ts[row]), int(allocating.end[row]), int(allocating.tid[row]), GROWTH


def _start(calls: Calls, activities: Activities) -> _Found:
    """The first call of the recording, where it is a copy of little that takes long though nothing ran before it: the
    profiler prepares itself in whichever call comes first. A copy of much may have waited for work that was launched
    before."""
    if not len(calls) or not len(activities) or activities.launch[0] != 0 or calls.role[0] not in ("copy", "copy-sync"):
        return
    others = np.flatnonzero(calls.do([calls.role[0]]))[1:]
    usual = int(median(calls.dur[others])) if len(others) else 0
    besides = int(calls.dur[0] - activities.dur[0])
    if not 0 <= activities.bytes[0] <= LITTLE or not LONG_START + 5 * usual <= besides <= LONGEST_START:
        return
    behind = int(np.append(np.flatnonzero(calls.tid[1:] == calls.tid[0]) + 1, 0)[0])
    waits = calls.role[behind] == "stream-sync"  # a copy from pageable memory and its wait are one
    yield int(calls.ts[0]), int(calls.end[behind if waits else 0]), int(calls.tid[0]), START
