"""What the first launch of a kernel costs once: its module is loaded, or it is compiled while the program runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.calls import COMMANDS, last_before
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import number_in_group
from syncscope.timeline.tables import Activities, Calls, Ops
from syncscope.trace.sets import different

LONG_LOAD: Final = 1_000_000
"""A first launch of a kernel that takes this many nanoseconds loads it: a launch takes 5 to 20 µs."""

LONG_COMPILATION: Final = 10_000_000
"""Nanoseconds without an op or a call, at least, in which a kernel is compiled. NVRTC, Triton and LLVM take longer."""

AT_ONCE: Final = 100_000
"""Nanoseconds after the return of a launch in which its kernel, or what the device ran before it, ends its turn."""

FALLBACK: Final = compile_later(r"fallback_function$")
"""What TorchScript runs of a function where the guards of its fused code do not hold, or where it has none yet."""

LOADS_MODULE: Final = compile_later(r"(?:cu|cuda|hip)(?:Module|Library)Load")
"""Calls that load a module, by the begin of their names."""

MODULES: Final = compile_later(r"cuLaunchKernel(?:Ex)?$|hip(?:Ext|Hcc)?ModuleLaunchKernel$|hipDrvLaunchKernelEx$")
"""Calls that launch from a module that the program loaded itself: kernels made while it runs, and those of libraries
that keep them in files."""


def find_loading_launches(activities: Activities, calls: Calls) -> Ints:
    """Rows of ``calls``: first launches of a kernel that take long because they load it (CUDA_MODULE_LOADING=LAZY).

    A launch also takes long where the queue is full, or where it waits for its kernel (CUDA_LAUNCH_BLOCKING=1). The
    kernel of one that loads may start milliseconds after it returned, but then nothing else keeps the device.
    """
    rows = first_of_each_name(activities)
    launch = activities.launch[rows]
    returned = calls.end[launch]
    quiet = _ran_until(activities)[rows] <= returned + AT_ONCE
    at_once = (activities.ts[rows] - returned <= AT_ONCE) | (quiet & _follows_what_ran(calls, activities)[launch])
    besides = calls.dur[launch] - activities.dur[rows]
    loading: Ints = launch[at_once & (calls.role[launch] == "launch") & (besides >= LONG_LOAD)]
    return loading


def find_compilations(ops: Ops, calls: Calls, activities: Activities) -> Iterator[tuple[int, int, int]]:
    """Begin, end and thread of the silence inside an op that comes before its first launch of a kernel from a module:
    a fuser of TorchScript, NVRTC or a Triton kernel compiles there. Where a later launch of the kernel took as long,
    it is the op's own work."""
    known = np.flatnonzero(activities.launch >= 0)
    known = known[calls.named(MODULES.match)[activities.launch[known]]]
    if not len(known) or not len(ops):
        return
    known = known[np.argsort(activities.launch[known], kind="stable")]
    launch, name = activities.launch[known], activities.name_places[known]
    commands = np.flatnonzero(calls.do(COMMANDS))
    last = last_before(calls.ts[launch], calls.tid[launch], commands, calls.ts, calls.tid)
    since = np.where(last >= 0, np.append(calls.end, 0)[last], np.iinfo(np.int64).min)
    op = ops.around(calls)[launch]
    outermost = np.array([_outermost(ops, row) for row in op.tolist()], dtype=np.int64)
    begin = np.where(op >= 0, np.maximum(since, np.append(ops.ts, 0)[outermost]), calls.ts[launch])
    slow = calls.ts[launch] - begin >= LONG_COMPILATION
    first, often = number_in_group(name) == 0, np.bincount(name, weights=slow)[name] > 1
    for at in np.flatnonzero(slow & first & ~often).tolist():
        tid = int(calls.tid[launch[at]])
        found = _longest_silence(ops, calls, tid, int(begin[at]), int(calls.ts[launch[at]]))
        if found[1] - found[0] >= LONG_COMPILATION:
            yield *found, tid


def find_made_modules(ops: Ops, calls: Calls) -> Iterator[tuple[int, int, int]]:
    """Begin, end and thread of the silence inside an op that comes before it loads a module, since its thread last gave
    the device something to do: a library (MIOpen, NVRTC) makes the module there, one for each shape that it has not
    met, so the kernel may have run before."""
    loads, commands = calls.named(LOADS_MODULE.match), np.flatnonzero(calls.do(COMMANDS))
    rows = np.flatnonzero(loads)
    if not len(rows) or not len(ops):
        return
    op = ops.nesting.innermost(calls.tid[rows], calls.ts[rows], calls.end[rows])
    last = last_before(calls.ts[rows], calls.tid[rows], commands, calls.ts, calls.tid)
    since = np.where(last >= 0, np.append(calls.end, 0)[last], np.iinfo(np.int64).min)
    for at in np.flatnonzero(op >= 0).tolist():
        tid, end = int(calls.tid[rows[at]]), int(calls.ts[rows[at]])
        begin = max(int(since[at]), int(ops.ts[_outermost(ops, int(op[at]))]))
        if end - begin < LONG_COMPILATION:
            continue
        found = _longest_silence(ops, calls, tid, begin, end)
        if found[1] - found[0] >= LONG_COMPILATION:
            yield *found, tid


def find_scripted(ops: Ops, calls: Calls) -> Iterator[tuple[int, int, int]]:
    """Begin, end and thread of the silence that comes before the first run of a function that TorchScript compiled: it
    optimises the function there, and what its guards turn down then runs in a ``fallback_function``. Where a later run
    comes after as long a silence, it is the program's own work."""
    runs: dict[str, list[int]] = {}
    for row in {_outermost(ops, row): None for row in np.flatnonzero(ops.named(FALLBACK.match)).tolist()}:
        runs.setdefault(str(ops.name[row]), []).append(row)
    for rows in runs.values():
        before = [_silence_before(ops, calls, row) for row in rows]
        slow = [end - begin >= LONG_COMPILATION for begin, end in before]
        if slow[0] and not any(slow[1:]):
            yield *before[0], int(ops.tid[rows[0]])


def first_of_each_name(activities: Activities) -> Ints:
    """The first activity of each name whose launch is known."""
    known = np.flatnonzero(activities.launch >= 0)
    return known[np.unique(activities.name_places[known], return_index=True)[1]]


def _ran_until(activities: Activities) -> Ints:
    """For each activity (n,) when what its device began before it ends, 0 for the first."""
    until = np.zeros(len(activities), dtype=np.int64)
    for device in different(activities.device):
        rows = np.flatnonzero(activities.device == device)
        until[rows[1:]] = np.maximum.accumulate(activities.end[rows])[:-1]
    return until


def _follows_what_ran(calls: Calls, activities: Activities) -> Bools:
    """Which calls (n,) come after a command that has an activity: before others, the queue may hold what the trace
    lost."""
    ran = np.zeros(len(calls), dtype=bool)
    ran[activities.launch[activities.launch >= 0]] = True
    commands = np.flatnonzero(calls.do(COMMANDS))
    slot = np.searchsorted(commands, np.arange(len(calls))) - 1
    follows: Bools = (slot >= 0) & np.append(ran[commands], False)[slot]
    return follows


def _outermost(ops: Ops, row: int) -> int:
    return [*ops.nesting.chain(row)][-1] if row >= 0 else -1


def _silence_before(ops: Ops, calls: Calls, row: int) -> tuple[int, int]:
    """From the last time that the thread of an op ended an op or a call before it to its begin."""
    end = int(ops.ts[row])
    own = [table.end[(table.tid == ops.tid[row]) & (table.end <= end)] for table in (ops, calls)]
    return max((int(ends.max()) for ends in own if len(ends)), default=end), end


def _longest_silence(ops: Ops, calls: Calls, tid: int, begin: int, end: int) -> tuple[int, int]:
    """The longest stretch between two times in which no op and no call of a thread begins or ends, with those beside it
    that nothing but brief ops parts from it: a compiler runs some to evaluate what does not change."""
    edges = [np.array([begin, end], dtype=np.int64)]
    for table in (ops, calls):
        own = table.tid == tid
        edges += [table.ts[own], table.end[own]]
    times = different(np.clip(np.concatenate(edges), begin, end))
    took = np.diff(times)
    longest = int(np.argmax(took))
    works = (ops.tid == tid) & (ops.ts > begin) & (ops.end < end) & (ops.end - ops.ts > AT_ONCE)
    since, until = np.sort(ops.ts[works]), np.sort(ops.end[works])
    at_work = np.searchsorted(since, times[:-1], "right") > np.searchsorted(until, times[:-1], "right")
    first = _reach(took[:longest][::-1], at_work[:longest][::-1])
    last = _reach(took[longest + 1 :], at_work[longest + 1 :])
    return int(times[longest - first]), int(times[longest + last + 1])


def _reach(took: Ints, at_work: Bools) -> int:
    """How many of the stretches in a row, the next ones first, are silence too, besides brief ops between them. Those
    in which an op is ``at_work`` for long, or many in quick succession, end it."""
    reach, brief = 0, 0
    for at, (length, works) in enumerate(zip(took.tolist(), at_work.tolist(), strict=True)):
        if works:
            break
        if length >= LONG_LOAD:
            reach, brief = at + 1, 0
        else:
            brief += length
        if brief > AT_ONCE:
            break
    return reach
