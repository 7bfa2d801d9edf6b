"""Happens-before between streams and the host, by vector clocks. No time is measured.

The n-th piece of work launched on a stream is its tick n. The clock of a stream says, for every stream, up to which
tick all work is over before the next work launched on the stream begins. Streams and events are plain numbers.
"""

from __future__ import annotations

import itertools

Clock = dict[int, int]


class Clocks:
    """What every stream, every event and the host know of the progress of all streams.

    There is one host: what one thread has waited for, every thread is taken to know.
    """

    def __init__(self) -> None:
        self._host: Clock = {}
        self._streams: dict[int, Clock] = {}
        self._events: dict[int, Clock] = {}
        self._imported: set[int] = set()

    def launch(self, stream: int) -> int:
        """Launch a piece of work on ``stream`` and return its tick."""
        clock = self._streams.setdefault(stream, {})
        clock[stream] = tick = clock.get(stream, 0) + 1
        return tick

    def record(self, event: int, stream: int) -> None:
        """Record ``event``: from now on it stands for all that was launched on ``stream`` so far."""
        self._imported.discard(event)
        self._events[event] = self._streams.get(stream, {}).copy()

    def record_elsewhere(self, event: int) -> None:
        """``event`` is recorded by another process. What it stands for is unknown, so it stands for everything."""
        self._imported.add(event)

    def wait(self, stream: int, event: int) -> None:
        """Make what is launched on ``stream`` from now on begin after ``event``."""
        if event in self._imported:
            self.wait_for_all(stream)
        else:
            _join(self._streams.setdefault(stream, {}), self._events.get(event, {}))

    def wait_for_stream(self, stream: int, other: int) -> None:
        """Make what is launched on ``stream`` from now on begin after all that was launched on ``other`` so far."""
        if stream != other:
            _join(self._streams.setdefault(stream, {}), self._streams.get(other, {}))

    def wait_for_all(self, *streams: int) -> None:
        """Make what is launched on ``streams`` from now on begin after all that was launched anywhere so far."""
        for stream, other in itertools.product(streams, tuple(self._streams)):
            self.wait_for_stream(stream, other)

    def host_waits_for_event(self, event: int) -> None:
        if event in self._imported:
            self.host_waits_for_all()
        else:
            _join(self._host, self._events.get(event, {}))

    def host_waits_for_stream(self, stream: int) -> None:
        _join(self._host, self._streams.get(stream, {}))

    def host_waits_for_all(self) -> None:
        for clock in tuple(self._streams.values()):
            _join(self._host, clock)

    def over(self, stream: int, tick: int) -> bool:
        """Whether the host knows that a tick of ``stream`` is over. Then it is over for everybody."""
        return tick <= self._host.get(stream, 0)

    def before(self, stream: int, tick: int, here: int) -> bool:
        """Whether a tick of ``stream`` is over before work that is launched on the stream ``here`` now begins."""
        return tick <= self._streams.get(here, {}).get(stream, 0) or self.over(stream, tick)


def _join(clock: Clock, other: Clock) -> None:
    """Add to ``clock`` what ``other`` knows."""
    # Another thread may record or wait at the same time: iterate over a copy.
    for stream, tick in tuple(other.items()):
        if tick > clock.get(stream, 0):
            clock[stream] = tick
