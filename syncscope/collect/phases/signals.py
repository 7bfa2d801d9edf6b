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
from typing import Any, Protocol

from syncscope.collect.features import find
from syncscope.collect.patching import Patches, tracing
from syncscope.collect.phases.checkpoints import CheckpointCalls
from syncscope.collect.phases.closures import ClosureCalls
from syncscope.collect.phases.compiled import CompiledCalls
from syncscope.collect.phases.expected import NOBODY
from syncscope.collect.phases.gradients import GradientCalls
from syncscope.collect.phases.made import allocations, modules_defined, optimizers_made
from syncscope.collect.phases.modules import ModuleCalls
from syncscope.collect.phases.silence import FEW_STEPS
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.phases.turns import LoopTurns
from syncscope.collect.relatives import several_ranks

_open: weakref.WeakSet[Signals] = weakref.WeakSet()


def _forget_in_child() -> None:
    for signals in list(_open):
        signals.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class Moments(Protocol):
    """Hears when each of it began and ended, by ``time.perf_counter_ns``. Raises nothing."""

    def asks(self, iterator: Any) -> tuple[int | None, int]: ...
    def took(self, iterator: Any, asked: tuple[int | None, int], frame: FrameType) -> None: ...
    def called(self, module: Any, begin_ns: int, frame: FrameType) -> None: ...
    def begins_step(self) -> None: ...
    def stepped(self, optimizer: Any, frame: FrameType) -> None: ...


class Signals:
    """Calls ``tracker`` at each step of an optimiser, outermost call of a module, batch of a loader, ``torch.save`` and
    ``torch.load``, save of safetensors, and at each call of ``backward`` and ``grad``, or turn of a loop, of a program
    that tells no steps otherwise.

    ``failure`` says why it stopped doing so, if it had to: the program goes on.
    """

    def __init__(self, tracker: PhaseTracker) -> None:
        self.failure = ""
        self._moments: Moments | None = None
        self._tracker = tracker
        self._followed = FollowedThread(tracker)
        self._torch: Any = None
        self._watching = False
        self._modules = ModuleCalls(tracker, self._followed, self._fail)
        self._gradients = GradientCalls(tracker, self._followed, self._fail, lambda: self.optimizers_made)
        self._closures = ClosureCalls(tracker, self._followed, self._fail)
        self._checkpoints = CheckpointCalls(tracker, self._followed, self._fail, lambda: self._in_loader)
        self._compiled = CompiledCalls(tracker, self._followed, self._fail, lambda: self.optimizers_made)
        self._turns = LoopTurns(tracker, self._followed, self._fail, lambda: self.optimizers_made)
        self._before: Any = None
        """The handle of the hook before steps of optimisers, which is there while somebody hears of moments."""
        self._in_loader = False
        self._handles: list[Any] = []
        self._patches = Patches()
        self._traced: Callable[[], bool] = lambda: False
        self.after_optimizer = self._make_after_optimizer()
        self.user_step = self._make_user_step()
        """The program called ``syncscope.step()``."""

    def attach(self, torch: Any) -> None:
        """Start watching; ``torch`` is imported, CUDA need not be initialised. Does nothing while watching.

        Raises AttributeError or ImportError where PyTorch has changed; ``detach`` then removes what is there.
        """
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if self._handles:
            return
        self._torch = torch
        self._watching = True
        _open.add(self)
        self._traced = tracing(torch)
        self.after_optimizer = self._make_after_optimizer()
        self._tracker.nests.skip(os.path.dirname(os.path.abspath(torch.__file__)))
        self._patches = Patches(torch)
        self._handles = [register_optimizer_step_post_hook(self.after_optimizer)]
        self._watch_begins_of_steps()
        self._modules.open(torch)
        self._watch_scaler(torch)
        self._watch_loaders(torch)
        self._checkpoints.open(torch)
        self._gradients.open(torch)
        self._closures.open(torch)
        self._compiled.open(torch)
        self._turns.modules_defined = lambda: modules_defined(torch, self._tracker.nests.paths.is_user)
        self._turns.several_ranks = lambda: several_ranks(torch)
        self._turns.allocations = lambda: allocations(torch)
        self._turns.silence.open(torch)
        self._turns.open()

    def detach(self) -> None:
        """Remove every hook. Does nothing the second time."""
        self.forget()  # the program may hold a bound ``module.__call__``
        self._tracker.expected.inside_call = False
        _open.discard(self)
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._watch_begins_of_steps()
        self._modules.close()
        self._gradients.close()
        self._closures.close()
        self._compiled.close()
        self._turns.close()
        self._checkpoints.close()
        self._patches.restore()

    def forget(self) -> None:
        """Stop telling the tracker, in a forked child for instance."""
        self._watching = False
        self._tracker.expected.slow_down()
        self._modules.forget()
        self._gradients.forget()
        self._closures.forget()
        self._checkpoints.forget()
        self._compiled.forget()
        self._turns.close()

    @property
    def note(self) -> str | None:
        """What a reader must know of the threads that make the steps, and of steps that an optimizer does not tell."""
        return " ".join(filter(None, (self._followed.note, self._turns.note_of_silence))) or None

    @property
    def note_without_steps(self) -> str | None:
        """Why a run has no steps."""
        return self._turns.note

    def hear_waits(self, waits: Callable[[], int]) -> None:
        """``waits()`` says how often the calling thread waited for the device so far, as far as that is counted."""
        self._turns.waits = waits

    def look_for_loops(self) -> None:
        """Look for the loop of a program of tensors alone. On a thread of ours."""
        self._turns.look()

    def look_wider(self) -> None:
        """Look at all modules again, if it is time. From any thread."""
        if self._watching:
            self._modules.look_wider()

    @property
    def moments(self) -> Moments | None:
        """Who hears of moments, while somebody does."""
        return self._moments

    @moments.setter
    def moments(self, moments: Moments | None) -> None:
        self._moments = self._tracker.expected.moments = moments
        self._tracker.expected.slow_down()
        self._watch_begins_of_steps()

    def _watch_begins_of_steps(self) -> None:
        """Have the hook before steps of optimisers exactly while somebody hears of it."""
        wanted = bool(self._handles) and self._moments is not None
        if wanted and self._before is None:
            from torch.optim.optimizer import register_optimizer_step_pre_hook

            self._before = register_optimizer_step_pre_hook(self._before_optimizer)
        elif not wanted and self._before is not None:
            self._before.remove()
            self._before = None

    @property
    def optimizers_made(self) -> bool:
        """Whether the program has made an optimiser, before or after ``attach``."""
        return optimizers_made(self._torch)

    def _make_user_step(self) -> Callable[[], None]:
        """``syncscope.step()``. Local names are fast."""
        expected, look = self._tracker.expected, self._look_at_user_step

        def user_step() -> None:
            if (left := expected.left) & expected.mask and expected.event == "user":  # not looked at closely
                expected.left, expected.quiet = left - 1, expected.usual
            else:
                look()

        return user_step

    def _look_at_user_step(self) -> None:
        """Look closely at a step that the program told, and tell of it unless it is like the last one."""
        expected = self._tracker.expected
        timed = expected.left == expected.timed
        begin = expected.clock() if timed else 0
        if expected.is_next("user", NOBODY, 3):
            expected.left, expected.quiet = expected.left - 1, expected.usual
            if timed:
                expected.timed_ns += expected.clock() - begin
        elif not self.failure:
            begin = self._tracker.begin_event()
            try:
                self._tracker.user_stepped(sys._getframe(2))
            except Exception as error:
                self._fail(error)
            self._tracker.end_event(begin)

    def tick(self) -> None:
        """A stretch of time ended, where steps are recorded by time."""
        if not self.failure:
            begin = self._tracker.begin_event()
            try:
                self._tracker.tick()
            except Exception as error:
                self._fail(error)
            self._tracker.end_event(begin)

    def _before_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._traced() and self._moments is not None:
            self._moments.begins_step()

    def _make_after_optimizer(self) -> Callable[[Any, Any, Any], None]:
        """The hook behind steps of optimisers. Local names are fast."""
        expected, look, traced = self._tracker.expected, self._look_at_optimizer, self._traced

        def after_optimizer(optimizer: Any, args: Any, kwargs: Any) -> None:
            if traced():  # Dynamo must see nothing that changes
                return
            if (
                expected.quick
                and (left := expected.left)
                and left != expected.timed
                and expected.owner == id(optimizer)
                and expected.event == "step"
                and not expected.in_scaler
            ):
                expected.left, expected.quiet = left - 1, expected.usual
            else:
                look(optimizer)

        return after_optimizer

    def _look_at_optimizer(self, optimizer: Any) -> None:
        """Look closely at a step of ``optimizer``, and tell of it unless it is the one that was expected."""
        expected = self._tracker.expected
        if not self._watching or expected.in_scaler:
            return
        timed = expected.left == expected.timed
        begin = expected.clock() if timed else 0
        followed = self._followed
        if not (followed.trains and threading.get_ident() == followed.ident) and not followed.optimizer_stepped():
            return
        if self._moments is not None:
            self._moments.stepped(optimizer, sys._getframe(2))
        if expected.left and expected.event == "step" and expected.owner == id(optimizer):
            expected.left, expected.quiet = expected.left - 1, expected.usual
        elif expected.left and expected.seconds and expected.second == id(optimizer):
            expected.seconds -= 1
        else:
            timed, begin = False, self._tracker.begin_event()
            try:
                few = self._tracker.current.steps <= FEW_STEPS  # else it will not be silent
                captured = few and self._turns.silence.is_captured()
                self._tracker.optimizer_stepped(sys._getframe(2), optimizer, captured)
            except Exception as error:
                self._fail(error)
            self._tracker.end_event(begin)
        if timed:
            expected.timed_ns += expected.clock() - begin

    def _watch_scaler(self, torch: Any) -> None:
        """A scaler skips ``optimizer.step`` on infinite gradients: its own ``step`` is the step."""

        expected = self._tracker.expected

        def make(original: Any) -> Any:
            def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                if not self._watching or expected.in_scaler:
                    return original(scaler, optimizer, *args, **kwargs)
                expected.in_scaler = True
                try:
                    result = original(scaler, optimizer, *args, **kwargs)
                finally:
                    expected.in_scaler = False
                self.after_optimizer(optimizer, args, kwargs)
                return result

            return step

        self._patches.replace(torch.amp.GradScaler, "step", make)

    def _watch_loaders(self, torch: Any) -> None:
        followed, thread, expected = self._followed, threading.get_ident, self._tracker.expected

        def make(original: Any) -> Any:
            def take(loader: Any) -> Any:
                if not self._watching or self._in_loader:
                    return original(loader)
                if thread() != followed.ident and not followed.takes_over():
                    return original(loader)
                self._in_loader = True
                busy, expected.busy = expected.busy, True  # a dataset's transforms are modules too
                moments = self._moments
                asked = moments.asks(loader) if moments is not None else None
                try:
                    batch = original(loader)
                except StopIteration:
                    self._after_batch(sys._getframe(1), None)
                    raise
                finally:
                    self._in_loader = False
                    expected.busy = busy or not self._watching
                if moments is not None and asked is not None:
                    moments.took(loader, asked, sys._getframe(1))
                frame = sys._getframe(1)
                if (
                    expected.batches
                    and expected.loader == id(loader)
                    and expected.batch_lasti == frame.f_lasti
                    and expected.batch_code is frame.f_code
                ):
                    expected.batches -= 1
                else:
                    self._after_batch(frame, loader)
                return batch

            return take

        iterator = find(torch, "utils.data.dataloader._BaseDataLoaderIter")
        if iterator is not None:
            self._patches.replace(iterator, "__next__", make)

    def _after_batch(self, frame: FrameType, loader: Any) -> None:
        """``loader`` gave a batch; ``None``: it has no further one."""
        expected = self._tracker.expected
        timed, heard = expected.left == expected.timed, not expected.left
        begin = self._tracker.begin_event() if timed or heard else 0
        try:
            if loader is None:
                self._tracker.loader_ended(frame)
            else:
                self._tracker.loader_next(frame, loader)
        except Exception as error:
            self._fail(error)
        if timed:
            expected.timed_ns += expected.clock() - begin
        elif heard:
            self._tracker.end_event(begin)

    def _fail(self, error: Exception) -> None:
        """Stop: the program must not fail because its phases cannot be told."""
        self.failure = f"Phases were no longer followed ({type(error).__name__}: {error})."
        self.forget()
