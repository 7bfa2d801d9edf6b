"""The queues of launches of a replay's streams: a launch that finds its queue full holds the host."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from syncscope.estimate.columns import Columns
from syncscope.estimate.program import QUEUE
from syncscope.timeline.intervals import Floats


class Queue(NamedTuple):
    """The launches of a stream that others may still wait for, in order."""

    counts: list[int]
    """How many were launched up to each."""
    ends: list[Floats]
    """When each is done."""

    def last(self, full: int) -> int:
        """The place of the last of the first ``full`` launches, −1 where it is not there."""
        return bisect_right(self.counts, full) - 1

    def drop(self, place: int) -> None:
        """Take out what comes before a place: nothing waits for that any more."""
        if place > 0:
            del self.counts[:place], self.ends[:place]


class Queues:
    """Launches that may not be done yet, by stream."""

    def __init__(self, streams: int, columns: Columns) -> None:
        self._columns = columns
        self._launched = [0] * streams
        self._queues = [Queue([], []) for _ in range(streams)]
        # Those of them that may be later than the host of question 0, or of one that comes and goes.
        self._recent: list[deque[Floats]] = [deque(maxlen=QUEUE + 2) for _ in range(streams)]

    def add(self, stream: int, launches: int, done: Floats, host: Floats, work: Floats | float = 0.0) -> Floats:
        """The host after launches that took it some ``work``, held while the stream's queue is full. ``done`` is when
        they will be, and is kept."""
        queue = self._queues[stream]
        launched = self._launched[stream] = self._launched[stream] + launches
        queue.counts.append(launched)
        queue.ends.append(done)
        if self._columns.sparse:
            self._recent[stream].append(done)
        full = launched - QUEUE
        place = queue.last(full)
        if place < 0:
            return host
        queue.drop(place)
        # The launch that needed the place was held. The rest of the work came after it.
        behind = min(full - queue.counts[0], launches - 1) / launches
        return np.maximum(host, queue.ends[0] + behind * work if behind else queue.ends[0])

    def hold(self, stream: int, launched: Sequence[int], host: Floats, work: Floats) -> Floats | None:
        """Until when each of some stretches, up to whose ends so many launches are ``launched``, holds the ``host``,
        which does some ``work`` in each (stretches, columns); ``None`` where none does. All together are fewer launches
        than a queue has places."""
        queue, before = self._queues[stream], self._launched[stream] - QUEUE
        last = queue.last(before + launched[-1])
        # No launch is done later than one behind it.
        if last < 0 or not np.count_nonzero(queue.ends[last] > host):
            queue.drop(last)
            return None
        counts, places, ends, behind = queue.counts, list[int](), list[Floats](), list[float]()
        awaited, past = -1, 0
        for place, many in enumerate(launched):
            own, past = many - past, many
            if own:
                until = before + many
                while awaited < last and counts[awaited + 1] <= until:
                    awaited += 1
                if awaited >= 0:
                    places.append(place)
                    ends.append(queue.ends[awaited])
                    # The launch that needed the place was held. The rest of the work came after it.
                    behind.append(min(until - counts[awaited], own - 1) / own)
        queue.drop(last)
        if not places:
            return None
        held = np.concatenate(ends).reshape(len(ends), -1)  # two thirds of the time of np.array
        every = len(places) == len(launched)
        if any(behind):
            held += np.array(behind)[:, None] * (work if every else work[places])
        if every:
            return held
        some = np.full((len(launched), work.shape[1]), -np.inf)
        some[places] = held
        return some

    def add_all(self, stream: int, launched: Sequence[int], done: Floats) -> None:
        """Keep when each of some stretches will be ``done`` (stretches, columns), up to whose ends so many launches are
        ``launched``."""
        before, queue = self._launched[stream], self._queues[stream]
        self._launched[stream] = before + launched[-1]
        queue.counts.extend(map(before.__add__, launched))
        queue.ends.extend(done)

    # ------------------------------------------------------------------------------- questions that come and go

    def recent(self) -> Iterator[Floats]:
        """When those are done that may be later than the host."""
        return itertools.chain.from_iterable(self._recent)

    def widen(self) -> None:
        """Follow columns that were added."""
        columns, kept = self._columns, {id(end) for end in self.recent()}
        wide = [[(columns.widened(end), id(end) in kept) for end in queue.ends] for queue in self._queues]
        for end, late in itertools.chain.from_iterable(wide):
            if not late:  # what is over for question 0 may lie ahead of one that is sooner
                end[columns.lasting_width :] = -np.inf
        self._queues = [
            Queue(queue.counts, [end for end, _ in ends]) for queue, ends in zip(self._queues, wide, strict=True)
        ]
        self._recent = [deque((end for end, late in ends if late), maxlen=QUEUE + 2) for ends in wide]

    def forget_old(self, soonest: Floats) -> None:
        """Make launches that are done before the host's present nothing in the columns that come and go."""
        known = self._columns.unlasting()
        soonest = soonest[known]
        for recent in self._recent:
            while recent and (recent[0][known] <= soonest).all():
                recent.popleft()[self._columns.lasting_width :] = -np.inf
