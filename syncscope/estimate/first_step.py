"""What the first recorded step does comes back, though the recording may begin cold."""

from __future__ import annotations

from collections.abc import Iterable

from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.question import Intervention
from syncscope.timeline import Timeline


def comes_back(timeline: Timeline, hit: Hit) -> bool:
    """Whether what a finding's first step does more than others is known to be none of what is done once."""
    allocates = BY_CODE[hit.finding.rule].question is Intervention.REMOVE_ALLOCATION
    return allocates and _gives_memory_back(timeline, hit.waits)


def cause_comes_back(timeline: Timeline, cause: str) -> bool:
    """The same of a cause of idle time."""
    return cause == "allocation" and _gives_memory_back(timeline, range(len(timeline.waits)))


def _gives_memory_back(timeline: Timeline, rows: Iterable[int]) -> bool:
    """Whether some of the waits give memory of the device back in the first step, but for warm-up.

    Memory that the allocator takes for the first time it keeps. It gives some back where there is no more to take, and
    that happens again as sizes change.
    """
    waits = timeline.waits.take(sorted(rows))
    waits = waits.take((waits.step == 0) & (timeline.calls.role[waits.call] == "device-free"))
    return bool((timeline.warming_up(waits.ts, waits.end, waits.tid) == "").any())
