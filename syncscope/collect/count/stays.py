"""How many steps a stay in a phase has until another one follows, so that its last one is known before it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FEWEST = 4
"""Steps of a stay whose last one is foreseen."""

SLACK = 8
"""Stays of so many steps more or less are alike where they are long: a network is called once more at the end of one,
or the first steps of something else in between were taken for the phase's."""

LONG = 16 * SLACK
"""Steps of a stay that is long."""


@dataclass(slots=True)
class _Leaving:
    """How the program leaves a phase for a certain other one."""

    steps: int
    """Those of the phase when it last did, ..."""
    now_ns: int = 0
    """... and when that was."""
    length: int = 0
    """Steps since the time before."""
    foreseen_ns: int = 0
    """When a last step was last foreseen."""
    last_at: int | None = None
    """The number of steps at which the last one before it leaves again is likely to begin, ..."""
    span: int = 1
    """... or one of so many. ``None`` where it is not to be counted by itself."""


class Stays:
    """Steps of a phase from leaving it for another one to leaving it for that one again.

    The last of them is unlike the others. What the program does before the next phase begins is part of it: it computes
    advantages after a rollout, or reads the losses of an update. Where steps are drawn it would hardly ever be counted,
    or stand for many. It is foreseen where there were as many steps twice in a row, or nearly. What else follows now
    and then changes nothing: after an evaluation a rollout goes on where it was.
    """

    def __init__(self) -> None:
        self._since = 0
        self._leavings: dict[int, _Leaving] = {}
        self._begun: tuple[int, int] | None = None
        """Steps before the stay that began last, where steps are told when they begin, and when that was."""
        self.for_one = False
        """The stay before it had one step: all steps are followed by what follows the loop, and those drawn tell it."""

    def begin(self, steps: int, now_ns: int) -> tuple[int, int] | None:
        """A stay begins with the step that begins now. The phase had ``steps`` before. Returns how many the stay before
        it had, and how long ago that began; ``None`` where it is the first one."""
        before, self._begun = self._begun, (steps, now_ns)
        if before is None:
            self.for_one = False
            return None
        self.for_one = steps - before[0] <= 1
        return steps - before[0], now_ns - before[1]

    def leave(
        self, steps: int, follower: int, now_ns: int, affords: Callable[[int, int], bool], in_some: bool = False
    ) -> None:
        """The program leaves the phase, which had so many steps, for the one with the number ``follower``. ``affords``
        is asked whether so many steps may be counted every so many ns. ``in_some``: the last steps of some stays tell
        those of all, so that they may be counted in as many as can be afforded."""
        leaving = self._leavings.setdefault(follower, _Leaving(self._since, foreseen_ns=now_ns))
        length = steps - leaving.steps
        if length <= 0:  # it only looked in
            return
        shorter, differs = min(length, leaving.length), abs(length - leaving.length)
        alike = shorter >= FEWEST if not differs else differs <= SLACK and shorter >= LONG
        since_ns = leaving.foreseen_ns if in_some else leaving.now_ns
        foreseen = alike and affords(differs + 1, now_ns - since_ns)
        if foreseen or not alike:
            leaving.foreseen_ns = now_ns
        leaving.last_at, leaving.span = steps + shorter if foreseen else None, differs + 1
        leaving.steps, leaving.now_ns, leaving.length = steps, now_ns, length

    def begin_again(self, steps: int) -> None:
        """The phase has so many steps from now on, because something else counts as one."""
        self._since = steps
        self._leavings.clear()
        self._begun, self.for_one = None, False

    def until_last(self, steps: int) -> int | None:
        """Steps until the next one begins that is likely to be the last of a stay; ``None`` where none is foreseen. The
        phase has ``steps``."""
        until: int | None = None
        for leaving in self._leavings.values():  # at each step that is heard: no generator
            last_at = leaving.last_at
            if last_at is not None and last_at >= steps and (until is None or last_at - steps < until):
                until = last_at - steps
        return until

    def span(self, steps: int) -> int:
        """Of how many steps from the one that begins now the last one of a stay is likely to be one. The phase has
        ``steps``."""
        return max((leaving.span for leaving in self._leavings.values() if leaving.last_at == steps), default=0)
