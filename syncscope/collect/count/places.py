"""What is counted at one place of one phase, in constant memory."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from syncscope.collect.count.sampled import EVERY_STEP, ITSELF, Sampled
from syncscope.collect.count.visits import Visited, WaitsInVisits
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


REACH = 1.9
"""Standard deviations to either side of an estimate, a little less than those of its interval: what may be, but is not
likely, is inside of that."""

NEW = 3
"""What waits in so many last steps only, of those by which a phase was counted so far, is what begins: it stands for no
steps before it. A training begins after a thousand calls of a policy that acts at random, say."""

ENOUGH = 32
"""Counted steps without what waits beside another phase, from which on it is known to come seldom in other steps, if at
all. With fewer it may be in some of those that were left out."""

MOST_LONG = 3.0
"""A step that lasts much longer than others stands for no more than so many times as many steps as those do."""


class _Told(NamedTuple):
    """What a place tells: waits in counted steps, how many of these had one, and those in all steps."""

    waits: int
    steps: int
    estimate: float
    variance: float
    blocked_ns: int


class Place:
    """The waits at one place. Counting touches ``now`` only; a step is added up when the next one begins."""

    __slots__ = (
        "alone", "before", "before_variance", "blocked_ns", "bytes", "compiling", "count", "cut", "cut_steps",
        "expected", "first_step", "last_cut", "lasting", "lasting_steps", "long", "long_count", "long_steps",
        "may_wait", "name", "non_blocking", "now", "pageable", "squares", "stack", "step", "steps", "thread",
        "to_device", "unseen", "visits", "weight", "weighted",
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
        self.before, self.before_variance = 0, 0.0
        """Waits before its steps were known, as those that were counted tell, and the variance of this number."""
        self.cut = self.cut_steps = 0
        """Waits in steps that were counted in part. They are not in ``count``."""
        self.last_cut = 0
        """Of them, those in ``step``."""
        self.lasting = self.lasting_steps = 0
        """Waits in steps that last, of which the parts told what was counted. They are not in ``count`` either."""
        self.unseen = 0.0
        """Waits in what was missed of long steps that were counted in part, if it was like the rest of them."""
        self.visits: WaitsInVisits | None = None
        """Those in visits that are over, where its phase has no steps. ``weighted`` tells them by the time of each."""
        self.long: dict[int, float] = {}
        """Waits in drawn steps that lasted much longer than others, beyond those that a step usually has, by how much
        longer that was, ..."""
        self.long_count = self.long_steps = 0
        """... and as many as were counted, in so many steps. They are not in ``count`` either."""
        self.bytes = self.blocked_ns = 0
        self.pageable = self.non_blocking = self.may_wait = False
        self.compiling = False
        """The compiler waits here, which is not repeated: what was counted is all that is told."""
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

    def begin_in(self, step: int) -> None:
        """What was counted so far turns out to be part of ``step``, the first one."""
        self.first_step, self.step, self.weight = step, step, 1.0

    def end_step(self) -> None:
        """The step is over, though it is not told yet. What follows stands for itself."""
        self.begin_step(self.step, ITSELF)
        self.now = 0

    def cut_step(self) -> None:
        """The step under way is counted in part."""
        self.cut, self.cut_steps = self.cut + self.now, self.cut_steps + 1
        self.last_cut, self.now = self.now, 0

    def mend_step(self) -> None:
        """The step was counted whole after all, or nearly so."""
        self.cut, self.cut_steps = self.cut - self.last_cut, self.cut_steps - (self.last_cut > 0)
        self.now, self.last_cut = self.now + self.last_cut, 0

    def begin_lasting(self) -> None:
        """The step under way turns out to last. What was counted of it so far is part of it."""
        self.mend_step()
        self.weight = ITSELF

    def end_lasting(self) -> None:
        """The step that lasts is over. As many waits as a step usually has are its own, and no more than they are."""
        more = self._end_unusual(self.usual_of_lasting)
        self.lasting, self.lasting_steps = self.lasting + more, self.lasting_steps + (more > 0)

    def set_apart(self, where: int, counted_steps: int) -> None:
        """What was counted of the step under way came before something that is seldom done in the midst of a step.
        As many waits as steps have on average, by ``counted_steps``, are its own; others come with what follows, and
        are told by how often that was, for which ``where`` stands."""
        more = self.now - min(self.now, round(self.count / max(counted_steps, 1)))
        if more:
            self.long[where] = self.long.get(where, 0.0) + more
            self.long_count, self.long_steps, self.now = self.long_count + more, self.long_steps + 1, self.now - more

    def end_long(self, where: int, counted_steps: int, scale: float) -> None:
        """The step is over, and lasted much longer than others: that much longer which ``where`` stands for, and
        ``scale`` times as long as it was counted. As many waits as steps have on average, by ``counted_steps``, are its
        own."""
        if more := self._end_unusual(min(self.now, round(self.count / max(counted_steps, 1)))):
            self.long[where] = self.long.get(where, 0.0) + more * scale
            self.unseen += more * (scale - 1)
            self.long_count, self.long_steps = self.long_count + more, self.long_steps + 1

    def _end_unusual(self, usual: int) -> int:
        """Add up the ``usual`` ones of a step's waits, which is over. Returns the others."""
        self.count, self.steps, self.alone = self.count + usual, self.steps + (usual > 0), self.alone + usual
        more, self.now = self.now - usual, 0
        return more

    @property
    def usual_of_lasting(self) -> int:
        """Waits in the step under way, which lasts, as far as other steps with waits have as many."""
        return min(self.now, math.ceil(self.count / self.steps)) if self.steps else 0

    def add_event(self, step: int | None) -> None:
        """A window saw a wait in ``step``; ``None``: of a phase without steps, whose visit that was may be over."""
        if step is None:
            self.count += 1
        elif self.step == step:
            self.now += 1
        else:
            self.begin_step(step)

    def end_visit(self, visited: Visited) -> None:
        """A visit to its phase, which has no steps, is over."""
        if now := self.now:
            by_time = self._of_visit(visited.scale)
            self.visits = self.visits or WaitsInVisits()
            self.visits.end(visited, now, by_time)
            self.weighted += by_time
            self.count, self.steps, self.now = self.count + now, self.steps + 1, 0

    def _of_visit(self, scale: float) -> float:
        """Waits in a visit that lasted ``scale`` times as long as it was counted. As many as a visit usually has are
        its own: what comes once in each, or once at all, is no rate."""
        usual = max(self.weighted / self.steps, 1.0) if self.steps else 1.0
        if self.now >= usual:
            return usual + (self.now - usual) * scale
        return min(self.now * scale, usual)

    def begin_again(self, sampled: Sampled = EVERY_STEP) -> None:
        """Its steps were others so far, of which those that were counted tell what ``sampled`` says."""
        told, variance = self.count + self.now, 0.0
        if not self.compiling and self.first_step + NEW < (sampled.all_steps or 0):
            estimate, variance = self._estimate(self.now, sampled)
            told = max(round(estimate), told)
        self.before += told + self.cut + self.lasting + self.long_count
        self.before_variance += variance
        self.long, self.long_count, self.long_steps = {}, 0, 0
        self.cut = self.cut_steps = self.last_cut = self.lasting = self.lasting_steps = 0
        self.count = self.steps = self.now = self.first_step = self.step = self.alone = 0
        self.weighted = self.squares = self.unseen = 0.0
        self.visits = None
        self.bytes = self.blocked_ns = 0

    def add(self, other: Place) -> None:
        """Add the waits of ``other``, which were in other steps."""
        now = other.now
        self.count += other.count + now
        self.steps += other.steps + (now > 0)
        self.weighted += other.weighted + now * other.weight
        self.squares += other.squares + now * (now - 1) * other.weight
        self.unseen += other.unseen
        if other.visits is not None:
            self.visits = self.visits or WaitsInVisits()
            self.visits.add(other.visits)
        self.alone += other.alone + now * (other.weight == ITSELF)
        self.before, self.before_variance = self.before + other.before, self.before_variance + other.before_variance
        self.cut += other.cut
        self.cut_steps += other.cut_steps
        self.lasting += other.lasting
        self.lasting_steps += other.lasting_steps
        for where, more in other.long.items():
            self.long[where] = self.long.get(where, 0.0) + more
        self.long_count += other.long_count
        self.long_steps += other.long_steps
        self.bytes += other.bytes
        self.blocked_ns += other.blocked_ns
        self.pageable |= other.pageable
        self.non_blocking |= other.non_blocking
        self.may_wait |= other.may_wait
        self.compiling |= other.compiling
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
        told = self._once(self._told(sampled)) if self.compiling else self._told(sampled)
        if not told.waits + self.before or (self.compiling and self.may_wait):
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
            compiling=self.compiling,
            thread=self.thread,
            expected=self.expected,
            direction=direction,
            pageable=self.pageable,
            non_blocking=self.non_blocking,
            bytes=self.bytes if direction else None,
            count=told.waits,
            steps=min(told.steps, most_steps),
            estimate=told.estimate,
            variance=told.variance + self.before_variance,
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
        if sampled.visited is None:
            estimate, variance = self._estimate(now, sampled)
        else:
            estimate, variance = self._of_visits(now, sampled.visited)
            steps = max(steps, min(count, 1))
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
        if self.long:
            of_long, variance = self._of_long(sampled, variance)
            count, steps, estimate = count + self.long_count, steps + self.long_steps, estimate + of_long
        if sampled.of_seen > 1:
            estimate, variance = _of_parts(estimate, sampled.of_seen, variance * sampled.of_seen**2)
        if not count:
            return _Told(self.cut, self.cut_steps, estimate, variance, self.blocked_ns)
        return _Told(count, steps, estimate, variance, self.blocked_ns * count // (count + self.cut))

    def _once(self, told: _Told) -> _Told:
        """Waits that come once, in whatever steps they were seen."""
        seen = self.count + self.now + self.cut + self.lasting + self.long_count
        return _Told(seen, max(told.steps, min(seen, 1)), float(seen), 0.0, self.blocked_ns)

    def _of_visits(self, now: int, visited: Visited) -> tuple[float, float]:
        """Waits in all visits, ``now`` in the one that is under way, and the variance of this number."""
        under_way = self._of_visit(visited.scale) if now else 0.0
        in_windows, told, variance = self.count, 0.0, 0.0
        if self.visits is not None:
            in_windows -= self.visits.counted
            told, variance = self.visits.told(visited)
        return told + in_windows + under_way, variance + ((under_way - now) / 2) ** 2

    def _of_long(self, sampled: Sampled, variance: float) -> tuple[float, float]:
        """Waits in all steps that lasted much longer, and their variance besides ``variance``."""
        estimate, variance = 0.0, variance + (self.unseen / 2) ** 2
        for where, more in tuple(self.long.items()):
            scale, limit = sampled.of_long(where), MOST_LONG * max(sampled.mean, 1.0)
            estimate += more * min(scale.likely, limit)
            variance += (more * (min(scale.most, limit) - 1) / REACH) ** 2
        if sampled.tried - self.long_steps < ENOUGH and any(where < 0 for where in self.long):
            each = (self.long_count / self.long_steps) ** 2
            variance += UNSEEN * each * sampled.mean * (sampled.mean - 1)
        return estimate, variance

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
