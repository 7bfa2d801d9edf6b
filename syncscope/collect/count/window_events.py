"""Count what windows recorded while counting was suspended."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Sequence

from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.tally import WAITING_CALLS, Tally
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import SiteEvent

MOST_ENTERED = 10_000
"""Changes of phase inside of one window that are told apart."""


class WindowEvents:
    """Adds the waits among the events of windows to ``tally``, each to the phase that the program was in. The events do
    not say which that is, so the changes of phase are noted meanwhile."""

    def __init__(self, tally: Tally, threads: Threads) -> None:
        self._tally = tally
        self._threads = threads
        self._entered: list[tuple[int, int]] = []
        """When, by ``time.time_ns``, the program entered which phase since ``begin``."""
        self._phases: set[int] = set()
        """The numbers of all of them."""
        self.recorded: PhaseTally | None = None
        """The phase whose steps the window recorded."""

    def begin(self, phase: int) -> None:
        """A window begins in the phase with this number."""
        self._entered = [(time.time_ns(), phase)]
        self._phases = {phase}
        self.recorded = None

    def enter(self, phase: int) -> None:
        """The program enters the phase with this number."""
        self._phases.add(phase)
        if len(self._entered) < MOST_ENTERED:
            self._entered.append((time.time_ns(), phase))

    def was_in(self, phase: int) -> bool:
        """Whether the program was in the phase with this number since the last window began."""
        return phase in self._phases

    def add(self, state: PhaseTally, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None:
        """Add the events of a window that has just recorded steps of the phase of ``state``. Those of phases inside of
        them, such as an evaluation between two epochs, are not the steps' own; those of phases without steps, such as a
        checkpoint, are added to these."""
        self.recorded = state
        phase, steps = state.phase, len(boundaries_ns) - 1
        names = self._threads.names()
        first = max(phase.steps - steps, 0)
        for event in _waits(events):
            step = bisect.bisect_left(boundaries_ns, event.end_ns) - 1
            where = self._phase_at(event.end_ns)
            inside = self._tally.phases.get(phase.number if where is None else where)
            if inside is state and 0 <= step <= steps:
                self._tally.add_event(state, event, first + step, names.get(str(event.tid)))
            elif inside is not None and inside is not state and inside.stepless:
                self._tally.add_event(inside, event, inside.phase.steps, names.get(str(event.tid)))

    def _phase_at(self, time_ns: int) -> int | None:
        """The number of the phase that the program was in at that time of a window; ``None`` before it."""
        at = bisect.bisect_right(self._entered, time_ns, key=lambda entered: entered[0]) - 1
        return self._entered[at][1] if at >= 0 else None


def _waits(events: Sequence[SiteEvent]) -> Iterator[SiteEvent]:
    """The waits among ``events``, which are in order of their ends. A call in which PyTorch warned is no other wait
    than that, as it is none outside of windows."""
    warned_ns: dict[int, int] = {}
    for event in events:
        if event.kind == "warning":
            warned_ns[event.tid] = event.end_ns
            yield event
        elif event.name in WAITING_CALLS and warned_ns.get(event.tid, -1) < event.start_ns:
            yield event
