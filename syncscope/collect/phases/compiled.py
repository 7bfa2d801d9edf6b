"""Hear of compiled functions, in programs that make no optimiser: the calls of modules in them are in compiled code."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from syncscope.collect.imports import ImportWatch
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.phases.watched_calls import WatchedCalls

GRAPHS = "torch._inductor.output_code"


class CompiledCalls(WatchedCalls):
    """Tells ``tracker`` of each run of a graph that Inductor compiled, outside of modules' calls, without gradients and
    on the thread that is followed, as of a call of a module that is not in training.

    It leaves PyTorch alone once ``optimizers_made`` says that a training comes: optimisers have compiled functions of
    their own.
    """

    def __init__(
        self, tracker: PhaseTracker, followed: FollowedThread, failed: Callable[[Exception], object],
        optimizers_made: Callable[[], bool],
    ) -> None:  # fmt: skip
        super().__init__(tracker, followed, failed)
        self._optimizers_made = optimizers_made
        self._torch: Any = None
        self._imports = ImportWatch((), lambda _: None)

    def open(self, torch: Any) -> None:
        super().open(torch)
        self._torch = torch
        self._imports = ImportWatch(GRAPHS, self._imported)
        self._imports.open()

    def close(self) -> None:
        self._imports.close()
        super().close()

    def _imported(self, module: ModuleType) -> None:
        try:
            graph = getattr(module, "CompiledFxGraph", None)
            if graph is not None:
                self._patches.replace(graph, "__call__", self._make)
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    def _make(self, original: Any) -> Any:
        expected, followed, thread = self._tracker.expected, self._followed, threading.get_ident
        grad_enabled = self._torch.is_grad_enabled

        def call(graph: Any, *inputs: Any) -> Any:
            if not self._watching or expected.busy or grad_enabled() or thread() != followed.ident:
                return original(graph, *inputs)
            self._about_to_run(sys._getframe(1), graph)
            try:
                expected.busy = expected.inside_call = True
                return original(graph, *inputs)
            finally:
                expected.busy = expected.closed
                expected.inside_call = False

        return call

    def _about_to_run(self, frame: FrameType, graph: Any) -> None:
        """``graph`` is about to run, called by PyTorch's own ``frame``."""
        tracker, expected = self._tracker, self._tracker.expected
        timed = expected.left == expected.timed
        begin = tracker.begin_event()
        like = expected.left and expected.event == "eval" and expected.owner == id(graph)
        if like and tracker.is_like_last("eval", frame):
            expected.left -= 1
            if timed:
                expected.timed_ns += expected.clock() - begin
            return
        try:
            if self._optimizers_made():
                self.close()
            else:
                tracker.module_called(frame, graph, "eval")
        except Exception as error:
            self._failed(error)
        tracker.end_event(begin)
