"""The verdict of a gate: what stands against a report."""

from __future__ import annotations

from typing import Literal

import msgspec

from syncscope.schema.findings import Finding
from syncscope.schema.ranks import Unread
from syncscope.schema.report import NotChecked, Stale

BudgetOutcome = Literal["kept", "exceeded", "not judged"]
RatchetOutcome = Literal["written", "held", "tightened", "not written"]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one budget on one trace."""

    name: str
    """As in the configuration: ``max_unexpected_syncs_per_step``, ``max_exposed_copy_ms``, ``max_stall_share``."""
    allowed: float
    found: float | None
    """In the budget's unit: the count a step, or the median of the steps; ``None`` when it could not be judged."""
    low: float | None = None
    high: float | None = None
    """Lower and upper quartile of the steps; ``None`` for a count."""
    outcome: BudgetOutcome
    message: str
    """One sentence: what was found and what is allowed, or why it could not be judged."""
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None


class Ratchet(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the baseline."""

    path: str
    outcome: RatchetOutcome
    covered: int
    """Findings that it covers."""
    fixed: int
    """Its entries that occur less often now, or not at all."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What stands against a report that is held to a gate. Nothing unexpected, stale, exceeded or unseen passes."""

    gate: tuple[str, ...]
    """Codes of the rules it was held to."""
    unexpected: tuple[Finding, ...] = ()
    """Findings of gated rules inside the steps. ``Finding.exceeds`` says where an expectation or baseline is not
    enough."""
    within_budget: tuple[Finding, ...] = ()
    """Unexpected waits that ``max_unexpected_syncs_per_step`` lets pass."""
    stale: tuple[Stale, ...] = ()
    budgets: tuple[Budget, ...] = ()
    """Every budget that is set, on every trace, whatever became of it."""
    not_checked: tuple[NotChecked, ...] = ()
    """Gated rules that could not be checked."""
    unread: tuple[Unread, ...] = ()
    baseline: Ratchet | None = None
    """``None`` where none was given."""

    @property
    def exceeded(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "exceeded")

    @property
    def not_judged(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "not judged")

    @property
    def failed(self) -> bool:
        """Unexpected findings, stale expectations or budgets exceeded."""
        return bool(self.unexpected or self.stale or self.exceeded)

    @property
    def blind(self) -> bool:
        """A trace could not be read, a gated rule not be checked or a budget not be judged."""
        return bool(self.unread or self.not_checked or self.not_judged)

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """0 clean; 1 ``failed``; 3 ``blind``."""
        if self.failed:
            return 1
        return 3 if self.blind else 0
