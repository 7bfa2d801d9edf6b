"""What a trace shows of its program, for advice that depends on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from syncscope.advice import EVALUATION, INFERENCE, MADE_ANEW, NO_BATCH, PINNED_BEFORE, WEIGHTS
from syncscope.patterns import compile_later
from syncscope.rules.base.groups import Group
from syncscope.schema.counting import PhaseKind
from syncscope.schema.expressions import moves_made_before
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.launching import LAUNCHES
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.overlap import is_compute
from syncscope.timeline.row_groups import number_groups
from syncscope.timeline.scalar_reads import VALUE_BYTES

TRAINS = compile_later(r"autograd::engine|Optimizer\.step#|aten::_(?:fused|amp)_")
"""How the names of ops and annotations of training begin."""

OF_COMPILED = compile_later(
    r"Torch-Compiled Region|CompiledFunction|CompiledFxGraph|\(dynamo_timed\)$|Pregraph bytecode|^triton_"
    r"|^graph_\d+_cpp"
)
"""In the names of what ``torch.compile`` leaves in a trace: ops, annotations and kernels."""

GRAPH_CALL = compile_later(r"## Call CompiledFxGraph")
"""How the annotation around the call of a graph that Inductor compiled begins."""

COMPILED_FILES = compile_later(
    r"<torchinductor>|(?:^|/)torchinductor_[^/]*/|inductor_cache/|torch_compile_cache/|torch/_inductor/"
    r"|torch/_dynamo/convert_frame"
)
"""In the names of files whose functions run only where something is compiled."""

COMPILED, BESIDE_COMPILED, PARTLY = "compiled", "beside-compiled", "partly"
"""The names for launches of code that ``torch.compile`` made, for those beside it in a program that mostly launches
that, and for those of a program that has some of it, or replays some graphs."""

INFERS = frozenset({"evaluate", "generate"})
"""Kinds of phases in which nothing is trained."""

FEW_LAUNCHES = 200
"""Launches between two graphs, at most, that prepare or end a round: a serving program has some tens of them."""

MODULE_CALL, MODULE_MOVES = "torch/nn/modules/module.py", ("_apply", "convert")
"""Where a module calls another, and the functions there by which it moves its weights."""

BATCHES = compile_later(r"batch|data_?load", re.IGNORECASE)
"""In the names of annotations in which a batch is fetched or copied."""

MANY_WEIGHTS = 8
"""A model has at least this many parameters."""

MANY, NEARLY_ALL = 20, 0.9
"""Of so many copies at one place this share says what they are: where no line is known, others may be among them."""

BATCH_BYTES, MODULE_BYTES = 64 << 10, 1 << 20
"""A larger copy may be a batch where the trace has no loader; and inside of a module."""


def only_infers(timeline: Timeline) -> bool:
    """Whether a trace with ops, and without our own records, has no backward and no optimizer."""
    if timeline.trace.recording is not None or "cpu_op" not in timeline.has:
        return False
    return not any(TRAINS.match(name) for table in (timeline.ops, timeline.annotations) for name in table.names())


def never_trains(timeline: Timeline) -> bool:
    """Whether a run that was counted has phases of inference, and none that may train."""
    run = timeline.trace.recording.run if timeline.trace.recording else None
    kinds = {phase.kind for phase in run.phases if phase.steps} if run is not None else set()
    return bool(kinds) and kinds <= INFERS


def name_inference(timeline: Timeline, kind: PhaseKind | None) -> list[str]:
    """What advice on a read has to know of a phase of this ``kind``, in which nothing is trained: there is no loss with
    a graph behind it."""
    if only_infers(timeline) or never_trains(timeline) or kind == "generate":
        return [INFERENCE]
    return [EVALUATION] if kind == "evaluate" else []


def recorded_kind(timeline: Timeline) -> PhaseKind | None:
    """The kind of the phase that was recorded, where the run was counted."""
    recording = timeline.trace.recording
    if recording is None or recording.run is None:
        return None
    return next((phase.kind for phase in recording.run.phases if phase.name == recording.phase), None)


def waits_for_compiled(timeline: Timeline) -> bool:
    """Whether half of the time in which the device waits for the next launch ends with one of code that
    ``torch.compile`` made: a program may have parts that are compiled, and wait for others."""
    bubbles = timeline.bubbles
    waiting = np.where(bubbles.launch >= 0, bubbles.due_to("launching"), 0)
    compiled = _of_compiled(timeline, bubbles.launch[waiting > 0])
    return bool(compiled.any()) and 2 * int(waiting[waiting > 0][compiled].sum()) >= int(waiting.sum())


def _of_compiled(timeline: Timeline, launch: Ints) -> Bools:
    """Which calls (n,) of launches are in code that ``torch.compile`` made."""
    calls = timeline.calls
    compiled = np.zeros(len(launch), dtype=bool)
    for table in (timeline.ops, timeline.annotations):
        rows = table.take(table.named(OF_COMPILED.search))
        if len(rows):
            nesting = Nesting(rows.ts, rows.end, rows.tid)
            compiled |= nesting.innermost(calls.tid[launch], calls.ts[launch], calls.end[launch]) >= 0
    return compiled


def name_compiled(timeline: Timeline) -> list[str]:
    """What advice on launches has to know of ``torch.compile`` and of graphs: it does not ask for what is done."""
    if waits_for_compiled(timeline):
        return [COMPILED]
    launches = np.flatnonzero(timeline.calls.do(LAUNCHES))
    compiled = int(_of_compiled(timeline, launches).sum())
    if compiled and 2 * compiled >= len(launches):
        return [BESIDE_COMPILED]
    return [PARTLY] if compiled or timeline.calls.do(["graph-launch"]).any() else []


def ends_with_graph(timeline: Timeline) -> Bools:
    """Which bubbles (n,) end when a graph was launched."""
    launch = timeline.bubbles.launch
    found: Bools = (launch >= 0) & np.append(timeline.calls.do(["graph-launch"]), False)[launch]
    return found


def is_beside_graph(timeline: Timeline) -> Bools:
    """Which bubbles (n,) end with one of the few launches that come between those of graphs. A longer row of launches
    is a part of the program that runs without graphs, such as a prefill."""
    calls, launch = timeline.calls, timeline.bubbles.launch
    launches = np.flatnonzero(calls.do(LAUNCHES))
    launches = launches[np.argsort(calls.tid[launches], kind="stable")]
    graphs = calls.role[launches] == "graph-launch"
    row = number_groups(calls.tid[launches], np.cumsum(graphs))
    few = np.zeros(len(calls) + 1, dtype=bool)
    few[launches] = graphs.any() & (np.bincount(row)[row] <= FEW_LAUNCHES) if len(launches) else False
    found: Bools = few[launch]
    return found


def works_in_compiled(timeline: Timeline) -> bool:
    """Whether most of the host work for which the device is idle lies in compiled code, between its launches."""
    work = timeline.bubbles.due_to("host work")
    regions = timeline.ops.take(timeline.ops.named(OF_COMPILED.search))
    idle = timeline.bubbles.take(work > 0)
    inside = Union(regions.ts, regions.end).within(idle.ts, idle.end)
    return 2 * int(np.minimum(inside, work[work > 0]).sum()) > int(work.sum())


def works_in_graph(timeline: Timeline) -> bool:
    """Whether most of the host work for which the device is idle lies in the calls of compiled graphs, each gap in one:
    nothing is entered or left there, the code of the graph is about to launch its next kernel."""
    bubbles, marks = timeline.bubbles, timeline.annotations
    work = bubbles.due_to("host work")
    graphs = marks.take(marks.named(GRAPH_CALL.match))
    idle = bubbles.take((work > 0) & (bubbles.launch >= 0))
    call = Nesting(graphs.ts, graphs.end, graphs.tid).innermost(timeline.calls.tid[idle.launch], idle.ts, idle.end)
    return 2 * int(work[(work > 0) & (bubbles.launch >= 0)][call >= 0].sum()) > int(work.sum())


@lru_cache(maxsize=65536)
def _is_of_compile(name: str) -> bool:
    return OF_COMPILED.search(name) is not None


def may_be_compiled(timeline: Timeline) -> bool:
    """Whether something in a trace is of ``torch.compile``, or it holds no ops, which would show that."""
    if timeline.compiled is not None or "cpu_op" not in timeline.has:
        return True
    names = *timeline.ops.names(), *timeline.annotations.names(), *set(timeline.activities.name.tolist())
    named = any(map(_is_of_compile, names))
    return named or timeline.stacks.pass_through(COMPILED_FILES)


def name_copied(group: Group) -> Iterator[str]:
    """What the copies of a group to the device bring, where it is no batch that a loader could pin."""
    if _moves_weights(group):
        yield WEIGHTS
    if _brings_no_batch(group):
        yield NO_BATCH
    if moves_made_before(group.place.running, _lines_above(group)):
        yield MADE_ANEW
    recording = group.timeline.trace.recording
    loader = recording.bare.loader if recording is not None and recording.bare is not None else None
    if loader is not None and loader.pinned and not group.place.runs_through(MODULE_CALL):
        yield PINNED_BEFORE


def _lines_above(group: Group) -> Iterator[str]:
    """The recorded lines of source above that of a group, the nearest first, without a gap."""
    site, recording = group.place.site, group.timeline.trace.recording
    if site is None or site.line is None or recording is None:
        return
    known, number = recording.sources.get(site.file, {}), site.line - 1
    while (text := known.get(str(number))) is not None:
        yield text
        number -= 1


def moves_weights_once(group: Group) -> bool:
    """Whether the copies of a trace without steps are a model's weights: a program that moves them in every step has
    steps that show it."""
    return not len(group.timeline.steps) and _moves_weights(group)


def moves_weights(place: Place) -> bool:
    """Whether a place is inside of ``Module.to`` or ``Module.cuda``."""
    names = ((frame.file, frame.function.rpartition(".")[2]) for frame in place.chain)
    return any(file.endswith(MODULE_CALL) and name in MODULE_MOVES for file, name in names)


def _moves_weights(group: Group) -> bool:
    """Whether the copies are those of ``Module.to``: by the stack, else many of them, large ones too, in a trace
    without steps before it computes anything."""
    if moves_weights(group.place):
        return True
    timeline, copies = group.timeline, group.timeline.copies
    rows = group.rows.copy[group.rows.copy >= 0]
    if len(timeline.steps) or len(rows) < MANY_WEIGHTS or copies.bytes[rows].max() < MODULE_BYTES:
        return False
    computed = timeline.activities.ts[is_compute(timeline.activities)]
    return bool(len(computed) and (copies.ts[rows] < computed.min()).all())


def _brings_no_batch(group: Group) -> bool:
    """Whether the copies, or nearly all of many, are small, and the trace has no loader, or they are made inside of a
    module; or whether what the loader brings is pinned; or whether the host waits for those of one value alone."""
    if _pins_batches(group.timeline) or _waits_for_values(group):
        return True
    if BATCHES.search(group.place.annotation or ""):
        return False
    inside = group.place.runs_through(MODULE_CALL)
    copy = group.rows.copy
    size = group.timeline.copies.bytes[copy[copy >= 0]]
    few = (size >= 0) & (size <= (MODULE_BYTES if inside else BATCH_BYTES))
    small = bool(len(size) and few.mean() >= (NEARLY_ALL if len(size) >= MANY else 1.0))
    return small and (inside or not len(group.timeline.loads))


def _waits_for_values(group: Group) -> bool:
    """Whether nearly all of the time that a group's copies hold the host is that of copies of one value each, which are
    no batches. Without lines a group has copies of several places."""
    copy, stall = group.rows.copy, np.maximum(group.rows.stall, 0)
    size = np.append(group.timeline.copies.bytes, -1)[copy]
    held = int(stall[(size >= 0) & (size <= VALUE_BYTES)].sum())
    return held > 0 and held >= NEARLY_ALL * int(stall.sum())


def _pins_batches(timeline: Timeline) -> bool:
    """Whether the threads that fetch batches copy from pinned memory after a fetch."""
    loads, copies = timeline.loads, timeline.copies
    if not len(loads):
        return False
    to_device = (copies.memory == "pinned") & (copies.direction == "HtoD") & np.isin(copies.tid, loads.tid)
    return bool((to_device & (copies.launch_ts >= loads.ts.min())).any())
