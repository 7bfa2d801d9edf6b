"""Hear of each CUDA graph that Inductor records, warms up for, or skips."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from syncscope.collect.compiling.frames import program_frame
from syncscope.collect.compiling.log import CompileLog, Phase, Place
from syncscope.collect.compiling.reasons import Reason, read_skip
from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads

TREES = "torch._inductor.cudagraph_trees"
RECORD = "record_function"
WARM = "run_eager"
"""Runs a graph without a CUDA graph: before it is recorded, and behind another one that is not recorded."""
SKIP = "log_cudagraph_skip_and_bump_counter"
SKIPPING = (
    TREES, "torch._inductor.output_code", "torch._inductor.compile_fx", "torch._dynamo.backends.cudagraphs",
)  # fmt: skip
"""Modules that say why they skip CUDA graphs, by a function of that name (PyTorch 2.4 and later)."""

MOST_IDS = 1024
RECORDED_AGAIN = "recorded again: it was recorded for other inputs, or behind other graphs"
ANOTHER_SIZE = "a new CUDA graph is recorded for each of the distinct sizes of its inputs"
"""As Inductor warns, of shapes that are dynamic: nothing is compiled anew for another size."""


class GraphWatch:
    """Fills ``log`` while it is open. ``phase_at(frame)`` is the phase of what happens now in a frame, ``compiling()``
    the stack that compiles on this thread, if one does. ``failed`` hears of errors of ours: none leaves."""

    def __init__(
        self,
        log: CompileLog,
        stacks: Stacks,
        threads: Threads,
        phase_at: Callable[[FrameType], Phase | None],
        compiling: Callable[[], int | None],
        failed: Callable[[Exception], object],
    ) -> None:
        self._log = log
        self._stacks = stacks
        self._threads = threads
        self._phase_at = phase_at
        self._compiling = compiling
        self._failed = failed
        self._patches = Patches()
        self._imports = ImportWatch(SKIPPING, self._imported)
        self._seen: set[str] = set()
        """The modules that the program has imported."""
        self._wrapped: set[tuple[str, str]] = set()
        self._closed, self._pid = True, os.getpid()
        self._functions: set[tuple[int, int]] = set()
        """CUDA graphs that were recorded: their manager and function."""
        self._sizes: dict[tuple[int, int], tuple[int, int]] = {}
        """The function of the first sizes of each graph that Inductor compiled, by its manager and the graph."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What this version of PyTorch lacks, so that it is not seen."""
        lacks = TREES in self._seen
        return tuple(f"{TREES}.{name}" for name in (SKIP, RECORD, WARM) if lacks and (TREES, name) not in self._wrapped)

    def open(self, torch: Any) -> None:
        self._closed = False
        self._patches = Patches(torch)
        self._imports.open()

    def close(self) -> None:
        """Put everything back. Does nothing unless open."""
        self._closed = True
        self._imports.close()
        self._patches.restore()

    @property
    def _off(self) -> bool:
        return self._closed or os.getpid() != self._pid

    def _imported(self, module: ModuleType) -> None:
        """The program has imported a part of the compiler."""
        try:
            name = module.__name__
            self._seen.add(name)
            self._wrap(name, module, SKIP, self._make_skip)
            if name == TREES:
                manager = getattr(module, "CUDAGraphTreeManager", None)
                self._wrap(name, manager, RECORD, self._make_record)
                self._wrap(name, manager, WARM, self._make_warm)
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    def _wrap(self, module: str, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if hasattr(owner, name):
            self._patches.replace(owner, name, make)
            self._wrapped.add((module, name))

    def _make_skip(self, original: Any) -> Any:
        watch = self

        def skip(message: Any, *args: Any, **kwargs: Any) -> Any:
            if not watch._off:
                watch._skipped(message, sys._getframe(1))
            return original(message, *args, **kwargs)

        return skip

    def _skipped(self, message: Any, frame: FrameType) -> None:
        try:
            reason, outer, stack = read_skip(str(message)), program_frame(frame, None), self._compiling()
            if stack is None:
                stack = self._stacks.take(outer)
            if reason.line is not None:
                stack = self._stacks.extend(stack, [reason.line])
            self._log.add("skip", self._phase_at(outer), Place(stack), reason._replace(line=None))
        except Exception as error:
            self._failed(error)

    def _make_record(self, original: Any) -> Any:
        watch = self

        def record_function(manager: Any, new_inputs: Any, function_id: Any, *args: Any, **kwargs: Any) -> Any:
            if watch._off:
                return original(manager, new_inputs, function_id, *args, **kwargs)
            start_ns, frame = time.time_ns(), sys._getframe(1)
            try:
                return original(manager, new_inputs, function_id, *args, **kwargs)
            finally:
                watch._recorded(manager, function_id, frame, start_ns)

        return record_function

    def _recorded(self, manager: Any, function_id: Any, frame: FrameType, start_ns: int) -> None:
        try:
            outer, key = program_frame(frame, None), _key(manager, function_id)
            again = RECORDED_AGAIN if key in self._functions else None
            reason = Reason(again or self._another_size(manager, function_id))
            if len(self._functions) < MOST_IDS:
                self._functions.add(key)
            row = self._log.add("record", self._phase_at(outer), Place(self._stacks.take(outer)), reason)
            self._log.timed(row, self._threads.current(), start_ns, time.time_ns())
        except Exception as error:
            self._failed(error)

    def _make_warm(self, original: Any) -> Any:
        watch = self

        def run_eager(manager: Any, new_inputs: Any, function_id: Any, *args: Any, **kwargs: Any) -> Any:
            if not watch._off:
                watch._warms_up(manager, function_id, sys._getframe(1))
            return original(manager, new_inputs, function_id, *args, **kwargs)

        return run_eager

    def _warms_up(self, manager: Any, function_id: Any, frame: FrameType) -> None:
        try:
            if function_id in getattr(manager, "warmed_up_functions", ()):
                return  # it runs behind another one that is warmed up
            outer, reason = program_frame(frame, None), Reason(self._another_size(manager, function_id))
            self._log.add("warm", self._phase_at(outer), Place(self._stacks.take(outer)), reason)
        except Exception as error:
            self._failed(error)

    def _another_size(self, manager: Any, function_id: Any) -> str | None:
        """Why Inductor has another function for a graph that it compiled once: its inputs have another size."""
        function = getattr(manager, "ids_to_funcs", {}).get(function_id)
        if function is None or len(self._sizes) >= MOST_IDS:
            return None
        key = _key(manager, function_id)
        first = self._sizes.setdefault((id(manager), id(getattr(function, "model", function))), key)
        return None if first == key else ANOTHER_SIZE


def _key(manager: Any, function_id: Any) -> tuple[int, int]:
    return id(manager), int(getattr(function_id, "id", -1))
