"""Follow a program's phases and steps, and tiny models, optimisers and loaders for such programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from syncscope.collect.paths import Paths
from syncscope.collect.phases import Phase, PhaseTracker, Signals

Clock = Callable[[], int]
HERE = Path(__file__).parent
LOOK_NS = 1_000
"""So much of a ``Time`` passes from one look at it to the next."""
X = torch.ones(3, 2)


class Time:
    """Passes when the program says so, and when somebody looks."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += LOOK_NS
        return self.now


class Followed:
    """What a listener was told.

    ``sequence`` is the kinds of phases in the order in which the program was in them, ``steps`` the boundaries by name,
    ``intruded`` the numbers of the boundaries, by name, whose step another phase came into.
    """

    def __init__(self, root: Path = HERE, unheard: int = 0, clock: Clock = time.perf_counter_ns) -> None:
        self.unheard = unheard
        self.sequence: list[str] = []
        self.folds: list[tuple[str, str]] = []
        self.better: list[str] = []
        self.boundaries: list[str] = []
        self.intruded: list[tuple[str, int]] = []
        self.tracker = PhaseTracker(self, Paths(root), clock)
        self.signals = Signals(self.tracker)

    def stepped(self, phase: Phase) -> int:
        self.boundaries.append(phase.kind)
        if phase.intruded:
            self.intruded.append((phase.kind, phase.steps))
        return self.unheard

    def changed(self, before: Phase, after: Phase) -> None:
        assert before is not after
        self.sequence.append(after.kind)

    def folded(self, phase: Phase, into: Phase) -> None:
        self.folds.append((phase.kind, into.kind))

    def better_source(self, phase: Phase) -> None:
        self.better.append(phase.kind)

    @property
    def steps(self) -> dict[str, int]:
        self.tracker.recorded()  # also those that passed unheard
        return {phase.name: phase.steps for phase in self.tracker.phases if phase.times and phase.loop is not None}

    @property
    def turns(self) -> list[str]:
        """``sequence``, with what repeats written once: a, b, a, b, a, b is a, b."""
        for length in range(1, len(self.sequence) // 2 + 1):
            if all(kind == self.sequence[n % length] for n, kind in enumerate(self.sequence)):
                return self.sequence[:length]
        return self.sequence

    def phase(self, name: str) -> Phase:
        self.tracker.recorded()
        return next(phase for phase in self.tracker.phases if phase.name == name)

    def here(self) -> str:
        """A wait happens where this is called: the kind of its phase."""
        return self.tracker.at(sys._getframe(1)).kind


@contextmanager
def following(root: Path = HERE, unheard: int = 0, clock: Clock = time.perf_counter_ns) -> Iterator[Followed]:
    followed = Followed(root, unheard, clock)
    followed.signals.attach(torch)
    try:
        yield followed
    finally:
        followed.signals.detach()


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))


def sgd(net: Any) -> Any:
    return torch.optim.SGD(net.parameters(), lr=0.01)


def loader(batches: int) -> Any:
    return torch.utils.data.DataLoader(torch.ones(3 * batches, 2), batch_size=3)


def learn(net: Any, optimizer: Any, x: Any = X) -> None:
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
