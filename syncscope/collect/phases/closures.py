"""Hear of each time that L-BFGS evaluates its closure, where a whole training is one step of it, or few are."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from syncscope.collect.features import find
from syncscope.collect.patching import tracing
from syncscope.collect.phases.choice import PATIENCE
from syncscope.collect.phases.watched_calls import WatchedCalls


class ClosureCalls(WatchedCalls):
    """Tells ``tracker`` of each evaluation on the thread that is followed. An optimiser that makes ``PATIENCE``
    iterations at most in a step has steps enough of its own.
    """

    def open(self, torch: Any) -> None:
        super().open(torch)
        optimizer = find(torch, "optim.LBFGS")
        if optimizer is not None:  # it gathers all gradients right after each evaluation
            traced = tracing(torch)
            self._patches.replace(optimizer, "_gather_flat_grad", lambda original: self._make(original, traced))

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
            expected.left, expected.quiet = expected.left - 1, expected.usual
            return
        begin = self._tracker.begin_event()
        try:
            if optimizer.param_groups[0].get("max_iter", 0) > PATIENCE:
                self._tracker.closure_evaluated(sys._getframe(2), optimizer)
        except Exception as error:
            self._failed(error)
        self._tracker.end_event(begin)
