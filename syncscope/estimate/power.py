"""What the GPU's power limit leaves of a saving.

At its limit a GPU lowers its clock until its power fits. A step that idles less draws more at the same clock, so the
clock falls, and the kernels that follow it take longer: idle time that is filled comes back only in part.

Power above idle is the energy of a step's work divided by the step's length. The energy of each kernel goes with a
power of the clock, and so does its time (``clocks``). The clock settles where power meets what the limit leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.estimate.clocks import LIKELY, MEMORY_POWER, STRONG, WEAK, Response, energies, slowdown
from syncscope.estimate.edits import Question
from syncscope.estimate.program import Program
from syncscope.estimate.replay import Replayed, Slowed
from syncscope.estimate.replay_rows import Interval
from syncscope.patterns import compile_later
from syncscope.schema.recording import GpuWindow, RecordedGpu
from syncscope.timeline.gpu import CAPPED, FEWEST, is_capped, settled_window
from syncscope.timeline.intervals import Floats

IDLE_SHARE = 0.15
"""What a GPU draws with its clocks up and nothing to do, as a share of its limit: 105 of 700 W on an H200, where the
power of a loop of copies meets an idle GPU's."""

HELD = 0.99
"""Share of the limit at which an H200 holds its power."""

BUSY = 0.55
"""Energy of a step from which a GPU of unknown power may be at its limit, as a share of what matrix products without a
pause would take at its highest clock: an H200 has 588 of 934 W, so 0.63, less a tenth."""

CHIP = compile_later(r"H200|H100 80GB HBM3|GH200")
"""Names of devices of the chip that was measured, in its form for servers."""

FULL_W = 840.0
"""Watts above idle that such a chip draws at its highest clock while it multiplies matrices on tensor cores. Set on
2026-11-23 from the 13 pairs at the limit that were recorded on 2026-11-22: told how long the step was that was timed,
650 to 920 W do about as well. Loops of one product without a pause draw more, 934 W. By it, the 15 pairs of the set
*Met* are all near, which proves nothing: they had been seen by then."""

POWER_DOUBT = 0.15
"""Share by which what a step draws may be more or less than its kernels say: it differs by shapes and by data."""

SLOWED = 0.9
"""The clock, as a share of the recorded, at which the steps are replayed to learn how their length follows it."""

LOWEST = 0.5
"""The clock never settles below this share."""

SLOWING = ("thermal", "hardware slowdown", "power brake")
"""Reasons that hold the clock down as the power limit does, by a limit that nothing tells."""

MOST_APART = 0.15
"""The most by which the clocks of two windows may differ for kernels to be scaled from one to the other."""

MOST_RISE = 2.0
"""The clock never rises beyond this share of what it was."""

ROUNDS = 24
"""Halvings in the search for the clock."""


BOTH = "nothing tells whether the GPU is at its power limit: ranges hold the saving if it is, and if it is not"
"""What is said where nothing is known of the power and it makes a difference."""

BY_KERNELS = (
    "too few readings were taken to tell the GPU's power; going by its kernels it is at its {:,.0f} W limit or near "
    "it: idle time that is filled comes back only in part"
)
"""What is said where the power follows from the kernels and the limit makes a difference."""


class Condition(msgspec.Struct, frozen=True):
    """What held the GPU's clock while the steps ran without a profiler."""

    budget: float = 1.0
    """Power above idle that the limit leaves, as a share of what the steps drew."""
    ceiling: float = 1.0
    """How far the clock may rise, as a share of what it was."""
    timed: float = 1.0
    """The clock without a profiler as a share of that of the recorded steps."""
    known: bool = True
    """Whether power and clock were recorded. If not, a busy GPU may be at its limit or not."""
    allowed: float | None = None
    """Where the limit is known and the power is not: the power above idle that the limit leaves, as a share of what a
    matrix product draws at the recorded clock. ``budget`` then follows from the kernels."""
    limit_w: float | None = None
    """The limit in that case."""

    @property
    def says(self) -> str | None:
        """What a reader must know of how the limit was taken into account; ``None`` where it was measured."""
        if self.limit_w is not None:
            return BY_KERNELS.format(self.limit_w)
        return None if self.known else BOTH

    @property
    def at_limit(self) -> bool:
        return self.known and self.budget <= 1.0

    def of(self, drawn: float) -> Condition:
        """The condition of steps that draw ``drawn``, as a share of what a matrix product draws."""
        if self.allowed is None:
            return self
        return replace(self, budget=max(self.allowed / max(drawn, 1e-9), 1.0), known=True)

    def doubted(self, factor: float) -> Condition:
        """The condition if the steps draw less by ``factor``, where they were not measured."""
        return self if self.allowed is None else replace(self, budget=max(self.budget * factor, 1.0))


UNKNOWN = Condition(known=False)


def condition_of(gpu: RecordedGpu | None, device: str | None = None) -> Condition:
    """The condition that a recording of ``device`` shows; ``UNKNOWN`` where it does not say enough."""
    window = settled_window(gpu)
    if gpu is None:
        return UNKNOWN
    if window is None:
        return _by_kernels(gpu, device, 1.0)
    timed, capped = _between(gpu.bare, gpu.timed), is_capped(gpu, window)
    if capped:
        highest, clock = gpu.max_sm_clock_mhz, window.sm_clock_mhz
        rise = highest / clock if highest and clock else 1.0
        return Condition(ceiling=min(max(rise, 1.0), MOST_RISE), timed=timed)
    others = max((share for reason, share in window.throttled.items() if reason in SLOWING), default=0.0)
    if others >= CAPPED or not gpu.power_limit_w:
        return replace(UNKNOWN, timed=timed)
    if capped is None or not window.power_w:
        return _by_kernels(gpu, device, timed)
    idle = IDLE_SHARE * gpu.power_limit_w
    drawn = max(window.power_w - idle, 0.01 * gpu.power_limit_w)
    return Condition(budget=max((HELD * gpu.power_limit_w - idle) / drawn, 1.001), timed=timed)


def _by_kernels(gpu: RecordedGpu, device: str | None, timed: float) -> Condition:
    """The condition where the limit is known and the power is not. The kernels of other chips tell too little of it."""
    if not gpu.power_limit_w or not CHIP.search(device or ""):
        return replace(UNKNOWN, timed=timed)
    limit = float(gpu.power_limit_w)
    return Condition(timed=timed, known=False, allowed=(HELD - IDLE_SHARE) * limit / FULL_W, limit_w=limit)


def _between(bare: GpuWindow | None, timed: GpuWindow | None) -> float:
    """The clock of one window as a share of the other's; 1 where one is not known or had not settled, or where they
    differ too much."""
    clocks = [window.sm_clock_mhz if window and window.samples else None for window in (bare, timed)]
    if bare is None or bare.samples < FEWEST or not clocks[0] or not clocks[1]:
        return 1.0
    ratio = clocks[0] / clocks[1]
    return ratio if abs(ratio - 1) <= MOST_APART else 1.0


def at_clock(program: Program, ratio: float, response: Response = LIKELY) -> Program:
    """The program with the kernels as long as they are at a clock of ``ratio``."""
    if ratio == 1.0:
        return program
    items = program.items
    return replace(program, items=items.replace(dur=items.dur * slowdown(items, ratio, response)))


class Work(msgspec.Struct, frozen=True):
    """Energy of a step's work as each question leaves it (questions, 1), in ns of a matrix product."""

    compute: Floats
    other: Floats

    @classmethod
    def of(cls, program: Program, questions: Sequence[Question]) -> Work:
        compute, other = energies(program.items)
        dur = np.maximum(program.items.dur, 1.0)
        left = np.array([[compute.sum(), other.sum()]] * len(questions)) / program.steps
        for number, one in enumerate(questions):
            at_most = np.where(one.are(lambda edit: edit.gone), 0.0, one.column("dur"))
            less = at_most < dur[one.items]
            for item, most in zip(one.items[less].tolist(), at_most[less].tolist(), strict=True):
                share = (1 - most / dur[item]) / program.steps
                left[number] -= share * compute[item], share * other[item]
        left = np.maximum(left, 0.0)
        return cls(left[:, :1], left[:, 1:])

    def drawn(self, lengths: Floats) -> Floats:
        """Power above idle of each question's steps of these ``lengths`` in ns (questions, scenarios), as a share of a
        matrix product's."""
        power: Floats = (self.compute + self.other) / np.maximum(lengths, 1.0)
        return power


def may_be_capped(condition: Condition, work: Work, lengths: Floats) -> bool:
    """Whether the limit may take back a part of what a question saves. ``lengths`` are those of each question's steps
    (questions, scenarios), ns."""
    drawn = work.drawn(lengths)
    condition = condition.doubted(1 - POWER_DOUBT)
    if not condition.known:
        return bool(drawn[0, 0] >= BUSY)
    return condition.at_limit or bool((drawn > condition.budget * drawn[0]).any())


def settle(condition: Condition, work: Work, usual: Floats, slowed: Floats, response: Response) -> Floats:
    """How far the length of each question's steps goes from ``usual`` towards ``slowed`` (questions, 1), its length at
    the recorded clock and at ``SLOWED``: 0 nowhere, 1 all the way.

    Question 0 changes nothing.
    """
    drawn = np.maximum(work.compute[0] + work.other[0], 1e-9) / usual[0]
    # How long kernels take longer goes with how steep the response is, compared with the one that was replayed.
    steep = (work.compute * response.compute + work.other * response.memory).sum(axis=1, keepdims=True)
    likely = (work.compute * LIKELY.compute + work.other * LIKELY.memory).sum(axis=1, keepdims=True)
    exponent = np.where(likely > 0, steep / np.maximum(likely, 1e-9), 1.0)

    def part(ratio: Floats) -> Floats:
        along: Floats = exponent * np.log(ratio) / np.log(SLOWED)
        return along

    def fits(ratio: Floats) -> Floats:
        energy = work.compute * ratio ** (response.power - response.compute)
        energy = energy + work.other * ratio ** (MEMORY_POWER - response.memory)
        length = np.maximum(usual + (slowed - usual) * part(ratio), 1.0)
        ok: Floats = energy / length <= condition.budget * drawn * (1 + 1e-9)
        return ok

    low, high = np.full(usual.shape, LOWEST), np.full(usual.shape, condition.ceiling)
    fast = fits(high)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        ok = fits(middle)
        low, high = np.where(ok, middle, low), np.where(ok, high, middle)
    settled = np.where(fast, condition.ceiling, low)
    settled[0] = 1.0
    moved: Floats = part(settled)
    return moved


def between(usual: Replayed, slowed: Replayed, part: Floats, *, drawn: bool = False) -> Replayed:
    """The replay that lies ``part`` (questions, 1) of the way from one to the other. ``slowed`` has the likely scenario
    only; the others are moved by as much as that. What took time in the last step is moved where it is ``drawn``."""
    scenarios = usual.host.shape[2]
    host = usual.host + (slowed.host - usual.host[:, :, :1]) * part
    device = usual.device + (slowed.device - usual.device[:, :, :1]) * part
    alike = drawn and [one.stream for one in usual.last] == [other.stream for other in slowed.last]
    if usual.parts:
        away = Slowed(slowed.last, slowed.parts, part.ravel()) if alike else None
        return Replayed(host, device, usual.last, usual.parts, away)

    def moved(first: Floats, second: Floats) -> Floats:
        there: Floats = first + np.repeat((second - first[::scenarios]) * part.ravel(), scenarios)
        return there

    last = [
        Interval(one.stream, *(moved(a, b) for a, b in zip(one[1:], other[1:], strict=True)))
        for one, other in zip(usual.last, slowed.last, strict=True)
    ] if alike else list(usual.last)  # fmt: skip
    return Replayed(host, device, tuple(last))


RANGE = (STRONG, WEAK)
"""The responses between which the true one lies."""
