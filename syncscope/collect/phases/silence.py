"""Tell when an optimiser is called no more because the program replays its steps: they are in a CUDA graph.

Such a program calls the optimiser to warm up, and to capture the graph. Nothing of PyTorch's tells of the steps that
follow. An optimiser that was never captured may be as quiet: a program evaluates for long, prepares data, or plays a
game before it learns from it. So nobody is silent whose step was not captured, and nothing replays its steps in whose
turns no graph is replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncscope.collect.device import captures_graph
from syncscope.collect.features import find
from syncscope.collect.patching import Patches
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.tracker import PhaseTracker

SILENCE_NS = 1_000_000_000
SILENT_STEPS = 20
"""An optimiser is silent that nothing was heard of for so long, and for as long as so many of its steps took. A loop is
chosen two looks later at the earliest."""

FEW_STEPS = 64
"""An optimiser that made more steps than this by itself is not silent: they would count no more."""


class Silence:
    """Which training is silent, and how many CUDA graphs were replayed while one was."""

    def __init__(self, tracker: PhaseTracker, clock: Callable[[], int]) -> None:
        self.lasts = False
        """Nothing was told for long, not even of turns that are steps."""
        self.replays = 0
        """Graphs that were replayed since one was silent."""
        self._tracker = tracker
        self._clock = clock
        self._torch: Any = None
        self._patches = Patches()
        self._hears = False
        self._told, self._told_ns = -1, 0

    def open(self, torch: Any) -> None:
        self._torch, self._patches = torch, Patches(torch)

    def close(self) -> None:
        """Hear of no replay any more. Does nothing the second time."""
        if self._hears:
            self._hears = False
            self._patches.restore()

    def is_captured(self) -> bool:
        """Whether what this thread does now is captured in a CUDA graph."""
        try:
            return captures_graph(self._torch)
        except Exception:  # PyTorch was built without CUDA
            return False

    def look(self) -> Phase | None:
        """The training that is silent, also once the turns of a loop are its steps. On a thread of ours."""
        phase, tracker = self._tracker.fallen_silent(), self._tracker
        told, now = tracker.told, self._clock()
        if told != self._told:
            self._told, self._told_ns = told, now
        steps = phase.steps + (tracker.unheard if phase is tracker.current else 0) if phase is not None else 0
        if phase is None or (not phase.silent and steps > FEW_STEPS):
            self.lasts = False
            return None
        usual = phase.lengths.median() or 0
        self.lasts = now - self._told_ns >= max(SILENCE_NS, SILENT_STEPS * usual)
        return phase if self.lasts or phase.silent else None

    def hear_replays(self) -> None:
        """Count replays from now on."""
        graph = find(self._torch, "cuda.CUDAGraph")
        if not self._hears and graph is not None:
            self._hears = True
            self._patches.replace(graph, "replay", self._make)

    def _make(self, original: Any) -> Any:
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.replays += 1
            return original(graph, *args, **kwargs)

        return replay
