"""What counting costs: prices measured on this machine, what was spent, and what may still be."""

from __future__ import annotations

from dataclasses import dataclass

CAP = 0.007
"""The share of the time that counting takes at most, all phases together, without what is rare."""

RARE = 0.001
"""The share of the time that is kept for what is rare, so that nothing else can use it up: evaluations, ends of epochs,
checkpoints, and all before the first phase."""

TAIL, TAIL_NS = 0.002, 1_000_000
"""The share of the time, and what may be spent at once, that hearing of the ends of loops may take, and counting what
follows them: as long as that is not used up, it is spent though all else is, and lacks there later."""

FLOOR = 0.001
"""The share of the time that counting may take where following the phases takes ``CAP`` already: some waits are counted
all the same."""

ADVANCE = 0.01
"""Of the program's time before counting began: what may be spent on what is rare on top, ..."""

MOST_ADVANCE_NS = 50_000_000
"""... but no more than this."""

GRACE_NS = 5_000_000
"""What the begin of the run may cost beyond it."""

CREDIT_NS = 50_000_000
"""What steps may cost beyond twice what was expected of them, however much was saved before."""

COLD = 2.0
"""So many times the price measured in a loop is assumed until waits were seen in the program, whose own work has
meanwhile pushed ours out of the processor's caches: 1 to 8 times were measured beside an H200."""

COLDEST = 20.0
"""So many times its price, as measured in a loop, is believed of what was timed in the program, a wait or the end of a
block. What took longer was disturbed by another thread or process."""

DISTURBED = 5.0
"""And no more than so many times what one costs on average: where programs share the processor, many are disturbed, and
none of that is the price of counting."""

MOST_ONCE_NS = 1_000_000
"""What the first wait of a place, of which more must be kept, is taken to cost at most, for the same reason."""

MEMORY = 0.05
"""Weight of a wait in the average."""

PROBED = 32
"""One in so many calls that pass is followed by one of our own, to be timed, unless they come close together: they may
be as cold as waits, or come one after another, such as a loader's conversions of each sample."""

NEAR_NS, NEAR = 5_000, 1.25
"""A call that passes so soon behind another one costs so many times what it does in a loop of ours. One of our own
between them would be colder than they are: it takes 4 to 6 times as long, ..."""

CLOSE_NS, CLOSE = 20_000, 2.0
"""... and also where something is computed between them, each time."""


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
    """A block of steps closed."""
    settle: float = 150.0
    """The books of it closed, also at each change of phase."""
    seen: float = 0.0
    """The part of ``warning`` that is timed at each one; 0 where it is not."""
    probe: float = 0.0
    """A call of our own that passes, timed in the same way; 0 where it is not."""

    def times(self, factor: float, passing: float | None = None) -> Prices:
        """What they are where our code runs so many times slower, and calls that pass ``passing`` times, with those
        that are made to time them. ``out`` was measured in programs."""
        passing = factor if passing is None else passing
        probed = 1 + (1 / PROBED if self.probe else 0.0)
        return Prices(
            self.warning * factor, self.call * factor, self.passed * passing * probed, self.gate * passing,
            self.switch * factor, self.out, self.step * factor, self.settle * factor, self.seen, self.probe,
        )  # fmt: skip


class Account:
    """Spends and allows. The hot path adds to ``warnings``, ``calls`` and ``passed``, and stops at ``limit``.

    Threads may lose an addition to each other; that is a few microseconds.
    """

    __slots__ = (
        "advance_ns", "calls", "coldness", "copied", "copied_ns", "cost_ns", "followed_ns", "limit", "measured",
        "most_seen_ns", "on", "once", "once_ns", "pass_coldness", "passed", "prices", "probe_at", "rare_ns", "seen_ns",
        "tail_ns", "time_ns", "warnings",
    )  # fmt: skip

    def __init__(self, prices: Prices, before_ns: int = 0) -> None:
        self.set_prices(prices)
        self.advance_ns = min(ADVANCE * before_ns, MOST_ADVANCE_NS)
        self.seen_ns = 0
        """Time taken to count ``warnings``, without those that took more ``once``, ..."""
        self.once = self.once_ns = 0
        """... for a new place, or far from the user's line: so many, and all their time. They tell nothing of what
        further waits cost."""
        self.on = False
        """Waits are being counted. Wrappers look here first."""
        self.warnings = self.calls = self.passed = 0
        """Since the last ``settle``."""
        self.copied = 0
        """Of ``warnings``, those of wrapped copies."""
        self.probe_at = PROBED
        """The number of ``passed`` at which to look at what they cost."""
        self.limit = 0.0
        """The number of them at which to settle."""
        self.cost_ns = 0.0
        self.followed_ns = 0.0
        """The part of it that following the phases took, counted or not."""
        self.rare_ns = 0.0
        """The part of it that was spent on what is rare."""
        self.tail_ns = 0.0
        """The part of it that was spent on what follows loops."""
        self.time_ns = 0

    @property
    def tail_left_ns(self) -> float:
        """What may still be spent on what follows loops."""
        return TAIL_NS + TAIL * self.time_ns - self.tail_ns

    @property
    def rare_left_ns(self) -> float:
        """What may still be spent on what is rare."""
        return max(self.advance_ns + RARE * self.time_ns - self.rare_ns, 0.0)

    def set_prices(self, measured: Prices) -> None:
        """Take the prices that were measured in a loop."""
        self.measured = measured
        self.coldness = COLD if measured.seen else 1.0
        """So many times the prices measured in a loop are paid in the program."""
        self.pass_coldness = 0.0
        """The same of calls that pass; 0 where none was timed: as many as of waits."""
        self._price()

    def _correct_prices(self, warnings: int) -> None:
        seen = self.seen_ns / (warnings * self.measured.seen)
        weight = 1 - (1 - MEMORY) ** warnings
        self.coldness = max(1.0, self.coldness + weight * (seen - self.coldness))
        self._price()

    def _price(self) -> None:
        self.prices = self.measured.times(self.coldness, self.pass_coldness or self.coldness)
        """What counting costs in the midst of the program."""
        self.copied_ns = 2 * self.measured.passed * self.coldness
        """What the wrapper of a copy takes beside its warning: it is as cold as that."""
        self.most_seen_ns = int(min(COLDEST, DISTURBED * self.coldness) * self.measured.seen)
        """What is taken of one wait at most: one that was disturbed tells nothing of the others."""

    def book_once(self, took_ns: int) -> int:
        """The first wait of a place took so long to count, or one far from the user's line. Returns what of it tells of
        further waits: nothing."""
        if self.measured.seen:
            self.once += 1
            self.once_ns += min(took_ns, MOST_ONCE_NS)
        return 0

    def book_close(self, gap_ns: int) -> None:
        """A call passed so soon behind another one, within ``CLOSE_NS``."""
        self.book_probe((NEAR if gap_ns < NEAR_NS else CLOSE) * self.measured.probe)

    def book_probe(self, took_ns: float) -> None:
        """A call of our own that passes took so long in the midst of the program."""
        before = self.pass_coldness or self.coldness
        seen = min(took_ns / self.measured.probe, COLDEST, DISTURBED * before)
        self.pass_coldness = max(1.0, before + MEMORY * (seen - before))
        self._price()

    @property
    def is_over(self) -> bool:
        """Whether more was spent than is allowed, with the calls that passed: few of these look at the ``limit``."""
        return self._spent_ns > self.limit * self.prices.warning

    @property
    def _spent_ns(self) -> float:
        """Since the last ``settle``, without what comes once."""
        prices = self.prices
        spent = self.warnings * prices.warning + self.calls * prices.call + self.passed * prices.passed
        return spent + self.copied * self.copied_ns

    def book_tail(self, cost_ns: float, booked: bool = False) -> None:
        """Hearing of the end of a loop, or counting what follows it, costs so much. ``booked``: also as a cost."""
        self.tail_ns += min(cost_ns, max(self.tail_left_ns, 0.0))
        self.cost_ns += cost_ns * (not booked)

    def book_block(self, took_ns: int) -> float:
        """To close a block of steps, with its books, and choose the next one took so long. Returns what of it is
        believed."""
        believed = min(took_ns, COLDEST * (self.measured.step + self.measured.switch))
        self.cost_ns += believed - self.prices.settle
        return believed

    def book_end(self, took_ns: int) -> None:
        """To hear of the end of a loop, and leave its phase, took so long. To come back to it takes as much again."""
        self.book_tail(2 * self.book_block(took_ns), booked=True)

    def settle(self, elapsed_ns: int, rare: bool = False) -> float:
        """Close the books after ``elapsed_ns`` more, of something ``rare``. Returns what counting cost in it."""
        often = self.warnings - self.once
        if often > 0 and self.measured.seen:
            self._correct_prices(often)
        spent = self._spent_ns + self.once_ns
        self.probe_at -= self.passed
        self.warnings = self.calls = self.passed = self.copied = self.seen_ns = self.once = self.once_ns = 0
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
        followed = max(self.followed_ns - GRACE_NS, 0.0)  # the first events of a loop read its bytecode
        share = max(CAP * self.time_ns - followed, FLOOR * self.time_ns)
        saved = GRACE_NS + share - (self.cost_ns - self.followed_ns - self.rare_ns)
        if rare:  # whatever following the phases and drawn steps took beyond their share
            saved = max(saved, 0.0) + self.rare_left_ns
        return self.limit_to(min(saved, CREDIT_NS + 2 * expected_ns + CAP * block_ns - block_cost_ns))

    def limit_to(self, allowed_ns: float) -> float:
        """Let so much be spent until the next ``settle``, and return it."""
        self.limit = max(allowed_ns, 0.0) / self.prices.warning
        return allowed_ns
