"""Hear of Inductor's tuning: a kernel that has several configurations tries them all when it first runs, and waits.

That is part of compiling, though the compilation is over by then. In a backward it is on a thread of autograd's, where
no line of the program's is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches

KERNELS, TUNE = "torch._inductor.runtime.triton_heuristics", "autotune_to_one_config"
"""A method of ``CachingAutotuner``, and its module (PyTorch 2.5 and later)."""


class Busy(Protocol):
    depth: int
    """What is under way on this thread."""


class TuningWatch:
    """While it is open, a kernel that is tuned adds one to ``busy.depth``. ``then(start_ns, end_ns)`` is called when it
    has been."""

    def __init__(self, busy: Busy, then: Callable[[int, int], None]) -> None:
        self._busy = busy
        self._then = then
        self._patches = Patches()
        self._imports = ImportWatch(KERNELS, self._imported)

    def open(self, torch: Any) -> None:
        self._patches = Patches(torch)
        self._imports.open()

    def close(self) -> None:
        self._imports.close()
        self._patches.restore()

    def _imported(self, module: ModuleType) -> None:
        kernel = getattr(module, "CachingAutotuner", None)
        if hasattr(kernel, TUNE):
            self._patches.replace(kernel, TUNE, self._make_tune)

    def _make_tune(self, original: Any) -> Any:
        busy, then = self._busy, self._then

        def tune(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            start_ns = time.time_ns()
            busy.depth += 1
            try:
                return original(kernel, *args, **kwargs)
            finally:
                busy.depth -= 1
                if not busy.depth:  # else it is in the time of what compiles
                    then(start_ns, time.time_ns())

        return tune
