"""What fixing a finding changes about the program: one function for each intervention."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from syncscope.estimate.batches import take_from_pinning_thread
from syncscope.estimate.conditions import without_conditions
from syncscope.estimate.edits import NOTHING, Edit, Edits, Question, combine
from syncscope.estimate.extremes import without_extremes
from syncscope.estimate.gradients import spread_over_backward
from syncscope.estimate.idle import AT_MOST, cause_question, launch_in_time
from syncscope.estimate.masks import without_indices
from syncscope.estimate.study import Study
from syncscope.estimate.trips import without_making
from syncscope.estimate.waiting import without_call
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.collective_advice import is_made_cheaper
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.schema.idle import own_cause
from syncscope.timeline.copies import HOST_COPIES
from syncscope.timeline.intervals import Floats, Ints
from syncscope.timeline.launching import LAUNCHES
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.tables import Copies
from syncscope.timeline.warm_up import CAPTURE
from syncscope.trace.sets import different

FORMATTER_LAUNCHES = 7
"""Kernels that the printing of a tensor launches before its first wait, at most."""

SMALL_READ = 65_536
"""A copy of up to this many bytes is part of the read that waits for it."""

STACKED = 400.0
"""Nanoseconds of host work to put one small tensor beside the others, instead of copying it by itself."""

STACKING_RATE = 20.0
"""Bytes that the host puts beside the others in a nanosecond."""

PAGEABLE_RATE = 10.0
"""Bytes of a large copy from or to pageable memory in a nanosecond of its call, which brings them into pinned memory: 9
to 13 on an H200's host."""

GRAPH_NODE = 150.0
"""Nanoseconds of host work by which a node makes the launch of a graph longer."""

RECORDS = ("record", "warm")
"""Kinds of ``CompiledSpan`` in which a CUDA graph is recorded, or inputs of a new size are run before that."""

GRAPH_GAP = 250.0
"""Nanoseconds between two nodes of a graph on the device, its beginning and end shared out among them."""


def question(study: Study, hit: Hit) -> Question:
    """The edits that fix a finding; none where there is nothing to try, or the finding has no item inside the steps."""
    intervention = BY_CODE[hit.finding.rule].question
    return NOTHING if isinstance(intervention, NoQuestion) else Question.of(QUESTIONS[intervention](study, hit))


def remove_wait(study: Study, hit: Hit) -> Question:
    """The host does not wait. What it launches after waiting for a stream or an event waits for that on the device."""
    waits = study.timeline.waits.take(sorted(hit.waits))
    copied = waits.copy >= 0
    read = {item: Edit(free=True) for item in study.items(waits.call[copied])}
    # A copy to pageable memory waits in its own call, before the wait that completes it.
    copies = {item: Edit(free=True) for item in study.items(study.timeline.copies.launch[waits.copy[copied]])}
    explicit = {item: Edit(free=True, joins=True) for item in study.items(waits.call[~copied])}
    return combine([read, copies, explicit, without_call(study, [*explicit], [*read, *explicit])])


def remove_read(study: Study, hit: Hit, *, picks: int = 0) -> Question:
    """Neither the wait nor the small copy that it reads, nor what makes a condition, or finds a range, that only this
    reads; nor as many ``picks`` of what is read."""
    copies, items = study.copies(hit)
    waits, read = study.waits(hit), items[copies.bytes <= SMALL_READ].tolist()
    edits = {item: Edit(free=True) for item in waits}
    edits |= {item: Edit(own=0.0, gone=True, free=True) for item in read}
    made = without_conditions(study, hit) | without_extremes(study, hit)
    return combine([edits | made, without_call(study, read, waits, ops=1 + picks)])


def keep_shape(study: Study, hit: Hit) -> Question:
    """The size of a result is known, so it is not read, and a mask that keeps its shape is not made indices."""
    return combine([remove_read(study, hit), without_indices(study, study.waits(hit))])


def copy_asynchronously(study: Study, hit: Hit) -> Question:
    """Copies from and to pinned memory that the host does not wait for."""
    copies = study.copies(hit)[0]
    waits: Edits = {item: Edit(free=True) for item in study.waits(hit)}
    return combine([waits | study.copy_freely(copies), take_from_pinning_thread(study, copies)])


def prefetch(study: Study, hit: Hit) -> Question:
    """Asynchronous copies on a stream of their own, to the device a step early."""
    moved = study.copies(hit)[1].tolist()
    return combine([copy_asynchronously(study, hit), {item: Edit(early=True) for item in moved}])


def separate_directions(study: Study, hit: Hit) -> Edits:
    """Copies in one direction have another stream than those in the other."""
    return {item: Edit(beside=True) for item in study.copies(hit)[1].tolist()}


def remove_host_work(study: Study, hit: Hit) -> Edits:
    """Nothing of what a print or a pinning does, except for the copy to the device."""
    pins, prints = study.timeline.pins, study.timeline.prints
    edits: Edits = {}
    if not hit.waits:
        pinned = np.isin(pins.copy, sorted(hit.copies))
        edits = _remove_spans(study, pins.ts[pinned].astype(float), pins.end[pinned].astype(float))
    for number in different(prints[sorted(hit.waits)]) if hit.waits else ():
        waits = np.flatnonzero(prints == number)
        edits |= _remove_print(study, study.items(study.timeline.waits.call[waits]))
    return edits


def _remove_spans(study: Study, begin: Floats, end: Floats) -> Edits:
    """No host work, call or activity inside some spans of time (ns since the trace's base)."""
    base = study.base
    items = study.program.items
    starts = items.begin - items.pre
    edits: Edits = {}
    for first, last in zip((begin - base).tolist(), (end - base).tolist(), strict=True):
        for item in np.flatnonzero((starts < last) & (items.end > first) & (items.chain == 0)).tolist():
            pre, inside = items.pre[item], first <= items.begin[item] and items.end[item] <= last
            cut = max(0.0, min(items.begin[item], last) - max(starts[item], first))
            left = float(1 - cut / pre) if pre > 0 else 1.0
            edits[item] = Edit(pre=left, own=0.0, free=True, gone=True) if inside else Edit(pre=left)
    return edits


def _remove_print(study: Study, waits: list[int]) -> Edits:
    """Nothing from the formatter's first kernel to its last wait.

    Its first kernels come before any wait: the host's longest pause among as many launches as it makes shows where the
    formatter began.
    """
    if not waits:
        return {}
    items = study.program.items
    mine = np.flatnonzero((items.chain == items.chain[waits[0]]) & (items.step == items.step[waits[0]]))
    first = int(np.searchsorted(mine, waits[0]))
    launches = np.flatnonzero(items.stream[mine[:first]] >= 0)[-FORMATTER_LAUNCHES - 2 :]
    began = launches[np.argmax(items.pre[mine[launches]])] if len(launches) else first
    inside = mine[began : int(np.searchsorted(mine, waits[-1])) + 1].tolist()
    return {item: Edit(pre=0.0, own=0.0, free=True, gone=True) for item in inside}


def gather_copies(study: Study, hit: Hit) -> Edits:
    """One copy a step instead of many: the last, with the bytes of all. What the host did from one copy to the next
    goes too, where it launched nothing else."""
    edits: Edits = {}
    program = study.program.items
    launches, chain, work = program.stream >= 0, program.chain, program.pre + program.own
    every, items = study.copies(hit)
    order = np.argsort(every.launch, kind="stable")
    every, items = every.take(order), items[order]
    for step in different(every.step):
        copies, mine = every.take(every.step == step), items[every.step == step].tolist()
        stacked = STACKED + float(copies.bytes.mean()) / STACKING_RATE
        for place, following in itertools.pairwise(mine):
            between = np.flatnonzero(chain[place:following] == chain[place])[1:] + place
            between = between[:0] if launches[between].any() else between
            left = _share(stacked, float(work[between].sum() + work[place]))
            edits |= {item: Edit(pre=left, own=left, free=True) for item in between.tolist()}
            edits[place] = Edit(pre=left, own=left, free=True, gone=True)
        waits = study.completing(copies.take(np.arange(len(copies) - 1)))
        edits |= {item: Edit(own=0.0, free=True) for item in waits if item not in edits}
        if len(copies) > 1 and copies.direction[-1] in HOST_COPIES:
            pre = float(program.pre[mine[-1]])
            edits[mine[-1]] = Edit(pre=left + _staging_ns(copies) / max(pre, 1.0), dur=_pinned_ns(study, copies))
    return edits


def _pinned_ns(study: Study, copies: Copies) -> float:
    """How long the device takes for one copy of what some copies move."""
    return study.rate(str(copies.direction[-1])).ns(int(copies.bytes.sum()))


def _staging_ns(copies: Copies) -> float:
    """How long the call of one copy from pageable memory takes to bring what some copies move into pinned memory."""
    return float(copies.bytes.sum()) / PAGEABLE_RATE if copies.memory[-1] == "pageable" else 0.0


def _share(of: float, whole: float) -> float:
    """The share of a part in the whole, at most 1. It is rounded, so that many items are changed in the same way."""
    return round(of / max(whole, of), 3)


def keep_on_device(study: Study, hit: Hit) -> Question:
    """Neither the copies nor their waits, nor what the host makes between them: the data stay on the device."""
    copies, items = study.copies(hit)
    edits = {item: Edit(own=0.0, free=True) for item in (*study.waits(hit), *study.completing(copies))}
    edits |= {item: Edit(own=0.0, free=True, gone=True) for item in items.tolist()}
    return combine([edits, without_making(study, items[copies.direction == "HtoD"].tolist())])


def remove_allocation(study: Study, hit: Hit) -> Edits:
    """The calls are not made, so nothing waits in them."""
    return {item: Edit(own=0.0, free=True) for item in study.waits(hit)}


def replay_graphs(study: Study, hit: Hit) -> Question:
    """Each stretch of launches that all steps repeat is launched as one graph. Where graphs would take few of them, the
    fix is for all launches: that they take no time, and kernels are as close as in a graph, is what there is to gain at
    most."""
    if _is_of_other_steps(study, hit):
        return NOTHING
    return launch_graphs(study) if _repeats(study) else launch_at_once(study)


def record_no_graphs(study: Study, hit: Hit) -> Question:
    """Each stretch of launches that all steps repeat is one graph, where none does launches take no time, and the host
    does nothing while it records graphs, or runs what it will record."""
    if _is_of_other_steps(study, hit):
        return NOTHING
    timeline, calls = study.timeline, study.timeline.calls
    spans = [span for span in timeline.compiled.spans if span.kind in RECORDS] if timeline.compiled else []
    ts, end, tid = (np.array([getattr(span, name) for span in spans], dtype=np.int64) for name in ("ts", "end", "tid"))
    recording = timeline.warming_up(calls.ts, calls.end, calls.tid) == CAPTURE
    recording |= Nesting(ts, end, tid).innermost(calls.tid, calls.ts, calls.end) >= 0
    without = dict.fromkeys(study.items(np.flatnonzero(recording)), Edit(pre=0.0, own=0.0, free=True))
    return combine([launch_graphs(study) or launch_at_once(study), without])


def launch_at_once(study: Study) -> Question:
    """The host takes no time for launches that the device waits for, and kernels follow each other as in a graph."""
    in_time, kernels = launch_in_time(study), study.timeline.activities
    kernels = kernels.take((kernels.kind == "kernel") & (kernels.collective == "") & (kernels.launch >= 0))
    closer = dict.fromkeys(study.items(kernels.launch), Edit(gap=GRAPH_GAP))
    return combine([in_time, closer]) if in_time else NOTHING


def launch_graphs(study: Study) -> Question:
    """Each stretch of launches that all steps repeat is launched as one graph; none where no stretch is."""
    launching, chain = study.timeline.launching, study.program.items.chain
    inside = [np.empty(0, dtype=np.int64)]
    for graph in launching.graphs or () if launching else ():
        launches = study.items(graph)
        if launches:
            after = np.arange(launches[0] + 1, launches[-1] + 1)
            inside.append(after[chain[after] == chain[launches[0]]])
    return _follow_in_graph(study, np.concatenate(inside))


def _follow_in_graph(study: Study, changed: Ints) -> Question:
    """Items that are launched by the same call as those before them."""
    items = study.program.items
    work = items.pre + items.own
    shares, way = np.unique(np.round(GRAPH_NODE / np.maximum(work[changed], GRAPH_NODE), 3), return_inverse=True)
    return Question(changed, way, tuple(Edit(pre=share, own=share, gap=GRAPH_GAP) for share in shares.tolist()))


def join_graphs(study: Study, hit: Hit) -> Question:
    """The stretches that all steps repeat as one graph each, without the waits at the line that breaks the graph, and
    without the Python on both sides of them."""
    if _is_of_other_steps(study, hit):
        return NOTHING
    waits = study.waits(hit)
    joined = _follow_in_graph(study, _between_launches(study, waits))
    return combine([launch_graphs(study), joined, {item: Edit(free=True) for item in waits}])


def _between_launches(study: Study, waits: Sequence[int]) -> Ints:
    """The items behind the last launch of a kernel before each wait, up to the first one after it: what a graph that
    does not end there takes the place of. Nothing, where a side has no launch in the same step."""
    items, calls = study.program.items, study.timeline.calls
    launches = np.array(study.items(np.flatnonzero(calls.do(LAUNCHES))), dtype=np.int64)
    between: set[int] = set()
    for wait in waits:
        alike = launches[(items.chain[launches] == items.chain[wait]) & (items.step[launches] == items.step[wait])]
        before, after = alike[alike < wait], alike[alike > wait]
        if len(before) and len(after):
            rows = np.arange(before[-1] + 1, after[0] + 1)
            between.update(rows[items.chain[rows] == items.chain[wait]].tolist())
    return np.array(sorted(between), dtype=np.int64)


def _is_of_other_steps(study: Study, hit: Hit) -> bool:
    """Whether what torch.compile did is of another phase than the recorded one."""
    recording = study.timeline.trace.recording
    compiled = hit.finding.site_source == "compile"
    return compiled and recording is not None and hit.finding.phase != recording.phase


def is_at_most(study: Study, hit: Hit) -> bool:
    """Whether a finding's question says only what there is to gain at most."""
    if is_made_cheaper(hit.finding.fix):
        return True
    intervention, own = BY_CODE[hit.finding.rule].question, own_cause(hit.finding)
    if intervention is Intervention.JOIN_GRAPHS:
        return True
    if intervention is Intervention.FILL_IDLE:
        return own is not None and own.cause in AT_MOST
    return intervention is Intervention.REPLAY_GRAPHS and not _repeats(study)


def _repeats(study: Study) -> bool:
    """Whether graphs would take most launches."""
    return study.timeline.launching is not None and study.timeline.launching.repeats


def overlap_collectives(study: Study, hit: Hit) -> Edits:
    """The collectives that a finding speaks of run beside compute: those that reduce gradients beside the backward that
    makes them, others beside what follows them, until the step ends. Those that a fix makes cheaper take no time."""
    own = study.timeline.collectives.take(sorted(hit.collectives))
    item = study.program.items_of(own.launch)
    size = {number: float(count) for number, count in zip(item.tolist(), own.bytes, strict=True) if number >= 0}
    if is_made_cheaper(hit.finding.fix):
        return {number: Edit(dur=0.0) for number in size}
    gradients = spread_over_backward(study.timeline, study.program, size)
    if gradients or not size:
        return gradients
    marks = np.flatnonzero(study.program.items.mark).tolist()
    return {number: Edit(early=True) for number in size} | {number: Edit(joins=True) for number in marks}


def fill_idle(study: Study, hit: Hit) -> Question:
    """The device never waits for the longest cause that no other finding is about."""
    own = own_cause(hit.finding)
    return NOTHING if own is None else cause_question(study, own.cause)


def launch_asynchronously(study: Study, hit: Hit) -> Edits:
    """Every launch returns at once."""
    items = study.program.items
    return {item: Edit(free=True) for item in np.flatnonzero(items.blocks & ~items.pageable).tolist()}


Intervene = Callable[[Study, Hit], Edits | Question]

QUESTIONS: dict[Intervention, Intervene] = {
    Intervention.REMOVE_WAIT: remove_wait,
    Intervention.REMOVE_READ: remove_read,
    Intervention.KEEP_SHAPE: keep_shape,
    Intervention.REMOVE_HOST_WORK: remove_host_work,
    Intervention.REMOVE_ALLOCATION: remove_allocation,
    Intervention.COPY_ASYNCHRONOUSLY: copy_asynchronously,
    Intervention.PREFETCH: prefetch,
    Intervention.SEPARATE_DIRECTIONS: separate_directions,
    Intervention.GATHER_COPIES: gather_copies,
    Intervention.KEEP_ON_DEVICE: keep_on_device,
    Intervention.OVERLAP_COLLECTIVES: overlap_collectives,
    Intervention.LAUNCH_ASYNCHRONOUSLY: launch_asynchronously,
    Intervention.FILL_IDLE: fill_idle,
    Intervention.REPLAY_GRAPHS: replay_graphs,
    Intervention.RECORD_NO_GRAPHS: record_no_graphs,
    Intervention.JOIN_GRAPHS: join_graphs,
}
"""What each intervention changes."""
