"""What is counted at one place of one phase, in constant memory."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from syncscope.schema.counting import CountedWait, Direction

MAX_PLACES = 5_000
"""Places kept of a run. Waits at further ones are counted together (``dropped``)."""

Key = tuple[str, int, "bool | None"]
"""Name of the entry point, stack, and whether it copies to the device (``None``: no copy)."""


COPIES = frozenset({"Tensor.to", "Tensor.cuda", "Tensor.cpu", "Tensor.copy_"})
"""Entry points that copy between host and device. Those that wait give a warning, unless a window records."""

UNSEEN = 2
"""Drawn steps with waits that the variance has beside those that were seen: a place that no drawn step had may still be
in steps that were left out, and one that all had may lack in some (Agresti and Coull, 1998: two of each more)."""


ITSELF = 0.0
"""The weight of a step that is unlike the others: it stands for itself, and what was left out is not like it."""


class Sampled(NamedTuple):
    """What the counted steps of a phase tell of all of its steps."""

    share: float = 1.0
    """What was counted stands for all steps but some that were left out: estimates are multiplied by it."""
    beside: float = 1.0
    """The same of what was told of steps that were left out, where it stands for a few more or less than there were."""
    mean: float = 1.0
    """A counted step stands for so many, on average."""
    spread: float = 0.0
    """The variance of an estimate where the waits of a step have the variance 1."""
    stood_for: float = 0.0
    """Steps that the counted ones stand for, without those that stand for themselves."""
    all_steps: int | None = None
    """Steps, counted or not, besides the one that is under way; ``None`` unknown."""
    of_time: float = 1.0
    """A phase without steps lasted so many times as long as it was counted."""
    of_cut: float = 1.0
    """Steps in which counting stopped were so many times as long as what was counted of them."""
    tried: int = 0
    """So many steps were counted whole or until counting stopped in them, ..."""
    cut: int = 0
    """... the latter so many. Steps that were left out are like all of them: what is dear is seldom counted whole."""
    of_lasting: float = 1.0
    """The same of steps that last, ..."""
    lasting_step: int | None = None
    """... of which this one is under way."""
    of_seen: float = 1.0
    """Where no step stands for others: so many times as many steps there were as were counted, whole or in part."""
    first: int | None = None
    """The first step of all, where others were counted as well: what waits in it alone is made once, and stands for
    nothing."""


class _Told(NamedTuple):
    """What a place tells: waits in counted steps, how many of these had one, and those in all steps."""

    waits: int
    steps: int
    estimate: float
    variance: float
    blocked_ns: int


EVERY_STEP = Sampled()


class Place:
    """The waits at one place. Counting touches ``now`` only; a step is added up when the next one begins."""

    __slots__ = (
        "alone",
        "before",
        "blocked_ns",
        "bytes",
        "count",
        "cut",
        "cut_steps",
        "expected",
        "first_step",
        "last_cut",
        "lasting",
        "lasting_steps",
        "may_wait",
        "name",
        "non_blocking",
        "now",
        "pageable",
        "squares",
        "stack",
        "step",
        "steps",
        "thread",
        "to_device",
        "weight",
        "weighted",
    )  # fmt: skip

    def __init__(self, name: str, stack: int, to_device: bool | None, step: int) -> None:
        self.name = name
        self.stack = stack
        self.to_device = to_device
        self.first_step = self.step = step
        self.now = 0
        """Waits in ``step``, the last step with one."""
        self.count = self.steps = 0
        """Of the steps before ``step``."""
        self.weight = 1.0
        """Steps that ``step`` stands for; ``ITSELF`` where nothing that was left out is like it."""
        self.alone = 0
        """Waits in steps with that weight. They are no estimate."""
        self.weighted = self.squares = 0.0
        """Waits in all steps before ``step``, as those that were counted tell, and by how much the sum of their squares
        is more. It is not where each step with waits has one, so the hot path need not add it up."""
        self.before = 0
        """Waits before its steps were known."""
        self.cut = self.cut_steps = 0
        """Waits in steps that were counted in part. They are not in ``count``."""
        self.last_cut = 0
        """Of them, those in ``step``."""
        self.lasting = self.lasting_steps = 0
        """Waits in steps that last, of which the parts told what was counted. They are not in ``count`` either."""
        self.bytes = self.blocked_ns = 0
        self.pageable = self.non_blocking = self.may_wait = False
        self.thread: str | None = None
        self.expected: str | None = None

    def begin_step(self, step: int, weight: float = 1.0) -> None:
        """Add up the step that is over. ``step`` has one wait so far, and stands for ``weight`` steps."""
        now = self.now
        if now:
            self.count += now
            self.steps += 1
            self.weighted += now * self.weight
            self.squares += now * (now - 1) * self.weight
            self.alone += now * (self.weight == ITSELF)
        self.step, self.now, self.weight, self.last_cut = step, 1, weight, 0

    def cut_step(self) -> None:
        """The step under way is counted in part."""
        self.cut, self.cut_steps = self.cut + self.now, self.cut_steps + 1
        self.last_cut, self.now = self.now, 0

    def begin_lasting(self) -> None:
        """The step under way turns out to last. What was counted of it so far is part of it."""
        self.cut, self.cut_steps = self.cut - self.last_cut, self.cut_steps - (self.last_cut > 0)
        self.now, self.last_cut, self.weight = self.now + self.last_cut, 0, ITSELF

    def end_lasting(self) -> None:
        """The step that lasts is over. As many waits as a step usually has are its own, and no more than they are."""
        usual = self.usual_of_lasting
        self.count, self.steps, self.alone = self.count + usual, self.steps + (usual > 0), self.alone + usual
        more, self.now = self.now - usual, 0
        self.lasting, self.lasting_steps = self.lasting + more, self.lasting_steps + (more > 0)

    @property
    def usual_of_lasting(self) -> int:
        """Waits in the step under way, which lasts, as far as other steps with waits have as many."""
        return min(self.now, math.ceil(self.count / self.steps)) if self.steps else 0

    def begin_again(self) -> None:
        """Its steps were others so far."""
        self.before += self.count + self.now + self.cut + self.lasting
        self.cut = self.cut_steps = self.last_cut = self.lasting = self.lasting_steps = 0
        self.count = self.steps = self.now = self.first_step = self.step = self.alone = 0
        self.weighted = self.squares = 0.0
        self.bytes = self.blocked_ns = 0

    def add(self, other: Place) -> None:
        """Add the waits of ``other``, which were in other steps."""
        now = other.now
        self.count += other.count + now
        self.steps += other.steps + (now > 0)
        self.weighted += other.weighted + now * other.weight
        self.squares += other.squares + now * (now - 1) * other.weight
        self.alone += other.alone + now * (other.weight == ITSELF)
        self.before += other.before
        self.cut += other.cut
        self.cut_steps += other.cut_steps
        self.lasting += other.lasting
        self.lasting_steps += other.lasting_steps
        self.bytes += other.bytes
        self.blocked_ns += other.blocked_ns
        self.pageable |= other.pageable
        self.non_blocking |= other.non_blocking
        self.may_wait |= other.may_wait
        self.thread = other.thread
        self.expected = self.expected or other.expected
        if self.to_device is None:
            self.to_device = other.to_device

    def become_like(self, copy: Place) -> None:
        """It turns out to be the same copy as ``copy``, in another phase."""
        self.name, self.to_device, self.pageable = copy.name, copy.to_device, copy.pageable
        self.non_blocking = copy.non_blocking

    def waits(self, phase: int, most_steps: int, sampled: Sampled = EVERY_STEP) -> CountedWait | None:
        """This place in a recording; ``None`` where nothing was counted. It had waits in ``most_steps`` at most."""
        told = self._told(sampled)
        if not told.waits + self.before:
            return None
        copies = self.name in COPIES
        if copies and self.to_device is not None and not self.pageable:
            return None  # from or to pinned memory, without a warning: nothing waits
        direction: Direction | None = None if self.to_device is None else "HtoD" if self.to_device else "DtoH"
        kind: Literal["warning", "call"] = "call" if self.name else "warning"
        return CountedWait(
            phase=phase,
            stack=self.stack,
            kind=kind,
            name=self.name,
            may_wait=self.may_wait or (copies and self.to_device is None),
            thread=self.thread,
            expected=self.expected,
            direction=direction,
            pageable=self.pageable,
            non_blocking=self.non_blocking,
            bytes=self.bytes if direction else None,
            count=told.waits,
            steps=min(told.steps, most_steps),
            estimate=told.estimate,
            variance=told.variance,
            before=self.before,
            first_step=self.first_step,
            last_step=self.step,
            blocked_ns=told.blocked_ns if kind == "call" or direction else None,
        )

    def _told(self, sampled: Sampled) -> _Told:
        """What was counted, and what it tells of all steps."""
        lasts = self.step == sampled.lasting_step
        now = self.usual_of_lasting if lasts else self.now
        lasting = self.lasting + self.now - now
        count, steps = self.count + now, self.steps + (now > 0)
        estimate, variance = self._estimate(now, sampled)
        if sampled.of_time > 1:
            estimate, variance = _of_parts(count, sampled.of_time, variance)
        if sampled.all_steps and count == steps:  # once in each that had one
            estimate = min(estimate, float(sampled.all_steps + 1))
        if sampled.of_seen > 1:
            of_cut, variance = _of_parts(self.cut, sampled.of_cut, variance)
            estimate += of_cut
        elif self.cut > estimate:  # steps that are too dear to be counted whole are told by their parts
            estimate, variance = self._with_cut(estimate, variance, sampled)
        if lasting:
            of_lasting, variance = _of_parts(lasting, sampled.of_lasting, variance)
            count, estimate = count + lasting, estimate + of_lasting
            steps += self.lasting_steps + (self.now > now)
        if sampled.of_seen > 1:
            estimate, variance = _of_parts(estimate, sampled.of_seen, variance * sampled.of_seen**2)
        if not count:
            return _Told(self.cut, self.cut_steps, estimate, variance, self.blocked_ns)
        return _Told(count, steps, estimate, variance, self.blocked_ns * count // (count + self.cut))

    def _with_cut(self, estimate: float, variance: float, sampled: Sampled) -> tuple[float, float]:
        """Waits in all steps, where whole ones tell ``estimate`` and those in which counting stopped tell more. Where
        most steps were missed, they are like both."""
        of_cut, of_parts = _of_parts(self.cut, sampled.of_cut, (self.cut - estimate) ** 2)
        tried = max(sampled.tried, 1)
        missed = (sampled.all_steps or 0) / tried - 1
        whole, scale = 1 - sampled.cut / tried, max(missed, 1.0)  # their time has some of what was missed in it
        unlike = (scale - 1) * of_cut  # as little is known of this as of how many steps were cut
        return whole * estimate + scale * of_cut, whole**2 * variance + scale**2 * of_parts + unlike**2

    def _estimate(self, now: int, sampled: Sampled) -> tuple[float, float]:
        """Waits in all steps, ``now`` in the last one, and the variance of this number.

        Steps that stand for others are wrong of them by as much as steps differ. So a line that waits once in each step
        is known well from few, and one that waits in every tenth is not.
        """
        steps = self.steps + (now > 0)
        weighted, count = self.weighted + now * self.weight, self.count + now
        alone = self.alone + now * (self.weight == ITSELF)
        seen = count - alone
        estimate = sampled.share * (seen + sampled.beside * (weighted - seen)) + alone
        if self.first_step == self.step == sampled.first:
            estimate = float(count)
        if not steps or sampled.spread <= 0:
            return estimate, 0.0
        squares = weighted + self.squares + now * (now - 1) * self.weight
        stood_for = max(sampled.stood_for, 1.0)
        variance = sampled.spread * max(squares / stood_for - (weighted / stood_for) ** 2, 0.0)
        usual = count / steps * (squares / weighted if weighted else 1.0)  # the mean of the squares
        return estimate, variance + UNSEEN * usual * sampled.mean * (sampled.mean - 1)


def _of_parts(counted: float, scale: float, variance: float) -> tuple[float, float]:
    """Waits in what lasted ``scale`` times as long as it was ``counted``, and the variance of this number besides
    ``variance``: what was not seen may be unlike what was."""
    unseen = counted * (scale - 1)
    return counted + unseen, variance + (unseen / 2) ** 2
