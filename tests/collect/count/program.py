"""A program that waits in simulated time: what PyTorch warns of, and phases as a tracker would tell them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from syncscope.collect.count.account import Prices
from syncscope.collect.count.counter import Counter
from syncscope.collect.count.sampling import Draw
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import MESSAGE, sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.schema.counting import CountedSource, CountedWait, PhaseKind

MS = 1_000_000

PRICES = Prices(
    warning=3_000.0, call=1_500.0, passed=300.0, gate=100.0, switch=30_000.0, out=300_000.0, step=0.0, settle=0.0
)


@dataclass
class Phase:
    number: int
    kind: PhaseKind = "train"
    steps: int = 0
    times: int = 0
    source: CountedSource = "none"


class Tracker:
    END_NS = 20_000
    """What it takes to hear of the end of a loop."""

    def __init__(self) -> None:
        self.current = Phase(0, "start")
        self.followed_ns = 0.0
        self.unheard = 0
        self.told = False
        """The next step is not to pass unheard."""
        self.tells_ends = True
        self.over: Callable[[FrameType], None] | None = None
        """Who hears of the end of a loop."""
        self.begins_late = False
        self.looped: set[tuple[int, str]] = set()
        """Numbers of phases, and names of functions that are in their loops as a whole."""
        self.left: Callable[[], object] = lambda: None
        """What happens where the loop of a training is over."""

    def at(self, frame: FrameType) -> Phase:
        self.hear()
        return self.current

    def is_in_loop(self, number: int, code: CodeType, lasti: int) -> bool:
        return (number, code.co_name) in self.looped

    def tell_next(self) -> None:
        self.told = True

    def watch_end(self, over: Callable[[FrameType], None], most_ns: float) -> float:
        if self.tells_ends and self.over is None and most_ns >= self.END_NS:
            self.over = over
            return self.END_NS
        return 0.0

    def stop_watching(self) -> None:
        self.over = None

    def leave_training(self) -> None:
        self.left()

    def hear(self) -> None:
        """Add the steps that passed unheard."""
        self.current.steps += self.unheard
        self.unheard = 0


class Tensor:
    """Is on the host or on the device, and says what it does."""

    def __init__(self, is_cuda: bool = False, nbytes: int = 8, pinned: bool = False, waits: bool = False) -> None:
        self.is_cuda = is_cuda
        self.nbytes = nbytes
        self.pinned = pinned
        self.waits = waits

    def is_pinned(self) -> bool:
        return self.pinned

    def to(self, device: str, non_blocking: bool = False) -> Tensor:
        is_cuda = device == "cuda"
        if is_cuda == self.is_cuda:
            return self
        if not non_blocking:
            wait()
        return type(self)(is_cuda, self.nbytes, self.pinned)

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Tensor:
        if src.is_cuda is not self.is_cuda and not non_blocking:
            wait()
        return self

    def coalesce(self) -> Tensor:
        return self


class Event:
    def synchronize(self) -> None: ...


MODE = [0]


def fake_torch() -> Any:
    """As much of PyTorch as counting touches."""
    return SimpleNamespace(
        __version__="2.11.0",
        Tensor=type("Tensor", (Tensor,), {}),
        compiler=SimpleNamespace(is_compiling=lambda: False),
        cuda=SimpleNamespace(Event=type("Event", (Event,), {})),
        linalg=SimpleNamespace(),
        library=SimpleNamespace(),
        autograd=SimpleNamespace(),
        distributed=SimpleNamespace(is_available=lambda: False),
        _C=SimpleNamespace(
            _cuda_get_sync_debug_mode=lambda: MODE[0],
            _cuda_set_sync_debug_mode=lambda mode: MODE.__setitem__(0, mode),
            _cuda_synchronize=lambda: None,
            _cuda_emptyCache=lambda: None,
        ),
    )


def wait() -> None:
    """What PyTorch does where an operation waits."""
    if MODE[0]:
        ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), MESSAGE.encode(), 1)


class NotHere(Paths):
    """The functions of this file are PyTorch's; the program is elsewhere."""

    def is_user(self, file: str) -> bool:
        return file != __file__ and super().is_user(file)


class Run:
    """A program, its counter, and the time, which passes only when the test says so."""

    def __init__(self, uniform: Any = None, prices: Prices | None = PRICES, before_ns: int = 0) -> None:
        self.now = 0
        self.torch = fake_torch()
        self.tracker = Tracker()
        self.stacks = Stacks(NotHere(Path(__file__).parent))
        self.counter = Counter(
            self.torch,
            self.stacks,
            Threads(),
            self.tracker,
            clock=lambda: self.now,
            prices=prices,
            draw=Draw(uniform),
            before_ns=before_ns,
        )

    @property
    def counting(self) -> bool:
        return MODE[0] == 1

    def enter(self, phase: Phase) -> Phase:
        """The program goes to another phase."""
        phase.times += 1
        before, self.tracker.current = self.tracker.current, phase
        self.counter.changed(before, phase)
        return phase

    def step(self, length_ns: int = 0) -> None:
        """The current phase's step ends, ``length_ns`` after what the test did itself."""
        self.now += length_ns
        phase = self.tracker.current
        phase.steps += 1
        self.counter.stepped(phase)

    def end_loop(self) -> None:
        """The loop of the current phase is over."""
        over, self.tracker.over = self.tracker.over, None
        if over is not None:
            over(sys._getframe(1))

    def by_function(self) -> dict[tuple[int, str], CountedWait]:
        """What was counted in all, by phase and the function that waits. Counting is over."""
        self.counter.close()
        frames, stacks = self.stacks.resolve()
        return {(wait.phase, frames[stacks[wait.stack][-2]].function): wait for wait in self.counter.waits()}

    def lines(self) -> dict[tuple[int, int | None], CountedWait]:
        """What was counted, by phase and line of the program."""
        frames, stacks = self.stacks.resolve()
        user = {
            number: [frames[each].line for each in stack if frames[each].user][-1]
            for number, stack in enumerate(stacks)
        }
        return {(wait.phase, user[wait.stack]): wait for wait in self.counter.waits()}


@contextmanager
def running(uniform: Any = None, prices: Prices | None = PRICES, before_ns: int = 0) -> Iterator[Run]:
    """A program that is being counted, and ran for ``before_ns`` before."""
    MODE[0] = 0
    run = Run(uniform, prices, before_ns)
    run.counter.open()
    try:
        yield run
    finally:
        run.counter.close()
        assert MODE[0] == 0
        assert not sync_debug_mode._listeners and not sync_debug_mode._muted


def only(run: Run) -> Any:
    (found,) = run.counter.waits()
    return found


def make_dense_steps(run: Run) -> None:
    """Two thousand steps of half a millisecond, with eight waits each: far too dense for all to be counted."""
    for _ in range(2_000):
        for _ in range(8):
            wait()
        run.step(MS // 2)


def wrapped(run: Run) -> bool:
    return "to" in vars(run.torch.Tensor)
