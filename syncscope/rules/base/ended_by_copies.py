"""Find the copies to the device at which the host's own work ends, while the device is idle for it.

Where nothing names that work, as in a recording without Python stacks, these lines do: what the host makes for the
device comes right before it is copied there.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from syncscope.schema.numbers import percent
from syncscope.timeline import Place, Timeline

MAIN_SHARE = 0.5
"""The copies stand for the host work if at least this share of it ends at them, and one of them if it is at its."""

MOST_LINES = 3
"""Lines that are named."""


class EndedByCopies(msgspec.Struct, frozen=True):
    """The lines of copies at which host work ends."""

    places: tuple[tuple[Place, float], ...]
    """The places, each with its share of all host work for which the device is idle; the longest first."""

    @property
    def place(self) -> Place | None:
        """The place at which most of the host work ends, ``None`` where several share it."""
        place, share = self.places[0]
        return place if share >= MAIN_SHARE else None

    def in_words(self) -> str:
        """``62 % of it ends at the copy of made.py:22``."""
        lines = [(f"{place.site.file}:{place.site.line}", share) for place, share in self.places if place.site]
        (first, share), others = lines[0], lines[1:MOST_LINES]
        said = f"{percent(share, 1.0)} of the host work ends at the copy of {first}"
        return said + "".join(f", {percent(part, 1.0)} at that of {line}" for line, part in others)


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
