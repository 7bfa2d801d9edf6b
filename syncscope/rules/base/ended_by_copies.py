"""Find the copies to the device at which the host's own work ends, while the device is idle for it.

Where nothing names that work, as in a recording without Python stacks, these lines do: what the host makes for the
device comes right before it is copied there.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from syncscope.schema.findings import WorkEnd
from syncscope.schema.numbers import percent
from syncscope.timeline import Place, Timeline

MAIN_SHARE = 0.5
"""The copies stand for the host work if at least this share of it ends at them, and one of them if it is at its."""

MOST_LINES, LEAST_SHARE = 3, 0.1
"""At most so many lines are named: the first, and those at which at least this share of the work ends."""


class EndedByCopies(msgspec.Struct, frozen=True):
    """The lines of copies at which host work ends."""

    places: tuple[tuple[Place, float], ...]
    """The places, each with its share of all host work for which the device is idle; the longest first."""

    @property
    def place(self) -> Place | None:
        """The place at which most of the host work ends, ``None`` where several share it."""
        place, share = self.places[0]
        return place if share >= MAIN_SHARE else None

    @property
    def lines(self) -> tuple[WorkEnd, ...]:
        """The lines that are named, each with its share."""
        lines = [WorkEnd(site=place.site, share=share) for place, share in self.places if place.site]
        return (*lines[:1], *(line for line in lines[1:MOST_LINES] if line.share >= LEAST_SHARE))

    def in_words(self) -> str:
        """``62 % of it ends at the copy of made.py:22``."""
        named = [(f"{line.site.file}:{line.site.line}", percent(line.share, 1.0)) for line in self.lines]
        (first, share), others = named[0], named[1:]
        said = f"{share} of the host work ends at the copy of {first}"
        return said + "".join(f", {part} at that of {line}" for line, part in others)


def find_copies_after_work(timeline: Timeline) -> EndedByCopies | None:
    """The copies to the device at which most of the host work ends for which the device is idle; ``None`` where most of
    it ends at something else, or at copies without a line."""
    bubbles, copies = timeline.bubbles, timeline.copies
    due = bubbles.due_to("host work")
    whole = int(due.sum())
    to_device = np.flatnonzero((copies.direction == "HtoD") & (copies.launch >= 0) & (copies.place > 0))
    of_launch = dict(zip(copies.launch[to_device].tolist(), copies.place[to_device].tolist(), strict=True))
    every = timeline.places
    ended: Counter[int] = Counter()
    for launch, ns in zip(bubbles.launch.tolist(), due.tolist(), strict=True):
        place = of_launch.get(launch, 0)
        if ns and place and every[place].source == "hook":
            ended[place] += ns
    if not whole or sum(ended.values()) < MAIN_SHARE * whole:
        return None
    lines: dict[tuple[str, int | None], tuple[Place, int]] = {}
    for number, ns in ended.most_common():
        site = every[number].site
        if site is not None:
            first, known = lines.get((site.file, site.line), (every[number], 0))
            lines[site.file, site.line] = first, known + ns
    found = sorted(lines.values(), key=lambda pair: -pair[1])
    return EndedByCopies(tuple((place, ns / whole) for place, ns in found)) if found else None
