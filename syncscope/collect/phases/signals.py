"""Hooks on PyTorch that tell a ``PhaseTracker`` what the program does.

They cost about a microsecond each, do nothing in forked children and in code that is being compiled, and leave nothing
behind.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.features import find
from syncscope.collect.patching import Patches
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker

_open: weakref.WeakSet[Signals] = weakref.WeakSet()


def _forget_in_child() -> None:
    for signals in list(_open):
        signals.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class Signals:
    """Calls ``tracker`` at each step of an optimiser, outermost call of a module, batch of a loader and ``torch.save``.

    ``failure`` says why it stopped doing so, if it had to: the program goes on.
    """

    def __init__(self, tracker: PhaseTracker) -> None:
        self.failure = ""
        self._tracker = tracker
        self._followed = FollowedThread(tracker)
        self._torch: Any = None
        self._watching = False
        self._forget_modules: Callable[[], None] = lambda: None
        self._in_scaler = False
        self._in_loader = False
        self._saving = False
        self._handles: list[Any] = []
        self._patches = Patches()
        self._compiling: Callable[[], bool] = lambda: False

    def attach(self, torch: Any) -> None:
        """Start watching; ``torch`` is imported, CUDA need not be initialised.

        Raises AttributeError or ImportError where PyTorch has changed; ``detach`` then removes what is there.
        """
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._torch = torch
        self._watching = True
        _open.add(self)
        self._compiling = torch.compiler.is_compiling
        self._tracker.nests.skip(os.path.dirname(os.path.abspath(torch.__file__)))
        self._patches = Patches(torch)
        self._handles = [register_optimizer_step_post_hook(self._after_optimizer)]
        self._watch_modules(torch)
        self._watch_scaler(torch)
        self._watch_loaders(torch)
        self._watch_saves(torch)

    def detach(self) -> None:
        """Remove every hook. Does nothing the second time."""
        self.forget()  # the program may hold a bound ``module.__call__``
        self._tracker.inside_call = False
        _open.discard(self)
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.restore()

    def forget(self) -> None:
        """Stop telling the tracker, in a forked child for instance."""
        self._watching = False
        self._forget_modules()

    @property
    def optimizers_made(self) -> bool:
        """Whether the program has made an optimiser, before or after ``attach``."""
        optim = getattr(self._torch, "optim", None)
        classes = [optim.Optimizer] if optim is not None else []
        for kind in classes:  # grows
            if "step" in vars(kind) and getattr(vars(kind)["step"], "hooked", False):
                return True
            classes += kind.__subclasses__()
        return False

    def user_step(self) -> None:
        """The program called ``syncscope.step()``."""
        if not self.failure:
            try:
                self._tracker.user_stepped(sys._getframe(1))
            except Exception as error:
                self._fail(error)

    def tick(self) -> None:
        """A stretch of time ended, where steps are recorded by time."""
        if not self.failure:
            try:
                self._tracker.tick()
            except Exception as error:
                self._fail(error)

    def _after_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._watching and not self._in_scaler and not self._compiling() and self._followed.optimizer_stepped():
            try:
                self._tracker.optimizer_stepped(sys._getframe(1), optimizer)
            except Exception as error:
                self._fail(error)

    def _watch_scaler(self, torch: Any) -> None:
        """A scaler skips ``optimizer.step`` on infinite gradients: its own ``step`` is the step."""

        def make(original: Any) -> Any:
            def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                if not self._watching or self._in_scaler:
                    return original(scaler, optimizer, *args, **kwargs)
                self._in_scaler = True
                try:
                    result = original(scaler, optimizer, *args, **kwargs)
                finally:
                    self._in_scaler = False
                self._after_optimizer(optimizer, args, kwargs)
                return result

            return step

        self._patches.replace(torch.amp.GradScaler, "step", make)

    def _watch_modules(self, torch: Any) -> None:
        """Follow the outermost calls of modules.

        Not with global hooks: torch warns of them under ``torch.compile``, and compiles again when they are removed.
        """
        compiling, followed, thread = self._compiling, self._followed, threading.get_ident
        grad_enabled, tracker, frame = torch.is_grad_enabled, self._tracker, sys._getframe
        busy = False  # in an outermost call, or no longer watching

        def forget() -> None:
            nonlocal busy
            busy = True

        self._forget_modules = forget

        def make(original: Any) -> Any:
            plain = original is vars(torch.nn.Module).get("_wrapped_call_impl")

            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                nonlocal busy
                if busy:
                    # Most calls. What PyTorch's own __call__ does, without a call more.
                    if plain and module._compiled_call_impl is None:
                        return module._call_impl(*args, **kwargs)
                    return original(module, *args, **kwargs)
                if compiling() or (thread() != followed.ident and not followed.takes_over()):
                    return original(module, *args, **kwargs)
                try:
                    if not module.training:
                        tracker.module_called(frame(1), module, "eval")
                    else:
                        tracker.module_called(frame(1), module, "training" if grad_enabled() else "call")
                except Exception as error:
                    self._fail(error)
                try:
                    busy = tracker.inside_call = True
                    return original(module, *args, **kwargs)
                finally:
                    busy = not self._watching
                    tracker.inside_call = False

            return call

        self._patches.replace(torch.nn.Module, "__call__", make)

    def _watch_loaders(self, torch: Any) -> None:
        followed, thread = self._followed, threading.get_ident

        def make(original: Any) -> Any:
            def take(loader: Any) -> Any:
                if not self._watching or self._in_loader:
                    return original(loader)
                if thread() != followed.ident and not followed.takes_over():
                    return original(loader)
                self._in_loader = True
                try:
                    batch = original(loader)
                except StopIteration:
                    self._after_batch(sys._getframe(1), ended=True)
                    raise
                finally:
                    self._in_loader = False
                self._after_batch(sys._getframe(1), ended=False)
                return batch

            return take

        iterator = find(torch, "utils.data.dataloader._BaseDataLoaderIter")
        if iterator is not None:
            self._patches.replace(iterator, "__next__", make)

    def _after_batch(self, frame: FrameType, ended: bool) -> None:
        try:
            if ended:
                self._tracker.loader_ended(frame)
            else:
                self._tracker.loader_next(frame)
        except Exception as error:
            self._fail(error)

    def _watch_saves(self, torch: Any) -> None:
        followed, thread = self._followed, threading.get_ident

        def make(original: Any) -> Any:
            def save(*args: Any, **kwargs: Any) -> Any:
                if not self._watching or self._saving or thread() != followed.ident:
                    return original(*args, **kwargs)
                self._saving = True
                self._around_save(sys._getframe(1))
                try:
                    return original(*args, **kwargs)
                finally:
                    self._saving = False
                    self._around_save(None)

            return save

        self._patches.replace(torch, "save", make)
        self._patches.replace(torch.serialization, "save", make)

    def _around_save(self, frame: FrameType | None) -> None:
        """A save from ``frame`` begins; ``None``: it is over."""
        try:
            if frame is not None:
                self._tracker.save_begins(frame)
            else:
                self._tracker.save_ends()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Stop: the program must not fail because its phases cannot be told."""
        self.failure = f"Phases were no longer followed ({type(error).__name__}: {error})."
        self.forget()
