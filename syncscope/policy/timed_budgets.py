"""The budgets in time: which figure of each step they limit, and how a median is held against a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from math import isclose, isfinite
from statistics import quantiles
from typing import TypeAlias

import msgspec

from syncscope.schema.report import EachStep, Report
from syncscope.schema.verdict import Budget

FEWEST_STEPS = 3

NO_DEVICE = "the trace holds no device activity"
NO_STEPS = "the trace has no steps"
NO_CALLS = "the trace holds no runtime calls"
NO_GROUPS = "the trace does not say of which process group its collectives are (syncscope profile --mode full does)"
ALONE = "the trace of one rank alone does not say who comes last to a collective"
APART = "the collectives of the ranks could not be compared"

Figures: TypeAlias = "Sequence[float] | str"
"""The figure of each step, or why there is none."""


def unchecked(name: str, allowed: float, why: str) -> Budget:
    """A budget that could not be checked."""
    return Budget(name=name, allowed=allowed, found=None, outcome="not checked", message=why)


class Timed(msgspec.Struct, frozen=True):
    """A budget in time."""

    name: str
    figures: Callable[[Report, int, str | None], Figures]
    """Of a report, the index of a trace, and the glob of a process group or ``None``."""
    sentence: str
    """With ``{}`` for the figure."""
    write: Callable[[float], str]
    of_run: bool = False
    """It is about all ranks together, and is checked once."""

    def check(self, allowed: float, report: Report, trace: int, group: str | None = None) -> Budget:
        """Hold the steps of a trace against ``allowed``."""
        figures = self.figures(report, trace, group)
        if isinstance(figures, str):
            return unchecked(self.name, allowed, figures)
        if len(figures) < FEWEST_STEPS:
            why = f"needs at least {FEWEST_STEPS} steps, and there are {len(figures)}"
            return unchecked(self.name, allowed, why)
        if not all(map(isfinite, figures)):
            return unchecked(self.name, allowed, "the figures of some steps are no numbers")
        low, median, high = quantiles(figures, n=4, method="inclusive")
        spread = f"the middle half of {len(figures)} steps: {self.write(low)} to {self.write(high)}"
        within = ", within the spread" if low <= allowed < median else ""
        return Budget(
            name=self.name,
            allowed=allowed,
            found=median,
            low=low,
            high=high,
            outcome="exceeded" if low > allowed and not isclose(low, allowed) else "kept",
            message=f"{self.sentence.format(self.write(median))} ({spread}), {self.write(allowed)} allowed{within}",
        )


def _of_steps(
    pick: Callable[[EachStep], Sequence[float] | None], missing: str
) -> Callable[[Report, int, str | None], Figures]:
    """The figures that a trace has of its own steps."""

    def figures(report: Report, trace: int, group: str | None) -> Figures:
        each = report.traces[trace].each_step
        if each is None:
            return NO_STEPS
        found = pick(each)
        return missing if found is None else found

    return figures


def _stall_shares(each: EachStep) -> Sequence[float] | None:
    return _shares(each.blocked_ms, each.length_ms)


def _idle_shares(each: EachStep) -> Sequence[float] | None:
    return _shares(each.idle_ms, each.device_ms)


def _shares(parts: Sequence[float] | None, wholes: Sequence[float] | None) -> Sequence[float] | None:
    if parts is None or wholes is None:
        return None
    return [part / whole for part, whole in zip(parts, wholes, strict=True) if whole]


def _exposed_comm(report: Report, trace: int, group: str | None) -> Figures:
    each = report.traces[trace].each_step
    if each is None or each.comm_exposed_ms is None:
        return NO_STEPS if each is None else NO_DEVICE
    if group is None:
        return each.comm_exposed_ms
    if each.comm_exposed_by_group_ms is None:
        return NO_GROUPS
    of_groups = [figures for name, figures in each.comm_exposed_by_group_ms.items() if fnmatchcase(name, group)]
    if not of_groups:
        return f"no collective is of the process group {group}"
    return [sum(step) for step in zip(*of_groups, strict=True)]


def _straggling(report: Report, trace: int, group: str | None) -> Figures:
    """How long ranks wait in each step for whichever comes last. In a program of one rank none does."""
    info = report.traces[trace]
    if info.world_size == 1:
        return NO_STEPS if info.each_step is None else [0.0] * len(info.each_step.length_ms)
    if len(report.traces) == 1:
        return ALONE
    ranks = report.between_ranks.ranks if report.between_ranks else ()
    held = [rank.holds_each_step_ms for rank in ranks if rank.holds_each_step_ms is not None]
    if trace not in (rank.trace for rank in ranks) or len(held) < len(ranks):
        return APART
    return [sum(step) for step in zip(*held, strict=True)]


def holds_most(report: Report, traces: Sequence[int]) -> int:
    """Of these traces the one whose rank the others wait for longest, the first where none was compared."""
    ranks = report.between_ranks.ranks if report.between_ranks else ()
    holds = {rank.trace: rank.holds_ms_per_step for rank in ranks}
    return max(traces, key=lambda trace: holds.get(trace, 0.0))


def _ms(figure: float) -> str:
    return f"{figure:.3g} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


TIMED = (
    Timed("max_exposed_comm_ms", _exposed_comm, "collectives are exposed for {} a step", _ms),
    Timed(
        "max_exposed_copy_ms",
        _of_steps(lambda each: each.copy_exposed_ms, NO_DEVICE),
        "copies are exposed for {} a step",
        _ms,
    ),
    Timed("max_idle_share", _of_steps(_idle_shares, NO_DEVICE), "the device is idle for {} of a step", _percent),
    Timed("max_stall_share", _of_steps(_stall_shares, NO_CALLS), "the host is blocked for {} of a step", _percent),
    Timed("max_straggling_ms", _straggling, "ranks wait {} a step for the one that comes last", _ms, of_run=True),
)
