"""Where one step ends and the next begins, in a program that was never told about us.

In order: ``syncscope.step()`` when the program calls it; else ``step()`` of the first optimiser seen twice (an
AMP scaler's skipped step counts: the loop went round all the same, and gradient accumulation is one step); else
the call of the outermost module seen twice. A module in training gives the optimiser time to show up.
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
"""Calls of a training module without any optimiser before its calls are taken as the steps."""


class StepWatch:
    """Finds the program's steps and calls ``boundary()`` between them.

    ``restart()`` is asked when a better source shows up after the first boundary; it answers whether it is not
    too late to count from the beginning again.
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
        self._forget_modules: Callable[[], None] = lambda: None
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
        self._forget_modules()
        for handle in self._optimizer_handles:
            handle.remove()
        self._optimizer_handles = []
        self._scaler.restore()

    def user_step(self) -> None:
        """The program's own ``syncscope.step()``."""
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
                self._forget_modules()
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
        """Look at the outermost calls of modules.

        Not with global hooks: torch warns of them under ``torch.compile``, and removing them makes it compile again.
        """
        compiling, main = self._compiling, threading.main_thread().ident
        watching = True
        patches = Patches(torch)

        def forget() -> None:
            nonlocal watching
            watching = False  # the program may have kept a bound ``module.__call__``
            patches.restore()

        self._forget_modules = forget

        def make(original: Any) -> Any:
            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching or threading.get_ident() != main:
                    return original(module, *args, **kwargs)
                if self._depth == 0:
                    self._outermost(module)
                self._depth += 1
                try:
                    return original(module, *args, **kwargs)
                finally:
                    self._depth -= 1

            return call

        patches.replace(torch.nn.Module, "__call__", make)

    def _outermost(self, module: Any) -> None:
        """``module`` is about to be called, and by no other module."""
        if self.source == "none":
            self._seen[id(module)] += 1
            if module.training and self._grad_enabled():
                self._training_calls += 1
                if self._training_calls < PATIENCE:
                    return
            if self._seen[id(module)] >= 2 and self._choose("module", module):
                self._settle_on(module)
        elif self.source == "module" and self._is_chosen(module):
            self._boundary()

    def _settle_on(self, module: Any) -> None:
        """One hook on the module instead of a look at every call, unless it is compiled: it would compile again."""
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            self._boundary()
            return
        self._forget_modules()
        self._forget_modules = module.register_forward_pre_hook(self._before_chosen).remove

    def _before_chosen(self, module: Any, args: Any) -> None:
        if not self._compiling():
            self._boundary()
