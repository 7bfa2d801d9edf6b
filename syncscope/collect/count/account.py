"""What counting costs: prices measured on this machine, what was spent, and what may still be."""

from __future__ import annotations

from dataclasses import dataclass

CAP = 0.007
"""The share of the time that counting takes at most, all phases together, without what is rare."""

RARE = 0.001
"""The share of the time that is kept for what is rare, so that nothing else can use it up: evaluations, ends of epochs,
checkpoints, and all before the first phase."""

ADVANCE = 0.01
"""Of the program's time before counting began: what may be spent on what is rare on top, ..."""

MOST_ADVANCE_NS = 50_000_000
"""... but no more than this."""

GRACE_NS = 5_000_000
"""What the begin of the run may cost beyond it."""

CREDIT_NS = 50_000_000
"""What steps may cost beyond twice what was expected of them, however much was saved before."""


@dataclass(slots=True)
class Prices:
    """In ns. Before they are measured: what they were on a server of 2023."""

    warning: float = 3_500.0
    """One warning of PyTorch's, counted."""
    call: float = 1_500.0
    """One wrapped call, counted."""
    passed: float = 350.0
    """One wrapped call in which there was nothing to count."""
    gate: float = 150.0
    """One wrapped call in a step that is not counted."""
    switch: float = 3_000.0
    """Counting switched off and on again."""
    out: float = 300_000.0
    """Wrappers taken out and put in again. Python learns anew where the attributes of tensors are, which cannot be
    measured without the program: 60 µs in a step of 0.3 ms, 430 µs in one of 6 ms with forty layers."""
    step: float = 500.0
    """A block of steps closed, or a change of phase."""
    boundary: float = 120.0
    """A step inside a block, counted or not. Not measured."""


class Account:
    """Spends and allows. The hot path adds to ``warnings``, ``calls`` and ``passed``, and stops at ``limit``.

    Threads may lose an addition to each other; that is a few microseconds.
    """

    __slots__ = ("advance_ns", "calls", "cost_ns", "limit", "on", "passed", "prices", "rare_ns", "time_ns", "warnings")

    def __init__(self, prices: Prices, before_ns: int = 0) -> None:
        self.prices = prices
        self.advance_ns = min(ADVANCE * before_ns, MOST_ADVANCE_NS)
        self.on = False
        """Waits are being counted. Wrappers look here first."""
        self.warnings = self.calls = self.passed = 0
        """Since the last ``settle``."""
        self.limit = 0.0
        """The number of them at which to settle."""
        self.cost_ns = 0.0
        self.rare_ns = 0.0
        """The part of it that was spent on what is rare."""
        self.time_ns = 0

    @property
    def rare_left_ns(self) -> float:
        """What may still be spent on what is rare."""
        return max(self.advance_ns + RARE * self.time_ns - self.rare_ns, 0.0)

    def settle(self, elapsed_ns: int, rare: bool = False) -> float:
        """Close the books after ``elapsed_ns`` more, of something ``rare``. Returns what counting cost in it."""
        prices = self.prices
        spent = self.warnings * prices.warning + self.calls * prices.call + self.passed * prices.passed
        self.warnings = self.calls = self.passed = 0
        self.cost_ns += spent
        self.time_ns += elapsed_ns
        if rare:
            self.rare_ns += min(spent, self.rare_left_ns)
        return spent

    def allow(self, expected_ns: float, block_ns: int = 0, block_cost_ns: float = 0.0, rare: bool = False) -> float:
        """Set the ``limit`` and return what may be spent now, in ns. Negative: too much was spent.

        The steps that are being counted took ``block_ns`` so far, of which counting cost ``block_cost_ns``; it was
        expected to cost ``expected_ns`` in all of them.
        """
        saved = GRACE_NS + CAP * self.time_ns - (self.cost_ns - self.rare_ns)
        if rare:
            saved += self.rare_left_ns
        allowed = min(saved, CREDIT_NS + 2 * expected_ns + CAP * block_ns - block_cost_ns)
        self.limit = max(allowed, 0.0) / self.prices.warning
        return allowed
