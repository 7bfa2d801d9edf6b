"""Hear of gradients, in programs that make no optimiser and call no module: a loop of a user's own mathematics."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.phases.choice import Event
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.phases.watched_calls import WatchedCalls


class GradientCalls(WatchedCalls):
    """Tells ``tracker`` of each call of ``backward`` and ``torch.autograd.grad`` on the thread that is followed.

    It leaves PyTorch alone once steps are told by something else, or ``optimizers_made`` says that they will be.
    """

    def __init__(
        self, tracker: PhaseTracker, followed: FollowedThread, failed: Callable[[Exception], object],
        optimizers_made: Callable[[], bool],
    ) -> None:  # fmt: skip
        super().__init__(tracker, followed, failed)
        self._optimizers_made = optimizers_made
        self._busy = False

    def open(self, torch: Any) -> None:
        super().open(torch)
        self._patches.replace(torch.autograd, "_engine_run_backward", self._make)

    def _make(self, original: Any) -> Any:
        followed, thread = self._followed, threading.get_ident

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if not self._watching or self._busy or thread() != followed.ident:
                return original(*args, **kwargs)
            self._busy = True
            try:
                result = original(*args, **kwargs)
            finally:
                self._busy = False
            self._computed(sys._getframe(1), bool(kwargs.get("accumulate_grad")))
            return result

        return run_backward

    def _computed(self, frame: FrameType, accumulated: bool) -> None:
        """Gradients were computed by ``backward`` or ``grad`` of PyTorch's, whose frame this is."""
        tracker = self._tracker
        expected = tracker.expected
        event: Event = "backward" if accumulated else "grad"
        timed = expected.left == expected.timed
        begin = tracker.begin_event()
        if expected.left and expected.event == event and tracker.is_like_last(event, frame):
            expected.left -= 1
            if timed:
                expected.timed_ns += expected.clock() - begin
            return
        try:
            if tracker.has_better_steps or self._optimizers_made():
                self.close()
            else:
                tracker.gradients_computed(frame, event)
        except Exception as error:
            self._failed(error)
        tracker.end_event(begin)
