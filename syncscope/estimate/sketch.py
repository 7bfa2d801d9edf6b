"""The small picture of a step before and after a fix: how busy the host's waits and each stream are, bin by bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.estimate.machine import Replayed
from syncscope.findings import Sketch, SketchLane
from syncscope.timeline.intervals import Floats

BINS = 60
"""Bins of the step before; the step after has bins of the same length, fewer of them."""

MOST_STREAMS = 3
"""Streams drawn, the busiest."""


def sketches(replayed: Replayed, names: Sequence[str]) -> list[Sketch]:
    """One picture a question, in order; ``names`` are those of the streams."""
    questions, scenarios = replayed.host.shape[1:]
    ends = replayed.ends[:, :, 0]
    # The last step of the host and the last of the device need not be at the same time: the host may run ahead.
    host, device = replayed.host[-2:, :, 0], replayed.device[-2:, :, 0]
    length = (ends[-1] - ends[-2]) if len(ends) > 1 else ends[-1]
    bin_ns = max(float(length[0]) / BINS, 1.0)
    busy = {-1: 0.0}
    for stretch in replayed.last:
        busy[stretch.stream] = busy.get(stretch.stream, 0.0) + float(stretch.busy[0])
    drawn = sorted(sorted((s for s in busy if s >= 0), key=lambda s: -busy[s])[:MOST_STREAMS])
    found = []
    for number in range(questions):
        many = max(1, min(round(float(length[number]) / bin_ns), BINS))
        lanes = [
            SketchLane(
                label="host blocked" if stream < 0 else names[stream],
                busy=_digits(replayed, stream, number * scenarios, float((host if stream < 0 else device)[0, number]), bin_ns, many),
            )
            for stream in (-1, *drawn)
        ]
        found.append(Sketch(step_ms=round(float(length[number]) * 1e-6, 6), lanes=tuple(lanes)))
    return found


def _digits(replayed: Replayed, stream: int, column: int, start: float, bin_ns: float, many: int) -> str:
    """How busy each bin is, in ninths."""
    taken: Floats = np.zeros(many)
    edges = np.arange(many + 1) * bin_ns
    for stretch in replayed.last:
        if stretch.stream == stream:
            begin, end = float(stretch.begin[column]) - start, float(stretch.end[column]) - start
            if end > begin:
                inside = np.maximum(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0)
                taken += inside * float(stretch.busy[column]) / (end - begin)
    return "".join(str(int(round(9 * min(1.0, share)))) for share in taken / bin_ns)
