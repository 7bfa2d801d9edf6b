"""Small pictures of the last step that a replay ran, one for each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from syncscope.estimate.columns import Part
from syncscope.estimate.replay import Replayed
from syncscope.estimate.replay_rows import HOST, Interval
from syncscope.schema.findings import Sketch, SketchLane
from syncscope.timeline.intervals import Floats, Ints

BINS = 60
"""Bins of the step before; the step after has bins of the same length, fewer of them."""

MOST_STREAMS = 3
"""Streams drawn, the busiest."""


def draw_steps(replayed: Replayed, names: Sequence[str]) -> list[Sketch]:
    """A small picture of the last step for each question, in order; ``names`` are those of the streams.

    It shows, bin by bin, how busy the host's waits and each stream are.
    """
    questions, scenarios = replayed.host.shape[1:]
    ends = replayed.ends[:, :, 0]
    # The last step of the host and the last of the device need not be at the same time: the host may run ahead.
    host, device = replayed.host[-2, :, 0], replayed.device[-2, :, 0]
    length = ends[-1] - ends[-2]
    bin_ns = max(float(length[0]) / BINS, 1.0)
    lanes = _lanes(replayed.last, scenarios)
    slowed = _lanes(replayed.slowed.last, scenarios) if replayed.slowed else {}
    busiest = sorted((stream for stream in lanes if stream != HOST), key=lambda s: -lanes[s].busy[0].sum())
    drawn = [HOST, *sorted(busiest[:MOST_STREAMS])]

    def lane_of(stream: int, number: int) -> _Course | None:
        if stream not in lanes:
            return None
        course = lanes[stream].of(number, replayed.parts)
        if replayed.slowed is None:
            return course
        other = slowed[stream].of(number, replayed.slowed.parts)
        part = float(replayed.slowed.part[number])
        return _Course(*(one + (slow - one) * part for one, slow in zip(course, other, strict=True)))

    drawings = []
    for number in range(questions):
        many = max(1, min(round(float(length[number]) / bin_ns), BINS))
        edges = np.arange(many + 1, dtype=np.float64) * bin_ns
        shown = tuple(
            SketchLane(
                label="host blocked" if stream == HOST else names[stream],
                busy=_digits(lane_of(stream, number), edges + (host if stream == HOST else device)[number]),
            )
            for stream in drawn
        )
        drawings.append(Sketch(step_ms=round(float(length[number]) * 1e-6, 6), lanes=shown))
    return drawings


class _Course(NamedTuple):
    """What one question has on a stream, one element an interval; ns."""

    begin: Floats
    end: Floats
    busy: Floats


class _Lane(NamedTuple):
    """All intervals of a stream: times (slots, intervals), in the likely scenario."""

    number: Ints
    """Their numbers among those of all streams."""
    begin: Floats
    end: Floats
    busy: Floats

    def of(self, question: int, parts: Sequence[Sequence[Part]]) -> _Course:
        if not parts:
            return _Course(self.begin[question], self.end[question], self.busy[question])
        pieces = []
        for part in parts[question]:
            rows = slice(*np.searchsorted(self.number, (part.begin, part.end)).tolist())
            begin, end = (times[part.slot, rows] + part.later for times in (self.begin, self.end))
            pieces.append((begin, end, self.busy[part.slot, rows]))
        return _Course(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _lanes(intervals: Sequence[Interval], scenarios: int) -> dict[int, _Lane]:
    by_stream: dict[int, list[int]] = {}
    for number, interval in enumerate(intervals):
        by_stream.setdefault(interval.stream, []).append(number)

    def likely(name: str, numbers: list[int]) -> Floats:
        times: Floats = np.array([getattr(intervals[number], name)[::scenarios] for number in numbers])
        return np.ascontiguousarray(times.T)

    return {
        stream: _Lane(np.array(numbers), *(likely(name, numbers) for name in ("begin", "end", "busy")))
        for stream, numbers in by_stream.items()
    }


def _digits(course: _Course | None, edges: Floats) -> str:
    """How busy each bin between ``edges`` (ns) is, in ninths."""
    if course is None:
        return "0" * (len(edges) - 1)
    # Intervals of a stream follow one another: what was taken by a time grows along each of them, not in between.
    times = np.maximum.accumulate(np.stack([course.begin, course.end], axis=1).ravel())
    taken = np.repeat(np.cumsum(course.busy), 2)
    taken[::2] -= course.busy
    share = np.diff(np.interp(edges, times, taken)) / np.diff(edges)
    ninths = np.rint(9 * np.clip(share, 0.0, 1.0)).astype(np.uint8)
    return (ninths + ord("0")).tobytes().decode("ascii")
