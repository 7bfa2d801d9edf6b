"""Hold the device while a block runs: a block that waits for it by whatever way ends when the device is let go.

A kernel that sleeps is put before the block, on the current stream and on the default one. PyTorch does not know of
every wait, but none can end before this kernel.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any

from syncscope.collect.annotations import expectation
from syncscope.collect.device import captures_graph
from syncscope.collect.features import find
from syncscope.collect.live.waits import LiveWait
from syncscope.collect.live.watching import Threads, open_blocks

CALIBRATION_CYCLES = 5_000_000
"""Of one kernel: some milliseconds at the clocks that GPUs have."""
CALIBRATIONS = 4
"""Kernels that are timed. A device that was idle is still slow in the first of them."""

_cycles_per_ms: dict[int, float] = {}
"""By device, as it was measured in this process."""


def check_hold(hold_ms: float | None) -> None:
    """Raises ``ValueError`` for what is no time, and ``TypeError`` for what is no number."""
    if hold_ms is None:
        return
    if isinstance(hold_ms, bool) or not isinstance(hold_ms, (int, float)):
        raise TypeError(f"hold_ms is a number of milliseconds, not {hold_ms!r}")
    if not (math.isfinite(hold_ms) and hold_ms > 0):
        raise ValueError(f"hold_ms is a number of milliseconds above 0, not {hold_ms!r}")


class Hold:
    """Holds the current device from ``begin`` for ``hold_ms``; ``end`` says whether the block lasted as long.

    It hears of the block's waits, also of those that are expected: where one was seen, the time says nothing more.
    """

    decides = False
    hears_expected = True

    def __init__(self, hold_ms: float) -> None:
        self._hold_ms = hold_ms
        self._began_ns = 0
        self._held: list[tuple[Any, Any]] = []
        """Events before and behind each kernel."""
        self._explained = False

    def begin(self, torch: Any, *, everywhere: bool = False) -> None:
        """Hold the device, and listen in this task or on all threads. Does nothing while a graph is captured.

        Raises ``RuntimeError`` in a PyTorch that cannot hold it.
        """
        sleep = find(torch, "cuda._sleep")
        if sleep is None:
            raise RuntimeError("hold_ms needs torch.cuda._sleep, which this PyTorch lacks")
        if captures_graph(torch):
            return
        cycles = round(self._hold_ms * _measure_cycles_per_ms(torch, sleep))
        for stream in _streams(torch):
            with torch.cuda.stream(stream):
                self._held.append(_sleep_between_events(torch, sleep, cycles))
        open_blocks.enter(self, everywhere=everywhere)
        self._began_ns = time.perf_counter_ns()

    def on_wait(self, wait: LiveWait) -> None:
        """A wait that is known, and takes as long as the device is held."""
        self._explained = True

    def end(self, torch: Any, *, failed: bool) -> str | None:
        """What to say of a block that lasted as long as the device was held though no wait in it was seen, else
        ``None``, also for a block that ``failed``. What is left of the kernel only delays what comes behind it."""
        if not self._held:
            return None
        took_ms = (time.perf_counter_ns() - self._began_ns) / 1e6
        around = open_blocks.here
        open_blocks.leave(self)
        if failed or self._explained or expectation.get() is not None or captures_graph(torch):
            return None
        over = []
        with contextlib.suppress(RuntimeError):  # an error of the device is the program's, where it next waits
            over = [begin.elapsed_time(end) for begin, end in self._held if end.query()]
        if not over:
            return None
        for block in around:
            if isinstance(block, Hold):
                block._explained = True  # one wait is told once
        return describe_hold(took_ms, min(over))


@contextlib.contextmanager
def held(hold_ms: float, threads: Threads) -> Iterator[list[str]]:
    """Hold the device for a block, and add to the list what ``Hold.end`` says of it. An exception of the block goes on.

    Raises what ``check_hold`` and ``Hold.begin`` raise.
    """
    import torch

    check_hold(hold_ms)
    hold, said = Hold(hold_ms), list[str]()
    hold.begin(torch, everywhere=threads == "all")
    try:
        yield said
    except BaseException:
        hold.end(torch, failed=True)
        raise
    if (slow := hold.end(torch, failed=False)) is not None:
        said.append(slow)


def describe_hold(took_ms: float, held_ms: float) -> str:
    """What a block that lasted as long as the device was held may have done, and what to do next."""
    return (
        f"the block took {took_ms:.1f} ms, and the device was held for {held_ms:.1f} ms: something waited for it that "
        "PyTorch does not know of, or the block is slow by itself. Try a hold_ms that is twice as long: a block that "
        "waits takes as long again, and one that is slow does not. faulthandler.dump_traceback_later("
        f"{held_ms / 2e3:.3g}) before the block prints the lines that run while it waits."
    )


def _streams(torch: Any) -> Iterator[Any]:
    """The current stream and the default one."""
    current, default = torch.cuda.current_stream(), torch.cuda.default_stream()
    yield current
    if default != current:
        yield default


def _sleep_between_events(torch: Any, sleep: Any, cycles: int) -> tuple[Any, Any]:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    sleep(cycles)
    end.record()
    return begin, end


def _measure_cycles_per_ms(torch: Any, sleep: Any) -> float:
    """How many cycles of ``torch.cuda._sleep`` are a millisecond, measured once a device on a stream of its own.

    The fastest kernel counts: too many cycles hold the device for longer than was asked for, too few would call a
    block slow that is not.
    """
    device = torch.cuda.current_device()
    if device not in _cycles_per_ms:
        with torch.cuda.stream(torch.cuda.Stream()):
            timed = [_sleep_between_events(torch, sleep, CALIBRATION_CYCLES) for _ in range(CALIBRATIONS)]
        while not timed[-1][1].query():  # no wait that a guard or a count would see
            time.sleep(0.001)
        _cycles_per_ms[device] = CALIBRATION_CYCLES / min(begin.elapsed_time(end) for begin, end in timed)
    return _cycles_per_ms[device]
