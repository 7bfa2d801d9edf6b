from __future__ import annotations

import numpy as np

from syncscope.rules.grouping import Group
from syncscope.rules.rule import Case, Hit, Rule, call_occurrences


class LaunchBlocking(Rule):
    """Every launch waits for its kernel: `CUDA_LAUNCH_BLOCKING=1`.

    Why it costs: host and device take turns. Each kernel runs while the host waits, and the device is idle while the
    host gets the next one ready, so that a step takes the sum of both instead of the longer one. The variable is of
    use when a kernel fails and the error points at a later line; left set it slows everything down.

    Bad:
        CUDA_LAUNCH_BLOCKING=1 python train.py       # left over from debugging, or from a container's image

    Good:
        python train.py

    Fine:
        CUDA_LAUNCH_BLOCKING=1 compute-sanitizer python one_batch.py   # while looking for a bug

    One finding a trace. Nothing can overlap then, so the rules about overlap, idle time and launches are not checked:
    what they would say is true of the variable, not of the program. Other waits are found as ever.
    """

    code = "SYN108"
    name = "launch-blocking"
    severity = "error"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        launches = (timeline.calls["role"] == "launch").to_numpy(bool) & timeline.launch_blocking
        return self.hits(case, call_occurrences(np.flatnonzero(launches), timeline))

    def message(self, group: Group) -> str:
        return (
            f"every launch waits for its kernel, {len(group.rows):,} in all, as with CUDA_LAUNCH_BLOCKING=1: host and "
            "device never work at the same time"
        )
