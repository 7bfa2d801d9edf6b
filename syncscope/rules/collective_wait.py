from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, to_objects
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.collective_waits import (
    UNUSED,
    asks_for_unused,
    cut_at_collective,
    in_collectives,
    is_collective,
    number_calls,
    strip_collective,
)
from syncscope.timeline.intervals import Bools
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits
from syncscope.timeline.waits import is_wait
from syncscope.trace.sets import different


class CollectiveWait(WaitRule):
    """The host waits inside a collective: a barrier, a collective of objects, DDP's search for unused parameters.

    Why it costs: the host stands still until all ranks have come this far and the device has finished what was queued
    before. A barrier is a small all-reduce and a wait for it. Collectives of objects, such as `all_gather_object`, copy
    sizes and bytes to the device and back: five waits or more a call. Every rank pays for the slowest.

    Bad:
        dist.barrier()                                  # each step, "to be safe"
        dist.all_gather_object(parts, metrics)          # each step
        DistributedDataParallel(model, find_unused_parameters=True)   # and a parameter that is left out

    Good:
        dist.all_reduce(loss)                           # the stream waits, the host does not
        work = dist.all_reduce(loss, async_op=True); work.wait()      # the same
        dist.all_gather_into_tensor(parts, values)      # sizes are known

    Fine:
        dist.barrier()                                  # before a checkpoint, around a benchmark

    One finding stands for one call, not for the waits inside. `async_op=False` does not hold the host with NCCL.
    `TORCH_NCCL_BLOCKING_WAIT=1` does, but by polling: no runtime call waits then, so the wait is not seen.
    """

    code = "SYN110"
    name = "collective-wait"
    severity = "error"
    needs = ("runtime", "cpu_op")
    gated = True
    counted = True
    waits_many_times = True
    question = Intervention.REMOVE_WAIT
    brings_copy = True
    advice = (
        Advice(
            "barrier()|c10d::barrier",
            "Remove it: collectives wait for each other by themselves. Where processes must meet, do it outside the "
            "steps.",
            before="dist.barrier()\ndist.all_reduce(x)",
            after="dist.all_reduce(x)",
        ),
        Advice(
            UNUSED,
            "Give every parameter a gradient, or freeze it (requires_grad=False), and leave find_unused_parameters "
            "out: only for a parameter that a step left out does DDP ask the device.",
        ),
        Advice(
            "",
            "Send tensors of a size that is known (all_gather_into_tensor), objects only every so many steps, or "
            "through a group of the host's own (dist.new_group(backend='gloo')).",
            before="dist.all_gather_object(found, metrics)",
            after="dist.all_gather_into_tensor(found, metrics)   # a tensor of known size",
        ),
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        return in_collectives(waits, timeline.places, timeline.ops) & is_wait(waits.kind)

    def claims_counted(self, counted: PlacedWait) -> bool:
        ops, place = counted.ops, counted.place
        return is_collective(place, ops) or (bool(ops) and asks_for_unused(ops, place))

    def occurrences(self, waits: Waits, timeline: Timeline) -> Occurrences:
        occurrences = super().occurrences(waits, timeline)
        unit = np.full(len(occurrences), -1, dtype=np.int64)
        for tid in different(occurrences.tid):
            rows = np.flatnonzero(occurrences.tid == tid)
            unit[rows] = unit.max() + 1 + number_calls(occurrences.place[rows].tolist())
        both = zip(occurrences.ops, occurrences.place, strict=True)
        return occurrences.replace(
            ops=to_objects(cut_at_collective(ops, place) for ops, place in both),
            place=to_objects(strip_collective(place) for place in occurrences.place),
            unit=unit,
        )

    def why_partial(self, timeline: Timeline) -> str | None:
        communicates = bool((timeline.activities.collective != "").any())
        if self.why_unchecked(timeline) is None and communicates:
            return "a wait with TORCH_NCCL_BLOCKING_WAIT=1 polls and is no runtime call, so it is not seen"
        return None

    def message(self, group: Group) -> str:
        calls, waits = len(set(group.rows.unit.tolist())), len(group.rows)
        many = f", {waits / calls:.3g} times a call" if waits > calls else ""
        return f"{group.subject} makes the host wait for all ranks and for the device{many}"
