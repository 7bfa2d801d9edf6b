"""Happens-before between streams and the host, by vector clocks: no time is measured.

The n-th piece of work launched on a stream is its tick n. A stream's clock says, for every stream, up to which tick
all work is over before the next work launched here begins. Streams and events are plain numbers.
"""

from __future__ import annotations

Clock = dict[int, int]


class Clocks:
    """What every stream, every event and the host know of the streams' progress.

    There is one host: what one thread has waited for, all are taken to know.
    """

    def __init__(self) -> None:
        self._host: Clock = {}
        self._streams: dict[int, Clock] = {}
        self._events: dict[int, Clock] = {}

    def launch(self, stream: int) -> int:
        """Work is launched on ``stream``: its tick."""
        clock = self._streams.setdefault(stream, {})
        clock[stream] = tick = clock.get(stream, 0) + 1
        return tick

    def record(self, event: int, stream: int) -> None:
        """``event`` now stands for all that was launched on ``stream`` so far."""
        self._events[event] = self._streams.get(stream, {}).copy()

    def forget(self, event: int) -> None:
        """``event`` is gone, or new: it stands for nothing."""
        self._events.pop(event, None)

    def wait(self, stream: int, event: int) -> None:
        """What is launched on ``stream`` from now on begins after ``event``."""
        _join(self._streams.setdefault(stream, {}), self._events.get(event, {}))

    def host_waits_for_event(self, event: int) -> None:
        _join(self._host, self._events.get(event, {}))

    def host_waits_for_stream(self, stream: int) -> None:
        _join(self._host, self._streams.get(stream, {}))

    def host_waits_for_all(self) -> None:
        for clock in tuple(self._streams.values()):
            _join(self._host, clock)

    def over(self, stream: int, tick: int) -> bool:
        """Whether the host knows that a tick of ``stream`` is over: then it is, whoever asks."""
        return tick <= self._host.get(stream, 0)

    def before(self, stream: int, tick: int, here: int) -> bool:
        """Whether a tick of ``stream`` is over before work that is launched on the stream ``here`` now begins."""
        return tick <= self._streams.get(here, {}).get(stream, 0) or self.over(stream, tick)


def _join(clock: Clock, other: Clock) -> None:
    """Let ``clock`` know what ``other`` knows."""
    # Another thread may record or wait meanwhile: the copy keeps the loop whole.
    for stream, tick in tuple(other.items()):
        if tick > clock.get(stream, 0):
            clock[stream] = tick
