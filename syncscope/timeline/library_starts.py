"""What the first use of a library costs once: cuBLAS, cuDNN and their like make a handle, load and choose kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.calls import COMMANDS, last_before
from syncscope.timeline.first_launches import LONG_LOAD, first_of_each_name
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import group_rows, number_texts, passing
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Activities, Calls, Objects, Ops, Steps
from syncscope.trace.names import SYNC_ROLES
from syncscope.trace.sets import different

INQUIRIES: Final = compile_later(
    r"(?:cuda|hip|cu|hipModule)(?:Occupancy|Func(?:Get|Set)|StreamCreate|GetDevice|DeviceGet|DevicePrimaryCtx|Init$)"
)
"""Calls that ask or set something and have no work of the device to wait for. One that takes ``LONG_LOAD`` sets up the
device, or loads the module of the kernel that it is about."""

KERNELS: Final = {
    "blas": compile_later(r"gemm|gemv|splitK|Cijk_|nvjet|cublas|rocblas", re.IGNORECASE),
    "dnn": compile_later(r"cudnn|miopen|conv|wgrad|dgrad|fprop|winograd|batchnorm", re.IGNORECASE),
}
"""In the names of kernels, by library."""

LIBRARY_OPS: Final = compile_later(
    r"aten::_*(?:(?:int_|scaled_)?(?:mm|addmm|bmm|baddbmm|addmv|mv|dot|linear)|(?:cudnn|miopen)\w*|fft\w*|linalg_\w+"
    r"|convolution_backward)$"
)
"""Ops that do nothing on the host but to have a library choose and launch its kernels."""

PRODUCTS: Final = compile_later(r"aten::_*(?:(?:int_|scaled_)?(?:mm|addmm|bmm|baddbmm|addmv|mv|dot|linear))$")
"""Those of them that cuBLAS does, which makes a handle for each thread."""

MAKES_HANDLE: Final = compile_later(r"(?:cuda|hip)(?:DeviceGetAttribute|FuncSetAttribute)$")
"""What a library asks and sets between giving memory back and taking its own: PyTorch's allocator does not."""

PLANNED: Final = compile_later(r"aten::(?:cudnn|miopen)_\w*conv\w*$|aten::convolution_backward$")
"""Those of them that choose a plan for each shape that they have not met before, which several kernels of one name may
serve, and keep it."""

REGULAR: Final = 0.5
"""If at least this share of the steps chooses plans, shapes change all the time, and it is no warm-up."""

ALIKE: Final = 0.03
"""Two ops are of one shape if they run the same kernels and take the device as long, within this share."""

_Spans = Iterator[tuple[int, int, int]]


def find_slow_inquiries(calls: Calls) -> Ints:
    """Rows of ``calls`` that load a module or set up the device, though they are no launches."""
    slow = np.flatnonzero(calls.dur >= LONG_LOAD)
    return slow[passing(calls.name[slow], INQUIRIES.match)]


def find_library_starts(ops: Ops, calls: Calls, activities: Activities, loading: Ints) -> _Spans:
    """Begin, end and thread of what comes before a first launch of a kernel, since the thread last gave the device
    something to do or waited for it, and inside the same op, where it takes ``LONG_LOAD``.

    Where memory is given back there, the library makes its handle: PyTorch's allocator has nothing to give back before
    the first kernel of a library. Without ops it must be the library's first kernel. What comes before a launch that
    loads its kernel (``loading``, rows of ``calls``) is the first use of what chose the kernel.
    """
    first = first_of_each_name(activities)
    launch = activities.launch[first]
    since, op = _since(calls, launch), ops.nesting.innermost(calls.tid[launch], calls.ts[launch], calls.end[launch])
    frees = np.flatnonzero(calls.do(["device-free"]))
    names, loads = activities.name[first], set(loading.tolist())
    begins = _first_of_library(names, calls.ts[launch])
    for at in np.flatnonzero(since < calls.ts[launch]).tolist():
        row, begin = int(launch[at]), int(since[at])
        if op[at] >= 0:
            chain = [*ops.nesting.chain(int(op[at]))]
            begin = max(begin, int(ops.ts[chain].min()))
            of_library = any(LIBRARY_OPS.match(ops.name[one]) for one in chain)
        else:
            of_library = not len(ops) and bool(begins[at])
        freed = frees[(calls.tid[frees] == calls.tid[row]) & (calls.ts[frees] >= begin)]
        freed = freed[calls.end[freed] <= calls.ts[row]]
        starts = of_library and len(freed) > 0 and int(calls.dur[freed].max()) >= LONG_LOAD
        first_use = row in loads and (op[at] >= 0 or not len(ops))
        if int(calls.ts[row]) - begin >= LONG_LOAD and (starts or first_use):
            yield begin, int(calls.ts[row]), int(calls.tid[row])


def find_handles(ops: Ops, calls: Calls) -> _Spans:
    """Begin, end and thread of what makes a library's handle, once on each thread, however short it is: in a matrix
    product, from where memory is given back to the last that is asked or taken. It also copies, and waits for that."""
    frees, takes = (np.flatnonzero(calls.do([role])) for role in ("device-free", "device-alloc"))
    if not len(frees) or not len(takes) or not len(ops):
        return
    asks = np.flatnonzero(passing(calls.name, MAKES_HANDLE.match))
    op = ops.nesting.innermost(calls.tid[frees], calls.ts[frees], calls.end[frees])
    made: set[int] = set()
    for row in different(op[op >= 0]).tolist():
        tid = int(ops.tid[row])
        if tid in made or not PRODUCTS.match(ops.name[row]):
            continue
        begin, end = int(calls.ts[frees[op == row][0]]), int(ops.end[row])
        taken, asked = (
            rows[(calls.tid[rows] == tid) & (calls.ts[rows] >= begin) & (calls.end[rows] <= end)]
            for rows in (takes, asks)
        )
        if len(taken) and len(asked) and calls.ts[asked[0]] < calls.ts[taken[0]]:
            made.add(tid)
            yield begin, int(max(calls.end[asked[-1]], calls.end[taken[-1]])), tid


def find_first_choices(ops: Ops, calls: Calls, activities: Activities, steps: Steps) -> _Spans:
    """Begin, end and thread of the silence in which a library chooses a kernel that it has not launched before: in a
    library's op, from its begin or its last call to the launch, whatever it asks and sets between. Where a later launch
    of the kernel took as long, it is something else, but for the plans of convolutions, of which each shape has its
    own, and which ask for much."""
    known = np.flatnonzero(activities.launch >= 0)
    if not len(known) or not len(ops):
        return
    known = known[np.argsort(activities.launch[known], kind="stable")]
    launch, name = activities.launch[known], activities.name_places[known]
    op = ops.around(calls)[launch]
    chooses = (op >= 0) & np.append(ops.named(LIBRARY_OPS.match), False)[op]
    others = np.flatnonzero(~passing(calls.name, INQUIRIES.match))
    last = last_before(calls.ts[launch], calls.tid[launch], others, calls.ts, calls.tid)
    since = np.where(last >= 0, np.append(_all_returned(calls), 0)[last], np.iinfo(np.int64).min)
    begin = np.maximum(since, np.append(ops.ts, 0)[op])
    planned = chooses & np.append(ops.named(PLANNED.match), False)[op]
    before, op_ts = _since(calls, launch), np.append(ops.ts, 0)[op]
    before = np.where(before < calls.ts[launch], before, op_ts)  # nothing comes before the first of a thread
    begin = np.where(planned, np.maximum(before, op_ts), begin)
    slow = chooses & (calls.ts[launch] - begin >= LONG_LOAD)
    often = np.bincount(name, weights=slow)[name] > 1
    first = np.zeros(len(known), dtype=bool)
    first[np.unique(name, return_index=True)[1]] = True
    of_steps = different(step_of(steps, calls.ts[launch[slow & planned]]))
    if len(steps) > 1 and (of_steps >= 0).sum() >= REGULAR * len(steps):
        planned[:] = False
    planned &= _meets_shape(name, op, activities.dur[known], slow & planned)
    for at in np.flatnonzero(slow & (planned | (first & ~often))).tolist():
        yield int(begin[at]), int(calls.ts[launch[at]]), int(calls.tid[launch[at]])


def _meets_shape(name: Ints, op: Ints, dur: Ints, asked: Bools) -> Bools:
    """Which launches (n,), in order of time, are the first of an op with a shape of its own: no earlier op ran the same
    kernels, ``name``, for as long. The trace need not hold shapes. True only among the ``asked`` (n,): most launches
    are not slow, and only ops that begin with the same kernel as an asked one are looked at."""
    meets = np.zeros(len(op), dtype=bool)
    if not asked.any():
        return meets
    ops, heads = np.unique(op, return_index=True)
    kept = np.flatnonzero(np.isin(op, ops[np.isin(name[heads], name[heads[asked[heads]]])]))
    seen: dict[tuple[int, ...], list[float]] = {}
    for rows in sorted((kept[rows] for rows in group_rows(op[kept])), key=lambda rows: int(rows[0])):
        ns, before = float(dur[rows].sum()), seen.setdefault(tuple(name[rows].tolist()), [])
        meets[rows[0]] = not any(abs(ns - other) <= ALIKE * max(ns, other) for other in before)
        before.append(ns)
    return meets & asked


def _all_returned(calls: Calls) -> Ints:
    """For each call (n,) when it and all that its thread began before had returned. Where times are whole microseconds,
    a long call may begin at the same time as a short one behind it."""
    returned = calls.end.copy()
    for rows in group_rows(calls.tid):
        returned[rows] = np.maximum.accumulate(calls.end[rows])
    return returned


def _since(calls: Calls, launch: Ints) -> Ints:
    """For each launch (n,) when its thread last returned from a command or a wait, the least number for the first."""
    rows = np.flatnonzero(calls.do([*COMMANDS, *SYNC_ROLES]))
    last = last_before(calls.ts[launch], calls.tid[launch], rows, calls.ts, calls.tid)
    tids, thread = np.unique(calls.tid[launch], return_inverse=True)
    begin = np.array([calls.ts[calls.tid == tid].min() for tid in tids.tolist()], dtype=np.int64)[thread]
    return np.where(last >= 0, np.append(calls.end, 0)[last], begin)


@lru_cache(maxsize=4096)
def _libraries(name: str) -> tuple[str, ...]:
    """Those whose kernels have such a name."""
    return tuple(library for library, kernels in KERNELS.items() if kernels.search(name))


def _first_of_library(names: Objects, ts: Ints) -> Bools:
    """Which kernels (n,) are the first that their library launches."""
    found = np.zeros(len(names), dtype=bool)
    number, known = number_texts(names)
    libraries = [_libraries(name) for name in known]
    for library in KERNELS:
        own = np.flatnonzero(np.array([library in named for named in libraries], dtype=bool)[number])
        if len(own):
            found[own[np.argmin(ts[own])]] = True
    return found
