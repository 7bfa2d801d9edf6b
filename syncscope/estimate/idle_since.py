"""How much of the time without compute comes after something in a trace without steps.

The replay takes such a trace for one step that repeats, so without what holds the host at its end, the host would be
ahead at its beginning. Nothing shows that it begins again.
"""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.pauses import ONCE as PAUSE


def share_since(timeline: Timeline, since: int | None) -> float:
    """Share of the time without compute, but for what is done once, that is not idle time before ``since``, ns; 1 for
    ``None`` and where there is no such time."""
    overlap, bubbles = timeline.overlap, timeline.bubbles
    if overlap is None or since is None:
        return 1.0
    idle = bubbles.dur - bubbles.due_to("warm-up") - bubbles.due_to(PAUSE)
    before = np.minimum(np.clip(since - bubbles.ts, 0, bubbles.dur), idle)
    exposed_ms = (overlap.copy_exposed_ms + overlap.comm_exposed_ms) * max(len(timeline.steps), 1)
    whole = float(idle.sum()) + exposed_ms * 1e6
    return 1.0 - float(before.sum()) / whole if whole > 0 else 1.0
