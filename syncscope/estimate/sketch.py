"""The small picture of a step before and after a fix: how busy the host's waits and each stream are, bin by bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.estimate.machine import HOST, Replayed
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
    busy: dict[int, float] = {}
    for stretch in replayed.last:
        busy[stretch.stream] = busy.get(stretch.stream, 0.0) + float(stretch.busy[0])
    drawn = sorted(sorted((s for s in busy if s >= 0), key=lambda s: -busy[s])[:MOST_STREAMS])
    found = []
    for number in range(questions):
        many = max(1, min(round(float(length[number]) / bin_ns), BINS))
        edges = np.arange(many + 1, dtype=np.float64) * bin_ns
        lanes = []
        for stream in (HOST, *drawn):
            start = float((host if stream == HOST else device)[0, number])
            label = "host blocked" if stream == HOST else names[stream]
            lanes.append(SketchLane(label=label, busy=_digits(replayed, stream, number * scenarios, edges, start)))
        found.append(Sketch(step_ms=round(float(length[number]) * 1e-6, 6), lanes=tuple(lanes)))
    return found


def _digits(replayed: Replayed, stream: int, column: int, edges: Floats, start: float) -> str:
    """How busy each bin between ``edges`` (ns from ``start``) is, in ninths."""
    taken: Floats = np.zeros(len(edges) - 1)
    for stretch in replayed.last:
        begin, end = float(stretch.begin[column]) - start, float(stretch.end[column]) - start
        if stretch.stream == stream and end > begin:
            inside = np.maximum(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0)
            taken += inside * float(stretch.busy[column]) / (end - begin)
    return "".join(str(round(9 * min(1.0, share))) for share in (taken / np.diff(edges)).tolist())
