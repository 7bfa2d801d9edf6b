"""The small picture of a step before and after a fix: how busy the host's waits and each stream are, bin by bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.estimate.replay import HOST, Interval, Replayed
from syncscope.schema.findings import Sketch, SketchLane
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
    host, device = replayed.host[-2, :, 0], replayed.device[-2, :, 0]
    length = ends[-1] - ends[-2]
    bin_ns = max(float(length[0]) / BINS, 1.0)
    lanes = _lanes(replayed.last, scenarios)
    busiest = sorted((stream for stream in lanes if stream != HOST), key=lambda s: -lanes[s].busy[:, 0].sum())
    drawn = [HOST, *sorted(busiest[:MOST_STREAMS])]
    drawings = []
    for number in range(questions):
        many = max(1, min(round(float(length[number]) / bin_ns), BINS))
        edges = np.arange(many + 1, dtype=np.float64) * bin_ns
        shown = tuple(
            SketchLane(
                label="host blocked" if stream == HOST else names[stream],
                busy=_digits(lanes.get(stream), number, edges + (host if stream == HOST else device)[number]),
            )
            for stream in drawn
        )
        drawings.append(Sketch(step_ms=round(float(length[number]) * 1e-6, 6), lanes=shown))
    return drawings


def _lanes(stretches: Sequence[Interval], scenarios: int) -> dict[int, Interval]:
    """By stream all its stretches as one: times (stretches, questions), in the likely scenario."""
    by_stream: dict[int, list[Interval]] = {}
    for stretch in stretches:
        by_stream.setdefault(stretch.stream, []).append(stretch)
    return {
        stream: Interval(stream, *(np.array([s[part] for s in mine])[:, ::scenarios] for part in (1, 2, 3)))
        for stream, mine in by_stream.items()
    }


def _digits(lane: Interval | None, number: int, edges: Floats) -> str:
    """How busy each bin between ``edges`` (ns) is, in ninths."""
    if lane is None:
        return "0" * (len(edges) - 1)
    # Stretches of a lane follow one another: what was taken by a time grows along each of them, and not in between.
    times = np.maximum.accumulate(np.stack([lane.begin[:, number], lane.end[:, number]], axis=1).ravel())
    taken = np.repeat(np.cumsum(lane.busy[:, number]), 2)
    taken[::2] -= lane.busy[:, number]
    share = np.diff(np.interp(edges, times, taken)) / np.diff(edges)
    return "".join(str(round(9 * min(1.0, max(0.0, one)))) for one in share.tolist())
