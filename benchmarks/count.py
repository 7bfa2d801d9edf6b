"""What counting every wait and following the phases costs: ``python -m benchmarks.count`` on a machine with a GPU.

What most steps do is measured by blocks of a few steps with all of it on and off, which alternate in one process, the
order within each pair drawn, so that both see the same clock of the host; the first steps after each change are not
measured. The blocks are compared by their middle half, and the pairs by theirs.

What a few steps do more, those that are drawn, that the listener hears of, or that come right after a drawn one, is
measured while the loop runs without interruption, as in a program: the draw puts them among the others, so all see the
same clock. It is a mean over all of them, compared with the mean of the others. In blocks they are dearer: a change
takes what Python has learnt about attributes and what the processor's caches hold, and blocks of long steps are short.

What a look at all modules takes is measured apart and added in proportion to the looks of a run of ``RUN_S``, and so
is the time of the thread that writes, which runs beside both kinds of blocks. Each loop has ``--seconds``, half of them
for each, and prints its row when they are over, the dearest loops first.

Each pair has a second block without, so that the ratio of two blocks that do the same is printed too: what it differs
from 1 by is noise. All run on the first ``--cores`` of the processor's cores, since a process that wanders among many
is noisier: two blocks of the host-bound loop that do the same then differ by 1 % and more.

Printed for each loop: milliseconds a step without counting, the pairs, the ratio with these shares and its 95 %
bootstrap interval, the interval of two blocks without, the ratio of usual steps alone, what the count itself believes
that it costs, of how many steps one is counted, what a look takes, and how many calls of Python functions a step has
more.
``--cpu`` runs the loops without a GPU, on tensors that warn as if they waited. ``--write docs/evidence.md`` puts the
table there, with ``--read`` from what ``--json`` wrote on another machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.calls import CallCount
from benchmarks.hooks import Hooks
from benchmarks.loops import LOOPS, nothing
from benchmarks.overhead import Step
from benchmarks.paired import Pair, Stretch, estimate, midmean
from benchmarks.waits import waiting_tensors
from syncscope.collect.counting import RunCount
from syncscope.collect.paths import Paths
from syncscope.collect.phases import modules

BLOCK_S = 0.06
FEWEST, SETTLING = 6, 8
"""Steps of a block at least, and steps after a change that are not measured, at least."""

SETTLING_S = 0.06
"""Python learns anew where the attributes of classes are. On an H200 the first step of a rollout behind a change of
classes was 110 µs longer, the next 45, the sixteenth 7, and after 15 ms they still were 2 to 8, by which classes had
changed: more than all that is to be measured. In a program nothing changes for minutes, but where wrappers are put in
and taken out, and at looks at all modules, which are measured by themselves."""

SHADOW, SHORT_SHADOW = 128, 3
"""Steps behind one that may be longer for the same reason: where wrappers were put in or taken out, and elsewhere. None
are told apart where most would be such steps: they are usual then."""

STRETCH_S, STRETCH = 0.5, 64
"""Steps that are not interrupted are compared with those around them, within so long, and so many at least."""

WARMING_S = 2.0
"""Until the count knows how dense the waits are."""

LOOKS = 5
"""So many looks at all modules are timed."""

RUN_S = 300.0
"""The run whose looks at all modules are booked."""

CALLS_S = 1.0
"""Calls are counted in the steps of so long, of 50 to 400 of them."""

BEGIN, END = "<!-- begin of the cost -->", "<!-- end of the cost -->"


def looks_a_second() -> float:
    """How often all modules are looked at, on average of a run of ``RUN_S``."""
    looks, now = 0, 0.0
    while now < RUN_S:
        now += max(LOOK_EVERY_S, now / modules.LOOK_PARTS)
        looks += 1
    return looks / RUN_S


LOOK_EVERY_S = modules.LOOK_EVERY_NS / 1e9


@contextlib.contextmanager
def no_looks() -> Iterator[None]:
    """Looks at all modules come when we ask for them."""
    every, modules.LOOK_EVERY_NS = modules.LOOK_EVERY_NS, sys.maxsize
    try:
        yield
    finally:
        modules.LOOK_EVERY_NS = every


@dataclass(frozen=True)
class Row:
    """What was measured of one loop."""

    name: str
    ms: float
    pairs: int
    ratio: float
    low: float
    high: float
    same_low: float
    same_high: float
    """The 95 % interval of the ratio of two blocks that do the same."""
    usual: float
    """The ratio of usual steps alone."""
    own: float
    one_in: float
    look_ms: float
    coldness: float
    calls: float

    def text(self) -> str:
        return (
            f"{self.name:22} {self.ms:8.3f} {self.pairs:6} {self.ratio:9.4f}  {self.low:6.4f} – {self.high:6.4f}   "
            f"{self.same_low:6.4f} – {self.same_high:6.4f}   {self.usual:7.4f} {self.own:7.2%} {self.one_in:7.1f} "
            f"{self.look_ms:8.2f} {self.coldness:5.1f} {self.calls:6.1f}"
        )

    def line(self) -> str:
        """Of the table in Markdown."""
        return (
            f"| {self.name} | {self.ms:.3g} | {self.pairs} | {self.ratio:.4f} | {self.low:.4f} – {self.high:.4f} | "
            f"{self.same_low:.4f} – {self.same_high:.4f} | {self.usual:.4f} | {self.own:.2%} | {self.one_in:.0f} | "
            f"{self.calls:.0f} |"
        )


HEADER = (
    f"{'loop':22} {'ms':>8} {'pairs':>6} {'on / off':>9}  {'95 % interval':15}   {'off / off':15}   {'usual':>7} "
    f"{'own':>7} {'one in':>7} {'look ms':>8} {'cold':>5} {'calls':>6}"
)


Script = Generator[None, None, None]
"""Each ``yield`` lets one step run."""


class OnStep(NamedTuple):
    """A step with all of it on."""

    length: float
    counted: bool
    heard: bool
    """The listener heard of it, or counting was switched in it."""
    moved: bool
    """Wrappers were put in or taken out in it."""


class Loop:
    """One loop with all of it on and off in turn, all in one frame, as in a program. Lengths are seconds."""

    def __init__(self, name: str, step: Step, tells: bool) -> None:
        self._name, self._step, self._tells = name, step, tells
        self._after = nothing
        self._out = False
        self._settling = SETTLING
        self.pairs: list[Pair] = []
        self.stretches: list[Stretch] = []
        self._same: list[Pair] = []
        """Two blocks without, each."""
        self.row: Row | None = None

    def run(self, seconds: float, order: random.Random) -> None:
        """Measure ``stretches`` and ``pairs``, half of ``seconds`` each, and ``row``."""
        step = self._step
        for _ in self._script(seconds, order):
            step()
            self._after()

    def _script(self, seconds: float, order: random.Random) -> Script:
        yield from self._steps(5)
        length = statistics.median((yield from self._steps(20)))
        steps, self._settling = max(FEWEST, round(BLOCK_S / length)), max(SETTLING, round(SETTLING_S / length))
        began, count = time.perf_counter(), RunCount(Paths(Path.cwd()), "benchmark", nothing)
        count.open(torch)
        if not count.began:  # without a GPU CUDA is never in use
            count._begin()
        try:
            self._hooks = hooks = Hooks(count)
            self._account, self._tracker = hooks.counter._account, hooks.tracker
            self._on_after = self._after = count.step if self._tells else nothing
            yield from self._warm_up()
            began_cost, began_ns = hooks.spent_ns
            alone = yield from self._measure_alone(seconds / 2)
            cost, time_ns = hooks.spent_ns
            blocks = yield from self._measure_blocks(steps, seconds / 2, order)
            self._sort_out(alone, blocks, max(STRETCH, round(STRETCH_S / length)))
            thread = count._background.busy_ns / 1e9 / (time.perf_counter() - began)
            own = (cost - began_cost) / max(time_ns - began_ns, 1) + thread
            look = yield from self._look()
            calls = yield from self._more_calls(min(max(round(CALLS_S / length), 50), 400))
            self.row = self._sum_up(look, thread, own, calls)
        finally:
            self._put_in()
            count.close()

    def _sum_up(self, look: float, thread: float, own: float, calls: float) -> Row:
        phase = max(self._tracker.phases, key=lambda phase: phase.steps)
        beside = look * looks_a_second() + thread
        found, same = estimate(self.pairs, self.stretches), estimate(self._same)
        return Row(
            name=self._name,
            ms=statistics.median(length for pair in self.pairs for length in pair.off) * 1e3,
            pairs=len(self.pairs),
            ratio=found.ratio + beside,
            low=found.low + beside,
            high=found.high + beside,
            same_low=same.low,
            same_high=same.high,
            usual=midmean([pair.ratio for pair in self.pairs if pair.ratio is not None]),
            own=own,
            one_in=self._hooks.counter.one_in(phase),
            look_ms=look * 1e3,
            coldness=self._hooks.counter.coldness,
            calls=calls,
        )

    def _steps(self, steps: int) -> Generator[None, None, list[float]]:
        lengths, clock = [], time.perf_counter
        for _ in range(steps):
            start = clock()
            yield
            lengths.append(clock() - start)
        return lengths

    def _warm_up(self) -> Script:
        until = time.perf_counter() + WARMING_S
        while time.perf_counter() < until:
            yield

    def _measure_alone(self, seconds: float) -> Generator[None, None, list[OnStep]]:
        """Steps of a loop that nobody interrupts."""
        found: list[OnStep] = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            found += yield from self._on_steps(STRETCH)
        return found

    def _measure_blocks(
        self, steps: int, seconds: float, order: random.Random
    ) -> Generator[None, None, list[tuple[list[float], list[OnStep]]]]:
        """Two blocks of ``steps`` with all of it off, and one with all on, time and again. The two are in ``_same``."""
        blocks: list[tuple[list[float], list[OnStep]]] = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            place = order.randrange(3)
            offs: list[list[float]] = []
            for number in range(3):
                if number == place:
                    on = yield from self._on(steps)
                else:
                    offs.append((yield from self._off(steps)))
            order.shuffle(offs)
            blocks.append((offs[0] + offs[1], on))
            self._same.append(Pair(tuple(offs[0]), tuple(offs[1])))
        return blocks

    def _sort_out(self, alone: list[OnStep], blocks: list[tuple[list[float], list[OnStep]]], together: int) -> None:
        """Make ``pairs`` and ``stretches`` of ``together`` steps. Most steps are counted, or most are not: the others
        are rare, and those behind them."""
        usually = 2 * sum(step.counted for step in alone) > len(alone)
        rare = _rare(alone, usually)
        shadow = 2 * sum(rare) < len(rare)
        rare = rare if shadow else _rare(alone, usually, shadow)
        for begin in range(0, len(alone), together):
            lengths: dict[bool, list[float]] = {False: [], True: []}
            for step, is_rare in zip(alone[begin : begin + together], rare[begin : begin + together], strict=True):
                lengths[is_rare].append(step.length)
            self.stretches.append(Stretch(tuple(lengths[False]), tuple(lengths[True])))
        rare = _rare([step for _, on in blocks for step in on], usually, shadow)
        none_usual = all(rare)  # another part of the steps is counted by now
        for off, on in blocks:
            usual = [step.length for step in on if not rare.pop(0) or none_usual]
            self.pairs.append(Pair(tuple(off), tuple(usual)))

    def _on(self, steps: int) -> Generator[None, None, list[OnStep]]:
        """The steps of a block with all of it on. Whatever was before, it begins with the same change: Python learns
        anew where attributes are for longer than steps are left out."""
        self._take_out()
        self._put_in()
        return (yield from self._on_steps(self._settling + steps))[self._settling :]

    def _on_steps(self, steps: int) -> Generator[None, None, list[OnStep]]:
        found: list[OnStep] = []
        tracker, account, switch, clock = self._tracker, self._account, self._hooks.counter._switch, time.perf_counter
        for _ in range(steps):
            heard, on, wrapped = tracker.heard, account.on, switch.wrapped
            start = clock()
            yield
            length = clock() - start
            switched = heard != tracker.heard or on is not account.on
            found.append(OnStep(length, on, switched, wrapped is not switch.wrapped))
        return found

    def _off(self, steps: int) -> Generator[None, None, list[float]]:
        """The steps of a block with all of it off, which begins as one with it on does."""
        self._put_in()
        self._take_out()
        return (yield from self._steps(self._settling + steps))[self._settling :]

    def _put_in(self) -> None:
        if self._out:
            self._hooks.put_in()
            self._after, self._out = self._on_after, False

    def _take_out(self) -> None:
        if not self._out:
            self._hooks.take_out()
            self._after, self._out = nothing, True

    def _look(self) -> Generator[None, None, float]:
        """What a look at all modules takes in all, until only few classes are watched again."""
        self._put_in()
        steps = modules.LOOK_CALLS + 2 * self._settling
        taken = []
        for _ in range(LOOKS):
            before = sum((yield from self._steps(steps)))
            self._hooks.look_at_all()
            taken.append(sum((yield from self._steps(steps))) - before)
        return max(statistics.median(taken), 0.0)

    def _more_calls(self, steps: int) -> Generator[None, None, float]:
        """Calls of Python functions that a step has more with all of it on."""
        self._take_out()
        without = yield from self._calls(steps)
        self._put_in()
        return (yield from self._calls(steps)) - without

    def _calls(self, steps: int) -> Generator[None, None, float]:
        """Calls of Python functions in a step."""
        count = CallCount()
        count.start()
        try:
            yield from self._steps(steps)
        finally:
            count.stop()
        return count.calls / steps


def _rare(steps: list[OnStep], usually: bool, shadow: bool = True) -> list[bool]:
    """Which of ``steps`` do more than usual ones, which are counted or not, as they ``usually`` are; with their
    ``shadow``, or without."""
    found: list[bool] = []
    left = SHADOW * shadow  # what was before is not known
    for step in steps:
        more = step.moved or step.heard or step.counted is not usually
        if more and shadow:
            left = max(left, SHADOW if step.moved else SHORT_SHADOW)
        found.append(more or left > 0)
        left -= not more
    return found


def measure(name: str, device: str, seconds: float, order: random.Random) -> Loop:
    make, tells = LOOPS[name]
    loop = Loop(name, make(device), tells)
    with no_looks():
        loop.run(seconds, order)
    return loop


def write(path: Path, measured: dict[str, Any]) -> None:
    """Put the table into ``path``, between its marks."""
    rows = [Row(**loop["row"]) for loop in measured["loops"].values()]
    command = f"`python -m benchmarks.count --seconds {measured['seconds']:g}`"
    table = [
        BEGIN,
        f"{command}, {measured['device']}, torch {measured['torch']}:",
        "",
        "| loop | ms a step | pairs | on / off | 95 % interval | off / off | usual | own | 1 in | calls |",
        "|---|--:|--:|--:|---|---|--:|--:|--:|--:|",
        *(row.line() for row in rows),
        END,
    ]
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    path.write_text(before + "\n".join(table) + rest.partition(END)[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30, help="of pairs of each loop")
    parser.add_argument("--only", choices=list(LOOPS), nargs="+", default=list(LOOPS))
    parser.add_argument("--cores", type=int, default=4, help="of the processor that all of it runs on")
    parser.add_argument("--cpu", action="store_true", help="without a GPU")
    parser.add_argument("--json", type=Path, help="also write every step here, after each loop")
    parser.add_argument("--read", type=Path, help="measure nothing: take what --json wrote elsewhere")
    parser.add_argument("--write", type=Path, help="put the table into this page after each loop")
    options = parser.parse_args()
    if options.read:
        write(options.write, json.loads(options.read.read_text()))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    device = "cpu" if options.cpu else torch.cuda.get_device_name()
    measured: dict[str, Any] = {"device": device, "torch": torch.__version__, "seconds": options.seconds, "loops": {}}
    print(f"{device}, torch {torch.__version__}, {options.seconds:g} s a loop\n{HEADER}", flush=True)
    order = random.Random(1)
    with waiting_tensors() if options.cpu else contextlib.nullcontext():
        for name in options.only:
            loop = measure(name, "cpu" if options.cpu else "cuda", options.seconds, order)
            assert loop.row is not None
            print(loop.row.text(), flush=True)
            measured["loops"][name] = {
                "row": asdict(loop.row),
                "pairs": [asdict(pair) for pair in loop.pairs],
                "stretches": [asdict(stretch) for stretch in loop.stretches],
            }
            if options.json:
                options.json.write_text(json.dumps(measured))
            if options.write:
                write(options.write, measured)


if __name__ == "__main__":
    main()
