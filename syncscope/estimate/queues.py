"""The queues of launches of a replay's streams: a launch that finds its queue full holds the host."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from syncscope.estimate.columns import Columns
from syncscope.estimate.program import QUEUE
from syncscope.timeline.intervals import Floats


class Queues:
    """Launches that may not be done yet, by stream: how many were launched up to each, and when it is done."""

    def __init__(self, streams: int, columns: Columns) -> None:
        self._columns = columns
        self._launched = [0] * streams
        self._queues: list[deque[tuple[int, Floats]]] = [deque() for _ in range(streams)]
        # Those of them that may be later than the host of question 0, or of one that comes and goes.
        self._recent: list[deque[Floats]] = [deque(maxlen=QUEUE + 2) for _ in range(streams)]

    def add(self, stream: int, launches: int, done: Floats, host: Floats, work: Floats | float = 0.0) -> Floats:
        """The host after launches that took it some ``work``, held while the stream's queue is full. ``done`` is when
        they will be, and is kept."""
        queue = self._queues[stream]
        launched = self._launched[stream] = self._launched[stream] + launches
        queue.append((launched, done))
        if self._columns.sparse:
            self._recent[stream].append(done)
        full = launched - QUEUE
        _drop_done(queue, full)
        many, end = queue[0]
        if many > full:
            return host
        # The launch that needed the place was held. The rest of the work came after it.
        behind = min(full - many, launches - 1) / launches
        return np.maximum(host, end + behind * work if behind else end)

    def hold(self, stream: int, launched: Sequence[int], host: Floats, work: Floats) -> Floats | None:
        """Until when each of some stretches, up to whose ends so many launches are ``launched``, holds the ``host``,
        which does some ``work`` in each (stretches, columns); ``None`` where none does. All together are fewer launches
        than a queue has places."""
        queue, before = self._queues[stream], self._launched[stream] - QUEUE
        last = before + launched[-1]
        passed = _drop_done(queue, last)
        # No launch is done later than one behind it.
        if not queue or queue[0][0] > last or not np.count_nonzero(queue[0][1] > host):
            return None
        passed.append(queue[0])
        until = [many - before for many, _ in passed]
        places, numbers, behind, past = [], [], [], 0
        for place, many in enumerate(launched):
            number = bisect_right(until, many) - 1
            if number >= 0 and many > past:
                places.append(place)
                numbers.append(number)
                behind.append(min(many - until[number], many - past - 1) / (many - past))
            past = many
        if not places:
            return None
        held = np.full((len(launched), work.shape[1]), -np.inf)
        ends = np.array([passed[number][1] for number in numbers])
        held[places] = ends + np.array(behind)[:, None] * work[places] if any(behind) else ends
        return held

    def add_all(self, stream: int, launched: Sequence[int], done: Floats) -> None:
        """Keep when each of some stretches will be ``done`` (stretches, columns), up to whose ends so many launches are
        ``launched``."""
        before = self._launched[stream]
        self._launched[stream] = before + launched[-1]
        self._queues[stream].extend(zip(map(before.__add__, launched), done, strict=True))

    # ------------------------------------------------------------------------------- questions that come and go

    def recent(self) -> Iterator[Floats]:
        """When those are done that may be later than the host."""
        return itertools.chain.from_iterable(self._recent)

    def widen(self) -> None:
        """Follow columns that were added."""
        columns, kept = self._columns, {id(end) for end in self.recent()}
        wide = [[(many, columns.widened(end), id(end) in kept) for many, end in queue] for queue in self._queues]
        for _, end, late in itertools.chain.from_iterable(wide):
            if not late:  # what is over for question 0 may lie ahead of one that is sooner
                end[columns.lasting_width :] = -np.inf
        self._queues = [deque((many, end) for many, end, _ in queue) for queue in wide]
        self._recent = [deque((end for _, end, late in queue if late), maxlen=QUEUE + 2) for queue in wide]

    def forget_old(self, soonest: Floats) -> None:
        """Make launches that are done before the host's present nothing in the columns that come and go."""
        known = self._columns.unlasting()
        soonest = soonest[known]
        for recent in self._recent:
            while recent and (recent[0][known] <= soonest).all():
                recent.popleft()[self._columns.lasting_width :] = -np.inf


def _drop_done(queue: deque[tuple[int, Floats]], full: int) -> list[tuple[int, Floats]]:
    """Take out what no launch waits for any more once those before ``full`` hold none."""
    dropped = []
    while len(queue) > 1 and queue[1][0] <= full:
        dropped.append(queue.popleft())
    return dropped
