"""Limits a step, and whether a report keeps to them.

The budget of waits is a count, the same on every machine. Those in time are judged over the recorded steps: a trace's
figure is the median of its steps, and the budget is exceeded only when the lower quartile is over it too, so that
about three steps of four are. Fewer than ``FEWEST_STEPS`` steps show no spread and cannot be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import quantiles

import msgspec

from syncscope.compare.tally import most_per_step, say_count
from syncscope.policy.settings import Budgets
from syncscope.schema.findings import Finding
from syncscope.schema.report import EachStep, Report, TraceInfo
from syncscope.schema.verdict import Budget

COUNTED = "max_unexpected_syncs_per_step"
FEWEST_STEPS = 3

NO_RUNTIME = "the trace holds no runtime calls"
NO_DEVICE = "the trace holds no device activity"
NO_STEPS = "the trace has no steps"


def judge(report: Report, budgets: Budgets, unexpected: Sequence[Finding]) -> tuple[Budget, ...]:
    """Every budget that is set, on every trace. ``unexpected`` are the findings that a gate without one fails on."""
    found = []
    for index, info in enumerate(report.traces):
        judged = []
        if budgets.max_unexpected_syncs_per_step is not None:
            waits = [finding for finding in unexpected if finding.trace == index and is_wait(finding)]
            judged.append(_count(budgets.max_unexpected_syncs_per_step, waits, info))
        for timed in TIMED:
            allowed: float | None = getattr(budgets, timed.name)
            if allowed is not None:
                judged.append(timed.judge(allowed, info.each_step))
        found += [msgspec.structs.replace(budget, trace=index, rank=info.rank) for budget in judged]
    return tuple(found)


def is_wait(finding: Finding) -> bool:
    """Whether the finding counts against the budget of waits."""
    from syncscope.rules import BY_CODE  # loads pandas

    rule = BY_CODE.get(finding.rule)
    return rule is not None and rule.counts_as_wait


def _count(allowed: float, waits: Sequence[Finding], info: TraceInfo) -> Budget:
    found = most_per_step(waits)
    if "runtime" not in info.has or found is None:
        return _not_judged(COUNTED, allowed, NO_STEPS if "runtime" in info.has else NO_RUNTIME)
    return Budget(
        name=COUNTED,
        allowed=allowed,
        found=found,
        outcome="exceeded" if found > allowed else "kept",
        message=f"{say_count(found)} unexpected wait{'' if found == 1 else 's'} a step, {say_count(allowed)} allowed",
    )


def _not_judged(name: str, allowed: float, why: str) -> Budget:
    return Budget(name=name, allowed=allowed, found=None, outcome="not judged", message=why)


@dataclass(frozen=True)
class Timed:
    """A budget in time."""

    name: str
    figures: Callable[[EachStep], Sequence[float] | None]
    """The figure of each step, ``None`` where the trace cannot tell."""
    blind: str
    """Why it cannot."""
    what: str
    say: Callable[[float], str]

    def judge(self, allowed: float, each: EachStep | None) -> Budget:
        figures = self.figures(each) if each else None
        if figures is None:
            return _not_judged(self.name, allowed, self.blind if each else NO_STEPS)
        if len(figures) < FEWEST_STEPS:
            return _not_judged(self.name, allowed, f"a spread takes {FEWEST_STEPS} steps, there are {len(figures)}")
        low, median, high = quantiles(figures, n=4, method="inclusive")
        spread = f"the middle half of {len(figures)} steps: {self.say(low)} to {self.say(high)}"
        within = ", within the spread" if low <= allowed < median else ""
        return Budget(
            name=self.name,
            allowed=allowed,
            found=median,
            low=low,
            high=high,
            outcome="exceeded" if low > allowed else "kept",
            message=f"{self.what.format(self.say(median))} ({spread}), {self.say(allowed)} allowed{within}",
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
