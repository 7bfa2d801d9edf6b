"""What counting costs on this machine, measured when counting begins. Takes about a millisecond, and no GPU."""

from __future__ import annotations

import _warnings
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from syncscope.collect.count.account import Prices
from syncscope.collect.count.wrappers import conversion
from syncscope.collect.patching import OfInstances
from syncscope.collect.sites.sync_debug import NOTICES

if TYPE_CHECKING:
    from syncscope.collect.count.counter import Counter

IN_CPP_NS = 1_000
"""A warning's way through PyTorch to Python. It cannot be measured without a wait."""

TRACKED_NS = 400
"""What the phase tracker needs to tell the phase of a wait."""

PINNED_NS = 700
"""To ask CUDA whether a copy's memory is pinned."""

OUT_GATES = 2_000
"""Wrappers taken out and put in again, in calls of one that does nothing: 300 µs where such a call takes 150 ns. What
Python must learn anew cannot be measured without the program."""

ROUNDS = 25


class _Converted:
    """Stands in for a tensor whose conversion copies nothing between host and device."""

    is_cuda = False

    def to(self, dtype: object = None) -> _Converted:
        return _OTHER


_OTHER = _Converted()


def passing_call(scratch: Counter) -> Callable[[], object]:
    """A wrapped call in which there is nothing to count, of tensors as most are. ``scratch`` counts nowhere."""

    class Wrapped(_Converted):
        pass

    tally, account, original = scratch.tally, scratch._account, _Converted.to
    make = conversion("Tensor.to", tally, account, tally.warned, scratch._torch, _Converted, Wrapped)
    setattr(Wrapped, "to", OfInstances(make(original), original, original, account))  # noqa: B010
    tensor = Wrapped()
    return lambda: tensor.to(dtype=None)


def measure(scratch: Counter, switch: Callable[[bool], None]) -> Prices:
    """``scratch`` is a counter that counts nowhere; ``switch(on)`` switches the mode as the real one does.

    Warnings are swallowed, so our filter must be first.
    """
    # As that of a user's line, a frame with none around it tells its place by itself. The program may use CUDA for the
    # first time forty frames deep in a library.
    waiting: Any = (each for each in (0, 1))
    next(waiting)
    frame = waiting.gi_frame
    seen = _once(lambda: scratch.tally.seen(frame))  # the real tracker's part of it lacks
    machinery = _once(lambda: _warnings.warn(NOTICES[0], UserWarning, 1))
    tensor, call = _Converted(), passing_call(scratch)
    bare, probe = _once(lambda: tensor.to(dtype=None)), _once(call)
    passed = max(probe - bare, 50.0)
    scratch._account.on = False
    gate = max(_once(call) - bare, 50.0)
    scratch._account.on = True
    called = _once(lambda: scratch.tally.called("Tensor.to", frame, True, 0))
    return Prices(
        warning=IN_CPP_NS + machinery + seen + TRACKED_NS,
        call=passed + called + TRACKED_NS + PINNED_NS,
        passed=passed,
        gate=gate,
        out=OUT_GATES * gate,
        switch=_switch_ns(switch),
        step=_once(lambda: scratch._next_block(scratch._state)),
        settle=_once(scratch._settle),
        seen=seen + TRACKED_NS,
        probe=max(probe, 1.0),
    )


def _once(run: Callable[[], Any]) -> float:
    """The median time of ``run``, in ns."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def _switch_ns(switch: Callable[[bool], None]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter_ns()
        switch(False)
        switch(True)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)
