"""The verdict of a gate on a report."""

from typing import Literal

import msgspec

from syncscope.schema.findings import Finding
from syncscope.schema.ranks import Unread
from syncscope.schema.report import NotChecked, Stale

BudgetOutcome = Literal["kept", "exceeded", "not checked"]
RatchetOutcome = Literal["written", "held", "tightened", "not written"]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one budget on one trace."""

    name: str
    """As in the configuration: ``max_unexpected_syncs_per_step``, ``max_exposed_copy_ms``, ``max_stall_share``."""
    phase: str | None = None
    """The phase that it is about alone, as in the configuration."""
    group: str | None = None
    """The process group that it is about alone, as in the configuration."""
    allowed: float
    found: float | None
    """In the budget's unit: the count a step, or the median of the steps; ``None`` when it could not be checked."""
    low: float | None = None
    high: float | None = None
    """Lower and upper quartile of the steps; ``None`` for a count."""
    outcome: BudgetOutcome
    message: str
    """One sentence: the figure and what is allowed, or why the budget could not be checked."""
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None

    @property
    def title(self) -> str:
        """The name, and what it is about alone: ``max_exposed_comm_ms of group tp in train``."""
        group = f" of group {self.group}" if self.group is not None else ""
        return f"{self.name}{group}" + (f" in {self.phase}" if self.phase is not None else "")


class Ratchet(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the baseline."""

    path: str
    outcome: RatchetOutcome
    covered: int
    """Number of findings that it covers."""
    fixed: int
    """Number of its entries that occur less often now, or not at all."""
    differs: tuple[str, ...] = ()
    """How the recordings show less than those that it was written from, or something else: one phrase each. Nothing is
    taken out of it then."""
    removed: tuple[str, ...] = ()
    """What was taken out or lowered when it was tightened, one phrase each."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a report against a gate. It fails on anything unexpected, stale, exceeded or unchecked."""

    gate: tuple[str, ...]
    """Codes of the gated rules."""
    unexpected: tuple[Finding, ...] = ()
    """Findings of gated rules inside the steps. ``Finding.exceeds`` says how one exceeds an expectation or baseline."""
    within_budget: tuple[Finding, ...] = ()
    """Unexpected waits that ``max_unexpected_syncs_per_step`` lets pass."""
    stale: tuple[Stale, ...] = ()
    budgets: tuple[Budget, ...] = ()
    """Every budget that is set, on every trace, kept or not."""
    not_checked: tuple[NotChecked, ...] = ()
    """Gated rules that could not be checked."""
    unread: tuple[Unread, ...] = ()
    allow_partial: bool = False
    """Whether traces that could not be read are no reason to fail."""
    baseline: Ratchet | None = None
    """``None`` where none was given."""

    @property
    def exceeded(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "exceeded")

    @property
    def unchecked_budgets(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "not checked")

    @property
    def failed(self) -> bool:
        """Unexpected findings, stale expectations or budgets exceeded."""
        return bool(self.unexpected or self.stale or self.exceeded)

    @property
    def blind(self) -> bool:
        """A trace could not be read, or a gated rule or budget could not be checked."""
        unread = self.unread and not self.allow_partial
        return bool(unread or self.not_checked or self.unchecked_budgets)

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """0 clean; 1 ``failed``; 3 ``blind``."""
        if self.failed:
            return 1
        return 3 if self.blind else 0
