from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.collective_waits import down_to_collective, in_collectives, number_calls, outside
from syncscope.timeline.intervals import Bools
from syncscope.timeline.waits import is_wait


class CollectiveWait(WaitRule):
    """The host waits inside a collective: a barrier, a collective of objects, DDP's search for unused parameters.

    Why it costs: the host stands still until all ranks have come this far and the device has finished what was queued
    before. A barrier is a small all-reduce and a wait for it; `all_gather_object` and its kin copy sizes and bytes to
    the device and back, five waits and more a call. Every rank pays for the slowest.

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
    `TORCH_NCCL_BLOCKING_WAIT=1` does, by polling: no runtime call waits then, and it is not seen.
    """

    code = "SYN110"
    name = "collective-wait"
    needs = ("runtime", "cpu_op")

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        inside = in_collectives(waits, timeline.places, timeline.trace.ops, timeline.ops)
        found: Bools = inside & is_wait(waits["kind"])
        return found

    def occurrences(self, waits: pd.DataFrame, timeline: Timeline) -> pd.DataFrame:
        found = super().occurrences(waits, timeline)
        unit = np.full(len(found), -1, dtype=np.int64)
        for tid in found["tid"].unique():
            rows = np.flatnonzero((found["tid"] == tid).to_numpy(bool))
            unit[rows] = unit.max() + 1 + number_calls(found["place"].iloc[rows].tolist())
        both = zip(found["ops"], found["place"], strict=True)
        ops = pd.Series([down_to_collective(*pair) for pair in both], index=found.index, dtype=object)
        place = pd.Series([outside(place) for place in found["place"]], index=found.index, dtype=object)
        result: pd.DataFrame = found.assign(place=place, ops=ops, unit=unit)
        return result

    def unseen(self, timeline: Timeline) -> str | None:
        communicates = bool((timeline.trace.device["collective"] != "").any())
        if self.blind(timeline) is None and communicates:
            return "a wait with TORCH_NCCL_BLOCKING_WAIT=1 polls and is no runtime call, so it is not seen"
        return None

    def message(self, group: Group) -> str:
        calls, waits = group.rows["unit"].nunique(), len(group.rows)
        many = f", {waits / calls:.3g} times a call" if waits > calls else ""
        return f"{group.what} makes the host wait for all ranks and for the device{many}"
