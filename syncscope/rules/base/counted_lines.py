"""The lines that were counted over the whole run, and how often each of them waits."""

from __future__ import annotations

import math
import sys
from functools import cached_property

import msgspec
from msgspec.structs import replace

from syncscope.rules.base.groups import to_ms
from syncscope.schema.counting import RecordedPhase
from syncscope.timeline import Place, Timeline
from syncscope.timeline.collective_waits import strip_collective
from syncscope.timeline.prints import FORMATTER, strip_formatter
from syncscope.timeline.run import PlacedWait, counted_turns, turns

NORMAL = sys.maxsize
"""Degrees of freedom of a deviation that was told otherwise than by steps that differ."""


class Frequency(msgspec.Struct, frozen=True):
    """Occurrences a step."""

    mean: float
    deviation: float
    """Standard deviation of ``mean``, 0 where every step was counted."""
    freedom: int
    """Degrees of freedom of ``deviation``."""

    @property
    def bounds(self) -> tuple[float, float] | tuple[None, None]:
        """The 95 % interval, ``None`` where it cannot be told."""
        if self.freedom < 1:
            return None, None
        half = quantile(self.freedom) * self.deviation if self.deviation else 0.0
        return max(0.0, self.mean - half), self.mean + half

    def times(self, share: float) -> Frequency:
        return replace(self, mean=self.mean * share, deviation=self.deviation * share)


def quantile(freedom: int) -> float:
    """The number of standard deviations that hold 95 % of Student's t distribution, from its Cornish-Fisher
    expansion: within 1 % from three degrees of freedom on."""
    z = 1.959964
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


class CountedLine(msgspec.Struct, frozen=True, dict=True):
    """The counted waits of a phase at one place."""

    phase: RecordedPhase
    place: Place
    waits: tuple[PlacedWait, ...]

    @cached_property
    def certain(self) -> tuple[PlacedWait, ...]:
        """Those that surely waited."""
        return tuple(one for one in self.waits if not one.wait.may_wait)

    @property
    def known(self) -> tuple[PlacedWait, ...]:
        return self.certain or self.waits

    @property
    def run_steps(self) -> tuple[int, int] | None:
        if not self.phase.steps:
            return None
        return min(one.wait.first_step for one in self.known), max(one.wait.last_step for one in self.known)

    @property
    def steps_with(self) -> int | None:
        """In how many counted steps it waits, at most: those of two stacks may be the same."""
        if self.run_steps is None or not self.phase.counted_steps:
            return None
        first, last = self.run_steps
        return min(self.phase.counted_steps, last - first + 1, sum(one.wait.steps for one in self.known))

    @property
    def only_first_step(self) -> bool:
        """Whether it waits in the phase's first step alone, to warm up, though there were more."""
        return self.run_steps == (0, 0) and self.phase.steps > 1

    @property
    def only_prepares(self) -> bool:
        """Whether PyTorch waits there on its own account, to compile or to capture."""
        return bool(self.certain) and all(one.prepares for one in self.certain)

    @property
    def is_copy(self) -> bool:
        """Whether it copies: the call of a copy was timed, in which the host also converts and lays out what it
        copies."""
        return any(one.wait.direction is not None for one in self.certain)

    @property
    def blocked_ms_per_step(self) -> float | None:
        """``None`` where not every wait was timed."""
        blocked = [one.wait.blocked_ns for one in self.certain if one.wait.blocked_ns is not None]
        turned = counted_turns(self.phase)
        return to_ms(sum(blocked), turned) if blocked and len(blocked) == len(self.certain) and turned else None

    def frequency(self, several: bool) -> Frequency | None:
        """Occurrences a step; ``None`` where no step of the phase was counted, and no part of one tells of them.

        With ``several``, each occurrence waits several times. Then those of the stack that waits least often are
        counted, among the stacks that wait in the most steps.
        """
        counted, every = counted_turns(self.phase), turns(self.phase)
        waits = [one.wait for one in self.known]
        if not counted and not any(wait.estimate for wait in waits):
            return None
        if several:
            waits = [min(waits, key=lambda wait: (-wait.steps, wait.count))]
        if counted >= every and (self.phase.steps or self.phase.one_in <= 1):
            return Frequency(sum(wait.count for wait in waits) / counted, 0.0, counted)
        if all(wait.estimate is not None for wait in waits):
            # Nothing is known of how the stacks go together, so at worst all of them vary alike.
            spread = sum(math.sqrt(wait.variance) for wait in waits)
            freedom = counted - 1 if self.phase.steps and counted else NORMAL
            return Frequency(sum(wait.estimate or 0.0 for wait in waits) / every, spread / every, freedom)
        if not counted:
            return None
        return Frequency(sum(wait.count for wait in waits) / counted, 0.0, 0)

    @property
    def before(self) -> int:
        """Occurrences before it was known what the steps of the phase are."""
        return sum(one.wait.before for one in self.known)


def find_lines(timeline: Timeline) -> list[CountedLine]:
    """The lines that were counted in the phases that a trace speaks for, in the order that they were first seen. Lines
    that wait only to compile or to capture are not among them where the recording heard what was compiled."""
    run = timeline.trace.recording.run if timeline.trace.recording else None
    heard = run is not None and run.compiled is not None
    groups: dict[object, list[PlacedWait]] = {}
    for one in timeline.counted:
        place = _seen_from_outside(one.place)
        groups.setdefault((one.phase.name, _key(place)), []).append(one)
    lines = []
    for group in groups.values():
        own = [one for one in group if not one.prepares]
        if own or not heard:
            own = own or group
            lines.append(CountedLine(own[0].phase, _seen_from_outside(own[0].place), tuple(own)))
    return lines


def _seen_from_outside(place: Place) -> Place:
    """The place of a print or a collective as a whole."""
    if place.runs_through(FORMATTER):
        return replace(strip_formatter(place), entry="print")
    return strip_collective(place)


def _key(place: Place) -> tuple[object, ...]:
    return place.site, place.ordinal, place.at, place.expected
