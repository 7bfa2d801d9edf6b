"""Check whether a report keeps its budgets, which are limits a step.

The budget of waits is a count, which is the same on every machine. A budget in time is checked over the recorded steps.
The figure of a trace is the median of its steps. The budget is exceeded only when the lower quartile is over it too,
that is, when about three of four steps are. With fewer than ``FEWEST_STEPS`` steps it cannot be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import quantiles

import msgspec

from syncscope.compare.fingerprints import format_count, most_frequent
from syncscope.policy.settings import Budgets
from syncscope.schema.findings import Finding
from syncscope.schema.report import EachStep, Report, TraceInfo
from syncscope.schema.verdict import Budget

COUNTED = "max_unexpected_syncs_per_step"
FEWEST_STEPS = 3

NO_RUNTIME = "the trace holds no runtime calls"
NO_DEVICE = "the trace holds no device activity"
NO_STEPS = "the trace has no steps"


def check_budgets(report: Report, budgets: Budgets, unexpected: Sequence[Finding]) -> tuple[Budget, ...]:
    """Check every budget that is set, on every trace. ``unexpected`` are the findings that fail without budgets."""
    every = []
    for index, info in enumerate(report.traces):
        checked = []
        if budgets.max_unexpected_syncs_per_step is not None:
            waits = [finding for finding in unexpected if finding.trace == index and is_wait(finding)]
            checked.append(_check_count(budgets.max_unexpected_syncs_per_step, waits, info))
        for timed in TIMED:
            allowed: float | None = getattr(budgets, timed.name)
            if allowed is not None:
                checked.append(timed.check(allowed, info.each_step))
        every += [msgspec.structs.replace(budget, trace=index, rank=info.rank) for budget in checked]
    return tuple(every)


def is_wait(finding: Finding) -> bool:
    """Whether the finding counts against the budget of waits."""
    from syncscope.rules import BY_CODE  # loads pandas

    rule = BY_CODE.get(finding.rule)
    return rule is not None and rule.counts_as_wait


def _check_count(allowed: float, waits: Sequence[Finding], info: TraceInfo) -> Budget:
    frequency, seen = most_frequent(waits), "runtime" in info.has or info.only_counted
    if frequency is None or not seen:
        return _unchecked(COUNTED, allowed, NO_STEPS if seen else NO_RUNTIME)
    count = frequency.per_step
    noun = "wait" if count == 1 else "waits"
    return Budget(
        name=COUNTED,
        allowed=allowed,
        found=count,
        outcome="exceeded" if frequency.low > allowed else "kept",
        message=f"{format_count(count)} unexpected {noun} a step, {format_count(allowed)} allowed",
    )


def _unchecked(name: str, allowed: float, why: str) -> Budget:
    return Budget(name=name, allowed=allowed, found=None, outcome="not checked", message=why)


@dataclass(frozen=True)
class Timed:
    """A budget in time."""

    name: str
    figures: Callable[[EachStep], Sequence[float] | None]
    """The figure of each step, ``None`` where the trace lacks the rows for it."""
    missing: str
    """Why there is no figure then."""
    sentence: str
    """With ``{}`` for the figure."""
    write: Callable[[float], str]

    def check(self, allowed: float, each: EachStep | None) -> Budget:
        figures = self.figures(each) if each else None
        if figures is None:
            return _unchecked(self.name, allowed, self.missing if each else NO_STEPS)
        if len(figures) < FEWEST_STEPS:
            return _unchecked(self.name, allowed, f"needs at least {FEWEST_STEPS} steps, and there are {len(figures)}")
        low, median, high = quantiles(figures, n=4, method="inclusive")
        spread = f"the middle half of {len(figures)} steps: {self.write(low)} to {self.write(high)}"
        within = ", within the spread" if low <= allowed < median else ""
        return Budget(
            name=self.name,
            allowed=allowed,
            found=median,
            low=low,
            high=high,
            outcome="exceeded" if low > allowed else "kept",
            message=f"{self.sentence.format(self.write(median))} ({spread}), {self.write(allowed)} allowed{within}",
        )


def _shares(each: EachStep) -> Sequence[float] | None:
    if each.blocked_ms is None:
        return None
    return [part / whole for part, whole in zip(each.blocked_ms, each.length_ms, strict=True) if whole]


def _ms(figure: float) -> str:
    return f"{figure:.3g} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


TIMED = (
    Timed("max_exposed_copy_ms", lambda each: each.copy_exposed_ms, NO_DEVICE, "copies are exposed for {} a step", _ms),
    Timed("max_stall_share", _shares, NO_RUNTIME, "the host is blocked for {} of a step", _percent),
)
