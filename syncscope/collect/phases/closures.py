"""Hear of each time that L-BFGS evaluates its closure, where a whole training is one step of it, or few are."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from syncscope.collect.features import find
from syncscope.collect.patching import Patches, tracing
from syncscope.collect.phases.choice import PATIENCE
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker


class ClosureCalls:
    """Tells ``tracker`` of each evaluation on the thread that is followed. An optimiser that makes ``PATIENCE``
    iterations at most in a step has steps enough of its own.
    """

    def __init__(self, tracker: PhaseTracker, followed: FollowedThread, failed: Callable[[Exception], object]) -> None:
        self._tracker = tracker
        self._followed = followed
        self._failed = failed
        self._watching = False
        self._patches = Patches()

    def open(self, torch: Any) -> None:
        self._watching = True
        self._patches = Patches(torch)
        optimizer = find(torch, "optim.LBFGS")
        if optimizer is not None:  # it gathers all gradients right after each evaluation
            traced = tracing(torch)
            self._patches.replace(optimizer, "_gather_flat_grad", lambda original: self._make(original, traced))

    def close(self) -> None:
        """Does nothing the second time."""
        self.forget()
        self._patches.restore()

    def forget(self) -> None:
        """Stop telling the tracker, in a forked child for instance."""
        self._watching = False

    def _make(self, original: Any, traced: Callable[[], bool]) -> Any:
        def gather(optimizer: Any) -> Any:
            gradients = original(optimizer)
            if not traced() and self._watching and threading.get_ident() == self._followed.ident:
                self._evaluated(optimizer)
            return gradients

        return gather

    def _evaluated(self, optimizer: Any) -> None:
        expected = self._tracker.expected
        if expected.left and expected.event == "evaluation" and expected.owner == id(optimizer):
            expected.left -= 1
            return
        begin = self._tracker.begin_event()
        try:
            if optimizer.param_groups[0].get("max_iter", 0) > PATIENCE:
                self._tracker.closure_evaluated(sys._getframe(2), optimizer)
        except Exception as error:
            self._failed(error)
        self._tracker.end_event(begin)
