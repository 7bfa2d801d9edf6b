"""Stamp what the host does in a bare step: waits, batches, forward, backward and the optimiser.

``Signals`` tells of batches, calls of modules and optimisers, which it follows anyway. Waits that PyTorch warns of are
stamped only while they are counted, since then they cost little more. Where counting rests, waits and backward are not
stamped.
"""

from __future__ import annotations

import threading
import time
from types import FrameType
from typing import Any

from syncscope.collect.bare.loader import describe, ready_batches
from syncscope.collect.bare.steps import Batch, Moment
from syncscope.collect.features import find
from syncscope.collect.patching import Patches
from syncscope.collect.phases.signals import Signals
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.wrappers import CallWrappers, calling_frame
from syncscope.schema.recording import RecordedLoader

MOST = 64
"""Moments stamped in a step."""

MOMENT_NS = 700
WAIT_NS = 2_000
"""What a moment costs, and one of a wait, which costs 0.7 µs in steps that are counted and 3 µs in others: see
``benchmarks/stamps.py``."""

OPERATOR_NS = 2_000
"""What it costs that warnings are off in a call of an operator by its name: 1.6 µs of processor time, in the median of
20,000 calls of ``torch.ops.aten.neg`` with our wrapper and without."""

MOST_SHARE = 0.01
"""Of a step that stamps may take."""

EXPLICIT = (
    ("_C", "_cuda_synchronize", "torch.cuda.synchronize"),
    ("_C", "_accelerator_synchronizeDevice", "torch.accelerator.synchronize"),
    ("cuda.Event", "synchronize", "Event.synchronize"),
)
"""Calls that surely wait, and give no warning."""


class HostMoments:
    """What the host does in each step, between ``open`` and ``close``.

    All of it runs on the program's threads and raises nothing. Only the thread that opened it is followed.
    """

    def __init__(self, torch: Any, stacks: Stacks, signals: Signals | None) -> None:
        self.loader: RecordedLoader | None = None
        """The loader that gave a batch last."""
        self._torch = torch
        self._stacks = stacks
        self._signals = signals
        self._moments: list[Moment] = []
        self._batches: list[Batch] = []
        self._thread = 0
        self._stamping = self._listening = False
        self._iterator = 0
        self._step_began: int | None = None
        self._patches = Patches(torch)
        self._operators: CallWrappers | None = None
        self._called = 0
        """Operators that were called by their names since."""

    def open(self, *, stamps: bool = True) -> None:
        """Follow this thread; without ``stamps`` only the batches that it takes."""
        self._thread = threading.get_ident()
        self.take()
        if stamps:
            self._stamping = True
            if sync_debug_mode.listening:
                self._listen()
            if not sync_debug_mode.resting:  # else the count's wrappers may be out, and could not be put in below ours
                self._wrap()

    def _listen(self) -> None:
        self._listening = True
        sync_debug_mode.listen(self._torch, self._waited)
        # Counting may rest from now on, and then its wrappers pass calls on.
        self._called = 0
        self._operators = CallWrappers(self._torch, self._count_operator, sync_debug_mode)
        self._operators.open_operators()

    def _count_operator(self, name: str, start_ns: int, frame: FrameType) -> None:
        self._called += 1

    def close(self) -> None:
        """Undo ``open``. Does nothing unless open."""
        if self._signals is not None and self._signals.moments is self:
            self._signals.moments = None
        self._stop_stamping()

    def take(self) -> tuple[tuple[Moment, ...], tuple[Batch, ...]]:
        """What happened since the last time. Takes over from the windows of another phase."""
        self._follow()
        moments, batches = tuple(self._moments), tuple(self._batches)
        self._moments.clear()
        self._batches.clear()
        return moments, batches

    def _follow(self) -> None:
        if self._signals is not None:
            self._signals.moments = self

    def afford(self, moments: tuple[Moment, ...], length_ns: int) -> None:
        """Stop stamping what takes more than its share of a step of ``length_ns`` that has these ``moments``."""
        if not self._stamping:
            return
        waits = sum(moment.event == "wait" for moment in moments)
        others = (len(moments) - waits) * MOMENT_NS
        if others > MOST_SHARE * length_ns or len(moments) >= MOST:
            self._stop_stamping()
        elif self._listening and others + waits * WAIT_NS + self._called * OPERATOR_NS > MOST_SHARE * length_ns:
            self._stop_listening()

    # What ``Signals`` calls.

    def asks(self, iterator: Any) -> tuple[int | None, int]:
        """The host asks a loader's iterator for a batch."""
        return ready_batches(iterator), time.perf_counter_ns()

    def took(self, iterator: Any, asked: tuple[int | None, int], frame: FrameType) -> None:
        """It has the batch."""
        end_ns, (ready, begin_ns) = time.perf_counter_ns(), asked
        if threading.get_ident() != self._thread or len(self._batches) >= MOST:
            return
        if self._iterator != id(iterator):
            self._iterator, self.loader = id(iterator), describe(iterator)
        self._batches.append(Batch(ready, begin_ns, end_ns))
        self._stamp("loader", "DataLoader", begin_ns, end_ns, frame)

    def called(self, module: Any, begin_ns: int, frame: FrameType) -> None:
        """The outermost call of a module has returned."""
        self._stamp("forward", _name_of_class(module), begin_ns, time.perf_counter_ns(), frame)

    def begins_step(self) -> None:
        """An optimiser is about to step."""
        self._step_began = time.perf_counter_ns()

    def stepped(self, optimizer: Any, frame: FrameType) -> None:
        """It has stepped."""
        began, self._step_began = self._step_began, None
        self._stamp("optimizer", _name_of_class(optimizer), began, time.perf_counter_ns(), frame)

    def _stamp(self, event: Any, name: str, begin_ns: int | None, end_ns: int, frame: FrameType) -> None:
        if self._stamping and len(self._moments) < MOST and threading.get_ident() == self._thread:
            self._moments.append(Moment(event, name, self._stacks.take(frame), begin_ns, end_ns))

    def _waited(self, frame: FrameType) -> None:
        self._stamp("wait", "", None, time.perf_counter_ns(), frame)

    def _wrap(self) -> None:
        for owner, name, label in EXPLICIT:
            self._stamp_calls(find(self._torch, owner), name, "wait", label)
        self._stamp_calls(find(self._torch, "autograd"), "_engine_run_backward", "backward", "backward")

    def _stamp_calls(self, owner: Any, name: str, event: Any, label: str) -> None:
        stamp, now, caller = self._stamp, time.perf_counter_ns, calling_frame
        compiling = find(self._torch, "compiler.is_compiling") or (lambda: False)

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling():
                    return original(*args, **kwargs)
                begin = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    stamp(event, label, begin, now(), caller())

            return wrapper

        if owner is not None:
            self._patches.replace(owner, name, make)

    def _stop_stamping(self) -> None:
        self._stamping = False
        self._patches.restore()
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            sync_debug_mode.unlisten(self._waited)
            if self._operators is not None:
                self._operators.close()


def _name_of_class(value: Any) -> str:
    return str(type.__dict__["__name__"].__get__(type(value)))  # a class of classes may have a ``__name__`` of its own
