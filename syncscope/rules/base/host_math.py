"""Whether a program computes on the CPU what its device then waits for."""

from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.patterns import compile_later
from syncscope.timeline import Timeline
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Union

ON_CPU = "on-cpu"
"""The name for host work that is mathematics of the program's own, on tensors of the CPU."""

PRODUCTS = compile_later(r"aten::(?:mm|bmm|addmm|baddbmm|mv|addmv|mkldnn_\w+|thnn_conv2d|slow_conv3d)$")
"""Ops that give each device something to do, or compute on the CPU."""

TENTH = 10
"""So small a part of the host work says that the program computes there: beside each product it also copies, gathers
and normalises on the CPU."""

COMPUTES_ON_CPU = Advice(
    f"{ON_CPU} host work",
    "The program computes on the CPU there (matrix products that launch nothing), and the device waits for the result: "
    "compute it on the device, or let a thread of its own compute it while the device has other work queued, of the "
    "next layer or the next batch.",
)


def computes_on_cpu(timeline: Timeline) -> bool:
    """Whether matrix products that give the device nothing to do take a part of the host work for which it is idle."""
    ops, calls = timeline.ops, timeline.calls
    products = ops.named(PRODUCTS.match).copy()
    if not products.any():
        return False
    commands = np.flatnonzero(calls.do(COMMANDS))
    launching = ops.nesting.innermost(calls.tid[commands], calls.ts[commands], calls.end[commands])
    products[launching[launching >= 0]] = False
    work = timeline.bubbles.due_to("host work")
    idle, mine = timeline.bubbles.take(work > 0), ops.take(products)
    inside = Union(mine.ts, mine.end).within(idle.ts, idle.end)
    return TENTH * int(np.minimum(inside, work[work > 0]).sum()) >= int(work.sum()) > 0
