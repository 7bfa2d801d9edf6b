"""What the program would be like if the device never waited for one of the causes of its idle time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from syncscope.estimate.edits import NOTHING, Edit, Edits, Question
from syncscope.estimate.program import Program
from syncscope.estimate.study import Study
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats, Ints
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.tables import CAUSES
from syncscope.timeline.waits import is_wait
from syncscope.trace.sets import different

OF_HOST = ("data loading", "allocation", "pageable copy", "host collective", "host idle", "launching", "host work")
"""Causes that take up the part of a bubble between what a wait caused and the launch."""

AT_MOST = frozenset({"host collective", "host idle", "launching", "host work"})
"""Causes that seldom go as a whole, so that their saving is the most there is."""

BEYOND_ITSELF = frozenset({"data loading"})
"""Causes whose saving may be more than they explain: what the host does behind a late batch comes sooner too."""

WHY_AT_MOST = "it is the most there is: that much if none of this time were left, and seldom can all of it go"

ONCE = "it is done once: later steps do not repeat it"

WHY_NONE = {
    "collective": "how long a collective takes depends on the other ranks: compare their traces",
    "launch latency": "it is what the device takes to begin what was launched: only fewer launches make it less",
    "queued on device": "the work was launched in time, and the device held it back: no change on the host helps",
    "unknown": "the trace does not show what the device did or what the host did: record all of their work",
    "warm-up": ONCE,
    PAUSE: "one step of several has it: it is no part of each",
}
"""Why there is nothing to try, by cause."""


def cause_question(study: Study, cause: str) -> Question:
    """The edits that leave a cause of idle time out; none where there is nothing to try."""
    if cause not in study.by_cause:
        ask = QUESTIONS.get(cause)
        study.by_cause[cause] = NOTHING if ask is None else Question.of(ask(study))
    return study.by_cause[cause]


def load_ahead(study: Study) -> Question:
    """Every batch is there when it is asked for."""
    timeline, items = study.timeline, study.program.items
    loads = timeline.loads.take(np.isin(timeline.loads.tid, timeline.calls.tid))
    edits = _leave_out(study, loads.ts, loads.end, np.ones(len(loads)))
    return edits | {item: Edit(batch=0.0) for item in np.flatnonzero(items.loading > 0).tolist()}


def launch_in_time(study: Study) -> Question:
    """The host takes no time for launches that the device waits for."""
    return _shorten(study, "launching")


def skip_host_work(study: Study) -> Question:
    """The host does no work of its own that the device waits for."""
    return _shorten(study, "host work")


def empty_no_queue(study: Study) -> Edits:
    """The host does not wait where that emptied the queue; what is launched next waits on the device instead. No wait
    of warm-up does."""
    waits, rows = study.timeline.waits, study.timeline.bubbles.emptied_by
    waits = waits.take(different(rows[rows >= 0]))
    read = {item: Edit(free=True) for item in study.items(waits.call[waits.copy >= 0])}
    return read | {item: Edit(free=True, joins=True) for item in study.items(waits.call[waits.copy < 0])}


def allocate_ahead(study: Study) -> Edits:
    """No calls that get memory from the driver or give it back, but for those of warm-up."""
    timeline = study.timeline
    waits = timeline.waits.take(~is_wait(timeline.waits.kind))
    waits = waits.take(timeline.warming_up(waits.ts, waits.end, waits.tid) == "")
    return {item: Edit(own=0.0, free=True) for item in study.items(waits.call)}


def pin_copies(study: Study) -> Edits:
    """Copies from and to pageable memory are from and to pinned memory, and the host does not wait for them, but for
    those of warm-up."""
    timeline, copies = study.timeline, study.timeline.copies
    copies = copies.take((copies.memory == "pageable") & (copies.launch >= 0))
    copies = copies.take(timeline.warming_up(copies.launch_ts, copies.launch_end, copies.tid) == "")
    return study.copy_freely(copies)


def meet_no_other(study: Study) -> Question:
    """The host waits for no other rank in collectives of the hosts' own."""
    return _shorten(study, "host collective")


def never_idle(study: Study) -> Question:
    """The host neither sleeps nor waits for a thread or another process."""
    return _shorten(study, "host idle")


QUESTIONS: dict[str, Callable[[Study], Edits | Question]] = {
    "wait": empty_no_queue,
    "data loading": load_ahead,
    "allocation": allocate_ahead,
    "pageable copy": pin_copies,
    "host collective": meet_no_other,
    "host idle": never_idle,
    "launching": launch_in_time,
    "host work": skip_host_work,
}
"""What leaves each cause out."""


def leave_out_warm_up(study: Study) -> Question:
    """The steps without the host's part of what is done once: the base of all savings."""
    warm_ups, items = study.timeline.warm_ups, study.program.items
    tid = np.append(study.timeline.calls.tid, -1)[items.call]
    edits = NOTHING
    for thread in different(warm_ups.tid).tolist():
        own, chains = warm_ups.take(warm_ups.tid == thread), items.chain[tid == thread]
        if len(chains):
            edits |= _leave_out(study, own.ts, own.end, np.ones(len(own)), int(chains[0]))
    calls = study.timeline.calls.take(items.call[(items.call >= 0) & (items.wait | items.blocks)])
    once = calls.row[study.timeline.warming_up(calls.ts, calls.end, calls.tid) != ""]
    return edits | {item: Edit(pre=0.0, own=0.0, free=True) for item in study.items(once)}


def without_pauses(timeline: Timeline, program: Program) -> Program:
    """The program without the pauses of a single step, in as far as the host launches only after them; itself where
    there are none."""
    bubbles, calls, items = timeline.bubbles, timeline.calls, program.items
    item, begin = program.items_of(bubbles.launch), bubbles.ts + bubbles.due_to("wait")
    held = np.where(item >= 0, np.minimum(np.append(calls.ts, 0)[bubbles.launch], bubbles.end), begin) - begin
    paused = (bubbles.due_to(PAUSE) > 0) & (held > 0)
    if not paused.any():
        return program
    pre, own, study = items.pre.copy(), items.own.copy(), Study(timeline, program)
    chain_of = items.chain[item]
    for chain in different(chain_of[paused]).tolist():
        mine = paused & (chain_of == chain)
        left = _leave_out(study, begin[mine], begin[mine] + held[mine], np.ones(int(mine.sum())), chain)
        pre[left.items] *= left.column("pre")
        own[left.items] *= left.column("own")
    gone = float((items.pre - pre + items.own - own).sum())
    return msgspec.structs.replace(
        program, items=items.replace(pre=pre, own=own), host_ns=program.host_ns - gone,
        device_ns=program.device_ns - gone,
    )  # fmt: skip


def _shorten(study: Study, cause: str) -> Question:
    """Less host work in the bubbles that a cause explains in part, by that part."""
    bubbles, items = study.timeline.bubbles, study.program.items
    of_host = bubbles.by_cause[:, [CAUSES.index(name) for name in OF_HOST]].sum(axis=1)
    due = bubbles.due_to(cause)
    item = study.program.items_of(bubbles.launch)
    chain_of = np.where(item >= 0, items.chain[item], -1)
    chains, many = np.unique(chain_of[item >= 0], return_counts=True)
    if len(chains):  # what ends a gap may have a launch that the trace does not hold, most likely of the busiest thread
        ends = study.timeline.span is not None and bubbles.end >= study.timeline.span[1]
        chain_of = np.where((item >= 0) | ends, chain_of, chains[many.argmax()])
    edits = NOTHING
    for chain in chains.tolist():
        mine = (chain_of == chain) & (due > 0)
        begin = bubbles.ts[mine] + bubbles.due_to("wait")[mine]
        edits |= _leave_out(study, begin, begin + of_host[mine], due[mine] / of_host[mine], chain)
    return edits


def _leave_out(study: Study, begin: Ints, end: Ints, share: Floats, chain: int = 0) -> Question:
    """Less host work of a chain within spans of time (ns since the trace's base), by a share of each."""
    if not len(begin):
        return NOTHING
    items = study.program.items
    order = np.argsort(begin, kind="stable")
    share, begin = share[order], np.maximum.accumulate(begin[order])
    end = np.maximum(np.maximum.accumulate(end[order]), begin)
    begin[1:] = np.maximum(begin[1:], end[:-1])  # spans that overlap count once
    end = np.maximum(end, begin)
    times = np.stack([begin, end], axis=1).ravel() - study.base
    left_out = np.repeat(np.cumsum((end - begin) * share), 2)
    left_out[::2] -= (end - begin) * share

    def within(first: Floats, last: Floats) -> Floats:
        return np.interp(last, times, left_out, left=0.0) - np.interp(first, times, left_out, left=0.0)

    works = items.chain == chain
    pre = _stays(items.pre, within(items.begin - items.pre, items.begin))
    own = np.where(items.wait | items.blocks, 1.0, _stays(items.own, within(items.end - items.own, items.end)))
    changed = np.flatnonzero(works & ((pre < 1) | (own < 1)))
    kinds, way = np.unique(pre[changed] + 1j * own[changed], return_inverse=True)
    return Question(changed, way, tuple(Edit(pre=kind.real, own=kind.imag) for kind in kinds.tolist()))


def _stays(work: Floats, cut: Floats) -> Floats:
    """The share of some host work that stays, to a hundredth, so that many items are changed in the same way."""
    left: Floats = np.clip(1 - cut / np.maximum(work, 1.0), 0.0, 1.0)
    return np.round(left, 2)
