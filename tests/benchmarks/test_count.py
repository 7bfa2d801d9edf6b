"""How many calls of Python functions counting adds to a step, and that it adds none while it is off."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from benchmarks.calls import CallCount  # noqa: E402
from benchmarks.loops import rollout  # noqa: E402
from benchmarks.overhead import host_bound, small_copies  # noqa: E402
from benchmarks.waits import waiting_tensors  # noqa: E402
from syncscope.collect.count.account import Prices  # noqa: E402
from syncscope.collect.count.counter import Counter  # noqa: E402
from syncscope.collect.count.sampling import Draw  # noqa: E402
from syncscope.collect.paths import Paths  # noqa: E402
from syncscope.collect.phases import Phase, PhaseTracker, Signals  # noqa: E402
from syncscope.collect.phases import modules as module_calls  # noqa: E402
from syncscope.collect.sites.stacks import Stacks  # noqa: E402
from syncscope.collect.sites.threads import Threads  # noqa: E402

HERE = Path(__file__).parent
COLD = 5.0
"""How many times slower than in a loop our code is taken to be."""

EVENT_NS = 3_500
"""So much time passes from one look at the clock to the next: what an event of ours takes in the program."""


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tensors of the host wait where those of a device would, and warn of it as PyTorch does."""
    monkeypatch.setattr(module_calls, "has_compiled", lambda: False)
    monkeypatch.setattr(module_calls, "LOOK_EVERY_NS", sys.maxsize)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small operations: more threads wait for each other on a busy machine
    with waiting_tensors():
        yield
    torch.set_num_threads(threads)


class Program:
    """A loop that is followed and counted. Time passes between its steps, ``length_ns``, and when we look at it."""

    def __init__(self, step: Callable[[], Any], length_ns: int, tells: bool) -> None:
        self._step, self._length_ns, self._tells = step, length_ns, tells
        self._now = 0
        stacks = Stacks(Paths(HERE))
        self._tracker = PhaseTracker(self, Paths(HERE), self._clock)
        self._signals = Signals(self._tracker)
        self._counter = Counter(
            torch, stacks, Threads(), self._tracker,
            clock=self._clock, prices=Prices().times(COLD), draw=Draw(random.Random(1).random),
        )  # fmt: skip
        self._on = False

    def _clock(self) -> int:
        self._now += EVENT_NS
        return self._now

    def stepped(self, phase: Phase) -> int:
        return self._counter.stepped(phase)

    def changed(self, before: Phase, after: Phase) -> None:
        self._counter.changed(before, after)

    def folded(self, phase: Phase, into: Phase) -> None:
        self._counter.folded(phase, into)

    def better_source(self, phase: Phase) -> None:
        self._counter.begin_again(phase)

    def run(self, steps: int, count: CallCount | None = None, warm: int = 0) -> None:
        """Make steps in one loop. ``count`` leaves out those that are ``warm``, in which the loop is found."""
        for number in range(steps):
            if count is not None and number == warm:
                count.start()
            self._step()
            self._now += self._length_ns
            if self._tells and self._on:
                self._signals.user_step()

    def calls(self, steps: int, warm: int = 0) -> float:
        """Of Python functions, in a step after ``warm`` ones."""
        count = CallCount()
        self.run(warm + steps, count, warm)
        count.stop()
        return count.calls / steps

    def more_calls(self, warm: int, steps: int) -> float:
        """How many more a step has with all of it on, once ``warm`` steps were made."""
        self.run(20)
        before = self.calls(20)
        self._signals.attach(torch)
        self._counter.open()
        self._on = True
        try:
            more = self.calls(steps, warm) - before
            self._counter.suspend()
            self._signals.detach()
            self._on = False
            self.run(20)
            assert abs(self.calls(20) - before) < 1  # less than one a step: Python collects garbage meanwhile
        finally:
            self._counter.close()
            self._signals.detach()
        assert not self._signals.failure and not self._counter.failure
        assert sum(phase.steps for phase in self._tracker.phases) >= warm
        return more


@pytest.mark.parametrize(
    ("make", "length_ns", "tells", "warm", "steps", "most"),
    [
        (host_bound, 6_000_000, False, 60, 100, 15),
        (small_copies, 2_500_000, True, 400, 1_600, 6),
        (rollout, 600_000, False, 2_000, 12_000, 3.6),  # few are drawn: many steps tell their part
        (rollout, 600_000, True, 2_000, 12_000, 5),
    ],
    ids=["host-bound", "copies", "rollout", "rollout that tells"],
)
def test_a_steady_step_has_few_calls_more(
    make: Callable[[str], Callable[[], Any]], length_ns: int, tells: bool, warm: int, steps: int, most: float
) -> None:
    more = Program(make("cpu"), length_ns, tells).more_calls(warm, steps)
    assert 1 < more < most
