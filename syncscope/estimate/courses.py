"""A block of stretches as sums: when its host and its stream are done with each stretch, whenever they begin."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from syncscope.estimate.dependencies import Dependencies, Target
from syncscope.estimate.runs import Block, Stretches
from syncscope.timeline.intervals import Bools, Floats

Times = tuple[Floats, Floats, Floats]
"""``work``, ``busy`` and ``behind`` of stretches, as of ``Stretches.wide``."""


class Course(NamedTuple):
    """What a block adds to the moments at which its host and its stream are free; times (stretches, columns)."""

    work: Floats
    """The host's work up to the end of each stretch."""
    busy: Floats
    """The stream's, where no launch holds it up; one column for all, where they are the same in all."""
    behind: Floats
    """From the host's begin of the block to the stream's end of each stretch, where a launch holds it up."""
    launched: list[int]
    """Launches up to the end of each stretch."""
    kept: list[tuple[int, Target]]
    """What is remembered: the place of a stretch, and a target that is done when the stream is done with it."""

    @classmethod
    def of(cls, times: Times, launches: Sequence[int], kept: list[tuple[int, Target]]) -> Course:
        """That of stretches with these ``times`` and ``launches``."""
        work, busy, behind = times
        launched = list(accumulate(launches))
        if len(work) == 1:
            return cls(work, busy, behind, launched, kept)
        work_until, busy_until = np.add.accumulate(work), np.add.accumulate(busy)
        least = behind - busy_until
        least[1:] += work_until[:-1]
        return cls(work_until, busy_until, np.maximum.accumulate(least) + busy_until, launched, kept)

    def ends(self, host: Floats, stream: Floats) -> Floats:
        """When the stream is done with each stretch (stretches, columns)."""
        ends: Floats = self.behind + host
        np.maximum(self.busy + stream, ends, out=ends)
        return ends


class Courses:
    """The blocks of a replay as sums, and what is remembered of their stretches."""

    def __init__(self, stretches: Stretches, remembered: Dependencies, dur: Floats, ends: Bools) -> None:
        """``remembered`` are the targets by the item that they name, ``ends`` (items,) those of these items that are a
        stretch each, and ``dur`` (items,) is how long activities last."""
        items, self._named = stretches.first, np.flatnonzero(ends[stretches.first]).tolist()
        self._launches, self._by_block = stretches.launches, dict[int, Course]()
        self.kept = {number: remembered[int(items[number])] for number in self._named}
        """What is done when the stream is done with a stretch, by its number."""
        self.lengths = {number: float(dur[items[number]]) for number in self._named if stretches.launches[number]}
        """How long the only activity of such a stretch lasts."""

    def of(self, block: Block, times: Times) -> Course:
        """That of a block, whose stretches have these ``times``. It is made once."""
        course = self._by_block.get(block.begin)
        if course is None:
            named = self._named[bisect_left(self._named, block.begin) : bisect_left(self._named, block.end)]
            kept = [(number - block.begin, target) for number in named for target in self.kept[number]]
            course = Course.of(times, self._launches[block.begin : block.end], kept)
            self._by_block[block.begin] = course
        return course


def sum_from(begin: Floats, least: Floats, past: Floats) -> Floats:
    """The ends of lengths, up to each of which together are ``past`` (n, columns), that follow each other from
    ``begin`` (columns,) on, each no sooner than its ``least``."""
    ends: Floats = least - past
    np.maximum(ends, begin, out=ends)
    np.maximum.accumulate(ends, out=ends)
    ends += past
    return ends
