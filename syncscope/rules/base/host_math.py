"""Whether a program computes, or draws random numbers, on the CPU while its device waits for that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from syncscope.advice import Advice
from syncscope.patterns import compile_later
from syncscope.timeline import Timeline
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Union
from syncscope.timeline.silent_ops import launch_elsewhere, number_trees

ON_CPU = "on-cpu"
"""The name for host work that is mathematics of the program's own, on tensors of the CPU."""

PRODUCTS = compile_later(r"aten::(?:mm|bmm|addmm|baddbmm|mv|addmv|mkldnn_\w+|thnn_conv2d|slow_conv3d)$")
"""Ops that give each device something to do, or compute on the CPU."""

DRAWS = "draws-on-cpu"
"""The name for host work that is mostly random numbers that are drawn on the CPU."""

RANDOM = compile_later(r"aten::(?:normal|uniform|random|bernoulli|exponential|geometric|log_normal|cauchy)_$")
"""Ops that fill a tensor with random numbers, wherever it is."""

HALF = 2
TENTH = 10
"""So small a part of the host work says that the program computes there: beside each product it also copies, gathers
and normalises on the CPU."""

COMPUTES_ON_CPU = Advice(
    f"{ON_CPU} host work",
    "The program computes on the CPU there (matrix products that launch nothing), and the device waits for the result: "
    "compute it on the device, or let a thread of its own compute it while the device has other work queued, of the "
    "next layer or the next batch.",
)

DRAWS_ON_CPU = Advice(
    f"{DRAWS} host work",
    "Move the work that the host does between launches to the device: most of it draws random numbers on the CPU "
    "(torch.randn, rand or randint without device='cuda'). What has to be drawn on the host can be drawn ahead, as the "
    "workers of a DataLoader do.",
)


def draws_on_cpu(timeline: Timeline) -> bool:
    """Whether random numbers that are drawn on the CPU take most of the host work for which the device is idle."""
    return _takes_part(timeline, RANDOM.match, HALF)


def computes_on_cpu(timeline: Timeline) -> bool:
    """Whether matrix products that give the device nothing to do take a part of the host work for which it is idle."""
    return _takes_part(timeline, PRODUCTS.match, TENTH)


def _lost_launches(timeline: Timeline) -> bool:
    """Whether calls of the runtime are not in the trace, so that what launches nothing may have launched something."""
    return any(one.lost == "runtime" and not one.waits_alone for one in timeline.disagreements)


def _takes_part(timeline: Timeline, test: Callable[[str], object], part: int) -> bool:
    """Whether ops whose names pass a test, and that give the device nothing to do, take at least one in ``part`` of the
    host work for which it is idle. An op that calls inside of it what others call that launch something did not run on
    the CPU."""
    ops, calls = timeline.ops, timeline.calls
    found = ops.named(test).copy()
    if not found.any() or _lost_launches(timeline):
        return False
    commands = np.flatnonzero(calls.do(COMMANDS))
    launching = ops.nesting.innermost(calls.tid[commands], calls.ts[commands], calls.end[commands])
    found[launching[launching >= 0]] = False
    rows = np.flatnonzero(found)
    rows = rows[~launch_elsewhere(rows, number_trees(ops), timeline.launching_ops)]
    work = timeline.bubbles.due_to("host work")
    idle, mine = timeline.bubbles.take(work > 0), ops.take(rows)
    inside = Union(mine.ts, mine.end).within(idle.ts, idle.end)
    return part * int(np.minimum(inside, work[work > 0]).sum()) >= int(work.sum()) > 0
