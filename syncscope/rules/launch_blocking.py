from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import of_calls
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule


class LaunchBlocking(RankRule):
    """Every launch waits for its kernel: `CUDA_LAUNCH_BLOCKING=1`.

    Why it costs: host and device take turns. Each kernel runs while the host waits, and the device is idle while the
    host gets the next one ready, so a step takes the sum of both instead of the longer one. The variable helps when a
    kernel fails and the error points at a later line. Left set, it slows everything down.

    Bad:
        CUDA_LAUNCH_BLOCKING=1 python train.py       # left over from debugging, or from a container's image

    Good:
        python train.py

    Fine:
        CUDA_LAUNCH_BLOCKING=1 compute-sanitizer python one_batch.py   # while looking for a bug

    There is one finding a trace. Nothing can overlap then, so the rules about overlap, idle time and launches are not
    checked: what they would say is true of the variable, not of the program. Other waits are found as ever.
    """

    code = "SYN108"
    name = "launch-blocking"
    severity = "error"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.LAUNCH_ASYNCHRONOUSLY
    counts_as_wait = True
    advice = (
        Advice(
            "",
            "Unset CUDA_LAUNCH_BLOCKING (on ROCm AMD_SERIALIZE_KERNEL): it is for finding the kernel that failed.",
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline = inspection.timeline
        launches = timeline.calls.do(["launch"]) & timeline.launch_blocking
        return self.hits(timeline, of_calls(np.flatnonzero(launches), timeline))

    def message(self, group: Group) -> str:
        return (
            f"every launch waits for its kernel, {len(group.rows):,} in all, as with CUDA_LAUNCH_BLOCKING=1: host and "
            "device never work at the same time"
        )
