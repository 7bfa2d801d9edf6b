"""Notice when the program has made its first steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from syncscope.collect.annotations import step_listeners
from syncscope.collect.patching import Patches
from syncscope.collect.phases.made import optimizers_made
from syncscope.collect.phases.modules import has_compiled


class WarmUp:
    """Calls ``then`` once, on the thread and at the end of step ``after``.

    A step is a call of ``syncscope.step()``, else a step of an optimiser, else an outermost call of a module on a
    thread. The hooks go when it is over. Only in a program that has compiled something, the one on modules stays, and
    passes calls on: Dynamo would compile again.
    """

    def __init__(self, after: int, then: Callable[[], None]) -> None:
        self._after = after
        self._then = then
        self._said = self._optimized = self._called = 0
        self._over = False
        self._inside = threading.local()
        self._lock = threading.Lock()
        self._patches = Patches()
        self._torch: Any = None
        self._handle: Any = None

    @property
    def steps(self) -> int:
        """How many steps were seen."""
        return self._said or self._optimized or (self._called if not optimizers_made(self._torch) else 0)

    def open(self, torch: Any) -> None:
        """Begin to look for steps."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._torch = torch
        if not self._after:
            self._finish()
            return
        step_listeners.append(self._say)
        self._handle = register_optimizer_step_post_hook(self._stepped)
        self._patches = Patches(torch)
        self._patches.replace(torch.nn.Module, "__call__", self._make_call)

    def _say(self) -> None:
        """The program said that a step ended."""
        self._said += 1
        self._look()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._over and not self._torch.compiler.is_compiling():
            self._optimized += 1
            self._look()

    def _make_call(self, original: Any) -> Any:
        warm_up, compiling, inside = self, self._torch.compiler.is_compiling, self._inside

        # ``self`` by name: a profiler of the program's that records stacks asks what is ``Module.__call__`` for it.
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            if compiling() or warm_up._over or getattr(inside, "module", False):
                return original(self, *args, **kwargs)
            inside.module = True
            try:
                return original(self, *args, **kwargs)
            finally:
                inside.module = False
                warm_up._called += 1
                warm_up._look()

        return call

    def _look(self) -> None:
        with self._lock:
            if self._over or self.steps < self._after:
                return
            self._over = True
        self._finish()

    def _finish(self) -> None:
        self._over = True
        if self._say in step_listeners:
            step_listeners.remove(self._say)
        if self._handle is not None:
            self._handle.remove()
        if not has_compiled():
            self._patches.restore()
        self._then()
