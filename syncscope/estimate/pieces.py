"""A collective that runs in pieces beside the compute that makes what each of them reduces.

The first pieces mostly run beside the compute all of their time, and the last ones when it is over: both are taken at
once, and only those between one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from syncscope.estimate.dependencies import Target
from syncscope.estimate.replay_rows import Meeting
from syncscope.timeline.intervals import Floats, Ints


class Pieces:
    """The state of the pieces that are run: until when each stream computes, by how much it was slowed so far, and when
    the last piece was done. All times are (columns,)."""

    def __init__(
        self, computing: dict[int, Floats], slowed: Floats, done: Floats, slowdown: Floats, length: float, many: int
    ) -> None:
        """``computing`` is by stream. The compute that a piece runs beside takes longer by the ``slowdown``, a share of
        the time. There are ``many`` pieces of a ``length``."""
        self.computing, self.slowed, self.done, self._slowdown = computing, slowed, done, slowdown
        self._length, self._number = length, np.arange(many)[:, None]
        self._before = self._number * length
        self._until = self._before + length

    def run(self, targets: Sequence[Target], ready: Floats, theirs: Floats | None) -> None:
        """Run the pieces, each when its target is done, which is when it is ``ready`` (pieces, columns) by compute that
        nothing slowed, and when the others come, ``theirs``; ``None`` where they are not waited for."""
        alike = len(self.computing) == 1
        first = self._run_beside(targets[0].stream, ready, theirs) if alike else 0
        for number in range(first, len(targets)):
            beside = self._run_one(targets[number].stream, ready[number], theirs)
            if alike and not np.count_nonzero(beside):
                self._run_behind(ready[number + 1 :], theirs)
                break

    def _run_beside(self, stream: int, ready: Floats, theirs: Floats | None) -> int:
        """Run the first pieces, as many as are beside the stream's compute all of their time; how many they are."""
        slower = self._slowdown * self._length
        slowed = self._number * slower
        ends = self._ends(ready + slowed, theirs)
        slowed += self.computing[stream]
        beside = ends <= slowed
        first = int(beside.argmin())
        many = len(beside) if beside.flat[first] else first // len(slower)
        if many:
            self.done, longer = ends[many - 1], many * slower
            self.slowed = self.slowed + longer
            self.computing[stream] = self.computing[stream] + longer
        return many

    def _run_one(self, stream: int, ready: Floats, theirs: Floats | None) -> Floats:
        """Run a piece; by how much the compute takes longer for it."""
        begin = ready + self.slowed
        if theirs is not None:
            np.maximum(begin, theirs, out=begin)
        np.maximum(begin, self.done, out=begin)
        self.done = done = begin + self._length
        computing = self.computing[stream]
        longer: Floats = np.maximum(computing, begin)
        np.minimum(longer, done, out=longer)
        longer -= begin
        longer *= self._slowdown
        self.slowed = self.slowed + longer
        self.computing[stream] = computing + longer
        return longer

    def _run_behind(self, ready: Floats, theirs: Floats | None) -> None:
        """Run the last pieces, while the stream has nothing to compute."""
        if len(ready):
            self.done = self._ends(ready, theirs)[-1]

    def _ends(self, ready: Floats, theirs: Floats | None) -> Floats:
        """When each of the next pieces ends (pieces, columns), all slowed by as much as so far."""
        begin = ready + self.slowed
        if theirs is not None:
            np.maximum(begin, theirs, out=begin)
        begin -= self._before[: len(ready)]
        np.maximum(begin, self.done, out=begin)
        ends: Floats = np.maximum.accumulate(begin, out=begin)
        ends += self._until[: len(ready)]
        return ends


def run_pieces(
    pieces: Sequence[Target],
    meeting: Meeting,
    columns: Ints,
    ends: Mapping[Target, Floats],
    streams: Floats,
    slowed: Floats,
    slowdown: Floats,
    done: Floats,
) -> None:
    """Run the ``pieces`` of a collective in those ``columns``, each when its target is done by ``ends``.

    In them ``streams`` (streams, columns) changes, by how much the compute was ``slowed``, and when the engine was
    ``done`` with its last piece.
    """
    known = [ends[target] if target in ends else np.full(len(done), -np.inf) for target in pieces]
    ready = np.array(known).take(columns, axis=1)
    ready += meeting.late[columns] if isinstance(meeting.late, np.ndarray) else meeting.late
    computing = {number: streams[number, columns] for number in {target.stream: None for target in pieces}}
    length = meeting.length / len(pieces)
    state = Pieces(computing, slowed[columns], done[columns], slowdown[columns], length, len(pieces))
    state.run(pieces, ready, None if meeting.theirs is None else meeting.theirs[columns])
    slowed[columns], done[columns] = state.slowed, state.done
    for number, until in state.computing.items():
        streams[number, columns] = until
