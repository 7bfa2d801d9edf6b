"""Follow the outermost calls of modules: those that no other module makes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.patching import Patches, tracing
from syncscope.collect.phases.choice import Event
from syncscope.collect.phases.expected import CallMoments
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker

LOOK_CALLS = 16
"""Outermost calls of known classes in a row after which only those classes are watched."""

LOOK_EVERY_NS = 2_000_000_000
LOOK_PARTS = 16
"""All classes are watched again after so long, and after this part of the time since the begin: Python then learns anew
where the attributes of modules are, which takes some hundred microseconds. Since Python 3.13 a class that changed a
thousand times loses its cache for attributes, so a run of days looks some two hundred times."""

FREE_SWITCHES = 16
"""Switches between training and evaluation at which all classes are watched at once. A program may switch in each
step."""

MOST_CLASSES = 64
"""With more, all classes are watched all the time."""

NOTHING: Any = object()
"""In place of the first argument of a call without one."""


class ModuleCalls:
    """Tells ``tracker`` of outermost calls on the ``followed`` thread, and ``failed`` of an error of ours.

    First every module's call is looked at. A program calls few classes from outside, so after a while only the calls of
    those are, and those of modules inside of them cost nothing. Now and then, and where a module is switched between
    training and evaluation, all are looked at again. Once Dynamo has compiled a frame nothing is switched any more: it
    would compile it again.

    Not with global hooks: torch warns of them under ``torch.compile``, and compiles again when they are removed.
    """

    def __init__(self, tracker: PhaseTracker, followed: FollowedThread, failed: Callable[[Exception], None]) -> None:
        self._tracker = tracker
        self._expected = tracker.expected
        self._followed = followed
        self._failed = failed
        self._torch: Any = None
        self._modes = Patches()
        self._wide = Patches()
        self._narrow = Patches()
        self._classes: set[type] = set()
        self._known_calls = 0
        self._opened_ns = self._switches = self._narrow_since = 0
        """0 while all classes are watched."""

    def open(self, torch: Any) -> None:
        """Begin, with all classes."""
        self._torch = torch
        self._expected.busy = self._expected.closed = self._expected.narrow = False
        self._opened_ns, self._switches = time.perf_counter_ns(), 0
        self._modes = Patches(torch)
        self._wide, self._narrow = Patches(torch), Patches(torch)
        self._wide.replace(torch.nn.Module, "__call__", self._make_wide)
        self._modes.replace(torch.nn.Module, "train", self._make_train)

    def close(self) -> None:
        """Take everything out. Does nothing the second time."""
        self.forget()
        for patches in (self._narrow, self._wide, self._modes):
            patches.restore()
        self._classes.clear()
        self._known_calls = self._narrow_since = 0

    def forget(self) -> None:
        """Tell the tracker nothing more: the program may hold a bound ``module.__call__``."""
        self._expected.closed = self._expected.busy = True
        self._expected.quick = self._expected.narrow = False

    def look_wider(self) -> None:
        """Watch all classes again, if it is time. From any thread."""
        now, since = time.perf_counter_ns(), self._narrow_since
        if since and now - since > max(LOOK_EVERY_NS, (now - self._opened_ns) // LOOK_PARTS):
            self._widen()

    def _widen(self) -> None:
        if self._narrow_since and not self._expected.closed and not has_compiled():
            self._narrow_since = self._known_calls = 0
            self._expected.quick = self._expected.narrow = False
            self._wide.put_in()
            self._narrow.restore()

    def _tell(self, frame: FrameType, module: Any, event: Event) -> None:
        if self._torch.compiler.is_compiling():
            return
        begin = self._tracker.begin_event()
        try:
            self._tracker.module_called(frame, module, event)
        except Exception as error:
            self._failed(error)
        self._tracker.end_event(begin)

    def _called(
        self, module: Any, moments: CallMoments | None, begin_ns: int, frame: FrameType,
        look_at_class: Callable[[type], None] | None,
    ) -> None:  # fmt: skip
        """An outermost call from ``frame`` is over."""
        if moments is not None:
            moments.called(module, begin_ns, frame)
        if look_at_class is not None and not self._expected.closed:
            look_at_class(type(module))

    def _look_at_class(self, kind: type) -> None:
        """An outermost call of a module of class ``kind`` is over, while all classes are watched."""
        if kind not in self._classes:
            if len(self._classes) <= MOST_CLASSES:
                self._classes.add(kind)
            self._known_calls = 0
            return
        self._known_calls += 1
        if self._known_calls >= LOOK_CALLS and len(self._classes) <= MOST_CLASSES and not self._narrow_since:
            self._known_calls = 0
            if not has_compiled():
                try:
                    self._narrow_down()
                except Exception as error:  # a class that cannot be changed, say
                    self._failed(error)

    def _narrow_down(self) -> None:
        self._narrow_since = time.perf_counter_ns()
        self._wide.take_out()
        for kind in self._classes:
            self._narrow.replace(kind, "__call__", self._make_narrow)
        self._expected.narrow = True

    def _switched(self) -> None:
        """A module is switched between training and evaluation: another one may be called from now on."""
        if threading.get_ident() == self._followed.ident:
            if self._switches < FREE_SWITCHES:
                self._switches += 1
                self._widen()
            else:
                self.look_wider()

    def _make_train(self, original: Any) -> Any:
        def train(module: Any, mode: bool = True) -> Any:
            if self._narrow_since and not self._expected.busy and getattr(module, "training", None) is not mode:
                self._switched()
            return original(module, mode)

        return train

    def _make_wide(self, original: Any) -> Any:
        return self._make(original, self._look_at_class)

    def _make_narrow(self, original: Any) -> Any:
        return self._make(original, None)

    def _make(self, original: Any, look_at_class: Callable[[type], None] | None) -> Any:
        """The call of a module. Local names are fast, and what seldom runs is in functions of its own: a step of half a
        millisecond pays for each line of code and data that is not in the processor's caches."""
        calls, traced, look, grad_enabled = self, tracing(self._torch), self._look, self._torch.is_grad_enabled
        expected, frame = self._tracker.expected, sys._getframe

        # Most calls have one argument. To pass on a tuple and a dictionary takes as long as all the rest. A profiler of
        # the program's that records stacks takes the ``self`` of whatever is ``Module.__call__``, or crashes.
        def call(self: Any, first: Any = NOTHING, /, *others: Any, **named: Any) -> Any:
            single = False if others or named else first is not NOTHING  # a branch: Dynamo knows no ``not`` of a tuple
            passes = looks = False
            if not traced() and not expected.busy:  # Dynamo must see nothing that changes
                if expected.quick:
                    event: Event = "eval" if not self.training else "training" if grad_enabled() else "call"
                    if expected.trains and event == "training":
                        if passes := expected.quiet > 0:
                            expected.quiet -= 1
                    elif (left := expected.left) & expected.mask:
                        if expected.owner == id(self):
                            if passes := expected.event is event:
                                expected.left = left - 1
                                expected.passes = expected.others
                        elif passes := expected.passes > 0 and event is expected.call_event:
                            expected.passes -= 1
                looks = not passes and look(self, frame)
            if not passes and not looks:
                return original(self, first) if single else original(self, *joined(first, others), **named)
            moments = expected.moments if looks else None
            begin = time.perf_counter_ns() if moments is not None else 0
            try:
                expected.busy = expected.inside_call = True
                return original(self, first) if single else original(self, *joined(first, others), **named)
            finally:
                expected.busy = expected.closed
                expected.inside_call = False
                if looks and (moments is not None or look_at_class is not None):
                    calls._called(self, moments, begin, frame(1), look_at_class)

        return call

    def _look(self, module: Any, frame: Callable[[int], FrameType]) -> bool:
        """Look closely at a call of ``module`` from the frame around ``call``, and tell of it unless it is like the
        last one. Returns whether it comes from the thread that is followed."""
        expected, followed = self._expected, self._followed
        event: Event = "eval" if not module.training else "training" if self._torch.is_grad_enabled() else "call"
        timed = expected.left == expected.timed
        begin = expected.clock() if timed else 0
        try:
            # ``tracker.is_like_last``, as good as, without a call of a function. A frame is of one thread.
            is_next = (
                expected.left
                and expected.event is event
                and expected.owner == id(module)
                and not expected.trains
                and (inner := frame(2 + expected.skipped)).f_lasti == expected.lasti
                and inner.f_code is expected.code
                and (outer := frame(2 + expected.depth)).f_lasti == expected.outer_lasti
                and id(outer) == expected.frame_id
                and ((around := outer.f_back) is None or around.f_code is expected.around)
            )
        except ValueError:  # there are not so many frames
            is_next = False
        if is_next:
            expected.left -= 1
            expected.passes = expected.others
        elif threading.get_ident() != followed.ident and not followed.takes_over():
            expected.look_closely()
            return False
        elif expected.trains and event == "training" and expected.quiet:
            expected.quiet -= 1
        elif expected.passes and event == expected.call_event and expected.owner != id(module):
            expected.passes -= 1
        else:
            timed = False
            self._tell(frame(2), module, event)
        if timed:
            expected.timed_ns += expected.clock() - begin
        return True


def joined(first: Any, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """All arguments of a call without names."""
    return others if first is NOTHING else (first, *others)


def has_compiled() -> bool:
    """Whether Dynamo has compiled a frame, or may have."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return False
    counters = getattr(utils, "counters", None)
    return not isinstance(counters, dict) or bool(counters.get("frames"))
