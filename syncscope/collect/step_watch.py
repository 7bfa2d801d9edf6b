"""Find where one step ends and the next begins, in a program that does not know syncscope.

The sources of steps, best first:

1. ``syncscope.step()``, where the program calls it.
2. ``step()`` of the first optimiser that steps twice. A step that an AMP scaler skips counts too, and gradient
   accumulation is one step.
3. The call of the first outermost module that is called twice. A module in training is not taken before the optimiser
   had time to show up.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from syncscope.collect.patching import Patches

Source = Literal["user", "optimizer", "module", "seconds", "none"]

PATIENCE = 32
"""Calls of a module in training, without an optimiser's step, before its calls count as steps."""


class StepWatch:
    """Finds the program's steps and calls ``boundary()`` between them.

    When a better source shows up after the first boundary, ``restart()`` begins to count again and returns ``True``,
    or returns ``False`` because it is too late.
    """

    def __init__(self, boundary: Callable[[], None], restart: Callable[[], bool]) -> None:
        self.source: Source = "none"
        self._boundary = boundary
        self._restart = restart
        self._seen: Counter[int] = Counter()
        self._training_calls = 0
        self._depth = 0
        self._in_scaler = False
        self._chosen: weakref.ref[Any] | None = None
        self._optimizer_handles: list[Any] = []
        self._unwatch_modules: Callable[[], None] = lambda: None
        self._scaler = Patches()
        self._compiling: Callable[[], bool] = lambda: False
        self._grad_enabled: Callable[[], bool] = lambda: True

    def attach(self, torch: Any) -> None:
        """Start watching; ``torch`` is imported, CUDA need not be initialised."""
        if self.source == "user":
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._compiling = torch.compiler.is_compiling
        self._grad_enabled = torch.is_grad_enabled
        self._optimizer_handles = [register_optimizer_step_post_hook(self._after_optimizer)]
        self._watch_modules(torch)
        self._watch_scaler(torch)

    def detach(self) -> None:
        """Remove every hook."""
        self._unwatch_modules()
        for handle in self._optimizer_handles:
            handle.remove()
        self._optimizer_handles = []
        self._scaler.restore()

    def user_step(self) -> None:
        """The program called ``syncscope.step()``."""
        if self.source != "user" and self._choose("user", None):
            self.detach()
        if self.source == "user":
            self._boundary()

    def _choose(self, source: Source, owner: Any) -> bool:
        if self.source != "none" and not self._restart():
            return False
        self.source = source
        self._chosen = weakref.ref(owner) if owner is not None else None
        return True

    def _is_chosen(self, owner: Any) -> bool:
        return self._chosen is not None and self._chosen() is owner

    def _after_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._compiling() or self._in_scaler:
            return
        self._optimizer_step(optimizer)

    def _optimizer_step(self, optimizer: Any) -> None:
        if self.source in ("none", "module"):
            self._seen[id(optimizer)] += 1
            self._training_calls = 0
            if self._seen[id(optimizer)] >= 2 and self._choose("optimizer", optimizer):
                self._unwatch_modules()
        if self.source == "optimizer" and self._is_chosen(optimizer):
            self._boundary()

    def _watch_scaler(self, torch: Any) -> None:
        """A scaler skips ``optimizer.step`` on infinite gradients: its own ``step`` is the boundary."""

        def make(original: Any) -> Any:
            def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                self._in_scaler = True
                try:
                    return original(scaler, optimizer, *args, **kwargs)
                finally:
                    self._in_scaler = False
                    self._optimizer_step(optimizer)

            return step

        self._scaler = Patches(torch)
        self._scaler.replace(torch.amp.GradScaler, "step", make)

    def _watch_modules(self, torch: Any) -> None:
        """Follow the outermost calls of modules.

        Not with global hooks: torch warns of them under ``torch.compile``, and compiles again when they are removed.
        """
        compiling, main = self._compiling, threading.main_thread().ident
        watching = True
        patches = Patches(torch)

        def unwatch() -> None:
            nonlocal watching
            watching = False  # the program may hold a bound ``module.__call__``
            patches.restore()

        self._unwatch_modules = unwatch

        def make(original: Any) -> Any:
            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching or threading.get_ident() != main:
                    return original(module, *args, **kwargs)
                if self._depth == 0:
                    self._before_outermost(module)
                self._depth += 1
                try:
                    return original(module, *args, **kwargs)
                finally:
                    self._depth -= 1

            return call

        patches.replace(torch.nn.Module, "__call__", make)

    def _before_outermost(self, module: Any) -> None:
        """``module`` is about to be called, and not by another module."""
        if self.source == "none":
            self._seen[id(module)] += 1
            if module.training and self._grad_enabled():
                self._training_calls += 1
                if self._training_calls < PATIENCE:
                    return
            if self._seen[id(module)] >= 2 and self._choose("module", module):
                self._watch_only(module)
        elif self.source == "module" and self._is_chosen(module):
            self._boundary()

    def _watch_only(self, module: Any) -> None:
        """Replace the wrapper of all calls by one hook on ``module``, unless that would make torch compile it again."""
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            self._boundary()
            return
        self._unwatch_modules()
        self._unwatch_modules = module.register_forward_pre_hook(self._before_chosen).remove

    def _before_chosen(self, module: Any, args: Any) -> None:
        if not self._compiling():
            self._boundary()
