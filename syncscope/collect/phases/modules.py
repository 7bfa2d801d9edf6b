"""Follow the outermost calls of modules: those that no other module makes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Literal

from syncscope.collect.patching import Patches, tracing
from syncscope.collect.phases.choice import Event
from syncscope.collect.phases.expected import NOBODY
from syncscope.collect.phases.loan import NO_CALLS, Loan
from syncscope.collect.phases.readers import ClassReaders
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.traces import TraceBegins
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

AROUND = 3
"""From a look at a call out to the frame that calls: beyond it are the choice and ``call``."""

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
        self._readers = ClassReaders(self._leave_classes, self._back_in_classes, failed, lambda: has_compiled())
        self._traces = TraceBegins(self._lend_no_more, failed)
        self._traced = False
        """Dynamo has traced code, and its guards must find that nothing changes."""
        self._call: Any = None
        self._code: CodeType | None = None
        """Of each call of a module."""
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
        self._call = torch.nn.Module.__call__
        self._code = getattr(self._call, "__code__", None)
        self._wide.replace(torch.nn.Module, "__call__", self._make_wide)
        self._modes.replace(torch.nn.Module, "train", self._make_train)
        self._readers.open()
        self._traced = False
        self._traces.open(torch)

    def close(self) -> None:
        """Take everything out. Does nothing the second time."""
        self.forget()
        self._readers.close()
        self._traces.close()
        for patches in (self._narrow, self._wide, self._modes):
            patches.restore()
        self._classes.clear()
        self._known_calls = self._narrow_since = 0

    def forget(self) -> None:
        """Tell the tracker nothing more: the program may hold a bound ``module.__call__``."""
        self._expected.closed = self._expected.busy = True
        self._expected.narrow = False
        self._expected.slow_down()

    def look_wider(self) -> None:
        """Watch all classes again, if it is time. From any thread."""
        now, since = time.perf_counter_ns(), self._narrow_since
        if since and now - since > max(LOOK_EVERY_NS, (now - self._opened_ns) // LOOK_PARTS):
            self._widen()

    def _widen(self) -> None:
        """Watch all classes, unless a call is under way: it may have passed quickly, so that those inside of it would
        be taken for outermost ones."""
        if not self._narrow_since or self._expected.closed or has_compiled():
            return
        if self._readers.under_way or self._is_in_call():
            return
        self._narrow_since = self._known_calls = 0
        self._expected.narrow = False
        self._expected.slow_down()
        self._wide.put_in()
        self._narrow.restore()

    def _is_in_call(self) -> bool:
        """Whether the followed thread is in a call of a module."""
        frame = sys._current_frames().get(self._followed.ident)
        while frame is not None and frame.f_code is not self._code:
            frame = frame.f_back
        return frame is not None

    def _tell(self, frame: FrameType, module: Any, event: Event) -> None:
        if self._torch.compiler.is_compiling():
            return
        begin = self._tracker.begin_event()
        try:
            self._tracker.module_called(frame, module, event)
        except Exception as error:
            self._failed(error)
        self._tracker.end_event(begin)

    def _look_at_class(self, kind: type) -> None:
        """An outermost call of a module of class ``kind`` is over, while all classes are watched."""
        try:
            known = kind in self._classes
            if not known and len(self._classes) <= MOST_CLASSES:
                self._classes.add(kind)
        except Exception as error:  # a class of classes may have a hash of its own
            self._failed(error)
            return
        if not known:
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

    def _leave_classes(self) -> None:
        """Take out what is in the program's own classes, until ``_back_in_classes``."""
        self._narrow.take_out()

    def _back_in_classes(self) -> None:
        self._narrow.put_in()

    def _switched(self) -> None:
        """A module is switched between training and evaluation: another one may be called from now on."""
        if threading.get_ident() == self._followed.ident:
            self._expected.take_back()
            if self._switches < FREE_SWITCHES:
                self._switches += 1
                self._widen()
            else:
                self.look_wider()

    def _make_train(self, original: Any) -> Any:
        def train(module: Any, mode: bool = True) -> Any:
            if self._narrow_since and not self._expected.busy:
                try:
                    if _switches(module, mode):
                        self._switched()
                except Exception as error:
                    self._failed(error)
            return original(module, mode)

        return train

    def _make_wide(self, original: Any) -> Any:
        return self._make(original, self._look_at_class)

    def _make_narrow(self, original: Any) -> Any:
        return self._make(original, None)

    def _make(self, original: Any, look_at_class: Callable[[type], None] | None) -> Any:
        """The call of a module. Local names are fast, and what seldom runs is in functions of its own: a step of half a
        millisecond pays for each line of code and data that is not in the processor's caches, and Python writes to each
        cell of a function when it is called. So a call that is lent asks only for what PyTorch reads of a module just
        after it."""
        grad_enabled = self._torch.is_grad_enabled
        owner: Any = None
        lent, nothing = NO_CALLS, NOTHING

        def lend(hooks: Any, calls: Iterator[None]) -> None:
            nonlocal owner, lent
            owner, lent = hooks, calls

        loan = Loan(lend) if original is self._call else None  # else it may be a module without what PyTorch's have
        seldom = tracing(self._torch), self._tracker.expected, self._make_choice(loan), look_at_class

        # Most calls have one argument. To pass on a tuple and a dictionary takes as long as all the rest. A profiler of
        # the program's that records stacks takes the ``self`` of whatever is ``Module.__call__``, or crashes.
        def call(self: Any, first: Any = NOTHING, /, *others: Any, **named: Any) -> Any:
            if (
                owner is not None  # Dynamo sees no more of it
                and self._backward_pre_hooks is owner
                and not (others or named or first is nothing or grad_enabled())
            ):
                for _ in lent:
                    return original(self, first)
            traced, expected, is_looked_at, look_at_class = seldom
            looked_at = False
            if not traced():  # Dynamo must see nothing that changes
                looked_at = not expected.busy and is_looked_at(self)
            single = False if others or named else first is not nothing  # a branch: Dynamo knows no ``not`` of a tuple
            if not looked_at:
                return original(self, first) if single else original(self, *joined(first, others), **named)
            moments = expected.moments
            begin = time.perf_counter_ns() if moments is not None else 0
            try:
                expected.busy = expected.inside_call = True
                return original(self, first) if single else original(self, *joined(first, others), **named)
            finally:
                expected.busy = expected.closed
                expected.inside_call = False
                if moments is not None:
                    moments.called(self, begin, sys._getframe(1))
                if look_at_class is not None and not expected.closed:
                    look_at_class(type(self))

        return call

    def _make_choice(self, loan: Loan | None) -> Callable[[Any], bool]:
        """What is asked by ``call``, of a module, whether the call must be looked at, and looks at its begin."""
        expected, look, failed, grad_enabled = self._expected, self._look, self._failed, self._torch.is_grad_enabled

        def is_looked_at(module: Any) -> bool:
            if expected.lent:
                expected.take_back()
            if expected.quick:
                try:
                    event: Event = "eval" if not module.training else "training" if grad_enabled() else "call"
                except Exception:  # of a class that does as it likes
                    event = self._event_of(module)
                if expected.trains and event == "training":
                    if expected.quiet > 0:
                        expected.quiet -= 1
                        return False
                elif (left := expected.left) & expected.mask:
                    if expected.owner == id(module):
                        if expected.event is event:
                            expected.left = left - 1
                            expected.passes = expected.others
                            return False
                    elif expected.passes > 0 and event is expected.call_event:
                        expected.passes -= 1
                        return False
            try:
                return look(module, loan)
            except Exception as error:
                failed(error)
                return False

        return is_looked_at

    def _event_of(self, module: Any) -> Event:
        """What a call of ``module`` is. One that does not say whether it is in training learns, as a new one does."""
        try:
            training = bool(module.training)
        except Exception:  # of a class that does as it likes, or has no such attribute yet
            training = True
        return "eval" if not training else "training" if self._torch.is_grad_enabled() else "call"

    def _look(self, module: Any, loan: Loan | None) -> bool:
        """Look closely at a call of ``module`` from the frame around ``call``, and tell of it unless it is like the
        last one. ``loan`` begins where those up to the next such look may pass. Returns whether it comes from the
        thread that is followed."""
        expected, followed = self._expected, self._followed
        event = self._event_of(module)
        timed = expected.left == expected.timed
        begin = expected.clock() if timed else 0
        if not expected.trains and expected.is_next(event, id(module), AROUND + 1):
            expected.left -= 1
            if expected.passes == expected.others:  # no other module was called in the last step
                self._lend("left", expected.left & expected.mask, module, loan)
            expected.passes = expected.others
        elif threading.get_ident() != followed.ident and not followed.takes_over():
            expected.look_closely()
            return False
        elif expected.trains and event == "training" and expected.quiet > 0:
            expected.quiet -= 1
        elif expected.passes and event == expected.call_event and expected.owner != id(module):
            expected.passes -= 1
            if expected.owner == NOBODY:
                self._lend("passes", min(expected.passes, expected.mask), module, loan)
        elif not self._tracker.quiet_places.passes(event, AROUND + 1):
            timed = False
            self._tell(sys._getframe(AROUND), module, event)
        if timed:
            expected.timed_ns += expected.clock() - begin
        return True

    def _lend(self, of: Literal["left", "passes"], count: int, module: Any, loan: Loan | None) -> None:
        """Let the next ``count`` calls of ``module`` pass by themselves, those without gradients. They know it by a
        dictionary of its own that is empty: who keeps it keeps nothing else alive."""
        if loan is None or not (self._expected.quick and count) or self._torch.is_grad_enabled():
            return
        hooks = getattr(module, "_backward_pre_hooks", None)
        if hooks is not None and not hooks and not self._traced and self._traces.certain:
            self._expected.lent[of] = loan
            loan.begin(hooks, count)

    def _lend_no_more(self) -> None:
        """Dynamo begins to trace. What it reads of ``call`` is the same from now on. From any thread."""
        self._traced = True
        self._expected.take_back()


def joined(first: Any, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """All arguments of a call without names."""
    return others if first is NOTHING else (first, *others)


def _switches(module: Any, mode: bool) -> bool:
    """Whether ``module`` is switched between training and evaluation."""
    try:
        return getattr(module, "training", None) is not mode
    except Exception:  # of a class that does as it likes
        return True


def has_compiled() -> bool:
    """Whether Dynamo has compiled a frame, or may have."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return False
    counters = getattr(utils, "counters", None)
    return not isinstance(counters, dict) or bool(counters.get("frames"))
