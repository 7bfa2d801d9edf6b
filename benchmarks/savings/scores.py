"""What was measured, what was predicted, and how far apart they are.

Times are milliseconds a step; a saving is step time given back.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import syncscope
from benchmarks.savings.catalogue import Pair, pairs

RECORDINGS = Path(__file__).parent / "recordings"
MODES = {"windows": "trace", "full": "full"}
"""Mode of recording → stem of its files."""

DRAWS = 2000
WIDEST = 0.02
"""Width of the measured interval, as a share of the step, above which a pair is shown but not scored."""
LARGE = 0.05
"""A saving above this share of the step must not be promised more than twice over."""


@dataclass(frozen=True)
class Measured:
    """A saving measured by interleaved blocks: the median of their paired differences and its 95 % interval."""

    step: float
    """Median step before the fix."""
    saving: float
    low: float
    high: float

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float]) -> Measured:
        saved = [slow - fast for slow, fast in zip(before, after, strict=True)]
        draw = random.Random(0)
        medians = sorted(statistics.median(draw.choices(saved, k=len(saved))) for _ in range(DRAWS))
        low, high = medians[round(DRAWS * 0.025)], medians[round(DRAWS * 0.975) - 1]
        return cls(statistics.median(before), statistics.median(saved), low, high)

    @property
    def scored(self) -> bool:
        return self.high - self.low <= WIDEST * self.step

    def off(self, saving: float) -> float:
        """Distance of a predicted saving from the interval; 0 inside."""
        return max(self.low - saving, saving - self.high, 0.0)


@dataclass(frozen=True)
class Predicted:
    """The replay's answer for the findings that a fix answers, and two naive ones. ``None``: no answer."""

    rules: tuple[str, ...]
    saving: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    """Why there is no answer."""
    blocked: float | None = None
    """Time that the host is blocked in those findings."""
    idle: float | None = None
    """Time that the device is idle."""
    busy: float | None = None
    """Time that the device is busy."""


@dataclass(frozen=True)
class Row:
    pair: Pair
    mode: str
    measured: Measured
    predicted: Predicted

    @property
    def regime(self) -> str:
        """What bounds the step, by the share of it that the device is busy."""
        share = (self.predicted.busy or 0.0) / self.measured.step
        return "host" if share < 0.5 else "device" if share > 0.9 else "balanced"

    @property
    def off(self) -> float | None:
        """How far the prediction is from the measured interval, as a share of the step."""
        saving = self.predicted.saving
        return None if saving is None else self.measured.off(saving) / self.measured.step

    @property
    def held(self) -> bool:
        """Whether the predicted range and the measured interval meet."""
        low, high = self.predicted.low, self.predicted.high
        return low is not None and high is not None and low <= self.measured.high and high >= self.measured.low

    @property
    def width(self) -> float | None:
        """Width of the predicted range as a share of the step."""
        low, high = self.predicted.low, self.predicted.high
        return None if low is None or high is None else (high - low) / self.measured.step

    @property
    def overpromised(self) -> bool:
        """More than twice a large saving."""
        measured, saving = self.measured, self.predicted.saving
        return saving is not None and measured.saving > LARGE * measured.step and saving > 2 * measured.saving


def predict(pair: Pair, trace: Path) -> Predicted:
    """What the report on the version before the fix says that the fix is worth."""
    report = syncscope.analyze(trace)
    answered = pair.answered(report.findings)
    rules = tuple(sorted({finding.rule for finding in answered}))
    overlap = report.traces[0].overlap
    stalls = [finding.stall_ms_per_step for finding in answered if finding.stall_ms_per_step is not None]
    naive = Predicted(
        rules,
        why="" if answered else "no finding",
        blocked=sum(stalls) if stalls else None,
        idle=overlap.idle_ms if overlap else None,
        busy=overlap.device_busy_ms if overlap else None,
    )
    if len(answered) == 1:
        return _with(naive, answered[0], "saving")
    together = syncscope.analyze(trace, select=rules) if answered else report
    if len(together.findings) != len(answered):
        return naive
    return _with(naive, together, "saving_all")


def _with(naive: Predicted, answer: object, name: str) -> Predicted:
    """The naive answers and those fields of a finding or of a report that begin with ``name``."""
    saving, low, high = (getattr(answer, f"{name}{part}_ms_per_step", None) for part in ("", "_low", "_high"))
    why = getattr(answer, "saving_null_why", None) or ("" if saving is not None else "no saving")
    return Predicted(naive.rules, saving, low, high, why, naive.blocked, naive.idle, naive.busy)


def rows(recordings: Path = RECORDINGS) -> list[Row]:
    """A row for each recording that is there, by pair and mode."""
    found = []
    for pair in pairs():
        for mode, stem in MODES.items():
            trace = recordings / pair.name / f"{stem}.json.gz"
            if trace.exists():
                timings = json.loads((trace.parent / f"{stem}.timings.json").read_text())
                measured = Measured.of(timings["before_ms"], timings["after_ms"])
                found.append(Row(pair, mode, measured, predict(pair, trace)))
    return found


@dataclass(frozen=True)
class Score:
    """Of the rows of one kind of fix. Shares are of the step; NaN without rows."""

    rows: int
    """Scored and answered."""
    unanswered: int
    median: float
    """Of the distance from the measured interval."""
    worst: float
    overpromised: int
    held: float
    """Share of all scored rows whose predicted range meets the measured interval."""
    widest: float
    """Predicted range."""
    blocked: tuple[float, float]
    """Median and worst distance of the blocked time taken as the saving."""
    idle: tuple[float, float]
    """The same of the device's idle time."""


def score(every: Sequence[Row], kind: str) -> Score:
    """How the rows of a kind of fix do. A row without an answer holds nothing."""
    scored = [row for row in every if row.pair.kind == kind and row.measured.scored]
    off = [row.off for row in scored if row.off is not None]
    widths = [row.width for row in scored if row.width is not None]
    return Score(
        rows=len(off),
        unanswered=len(scored) - len(off),
        median=_or_nan(statistics.median, off),
        worst=_or_nan(max, off),
        overpromised=sum(row.overpromised for row in scored),
        held=sum(row.held for row in scored) / len(scored) if scored else math.nan,
        widest=_or_nan(max, widths),
        blocked=_naive(scored, lambda row: row.predicted.blocked),
        idle=_naive(scored, lambda row: row.predicted.idle),
    )


def _naive(scored: Sequence[Row], answer: Callable[[Row], float | None]) -> tuple[float, float]:
    answers = [(row, answer(row)) for row in scored]
    off = [row.measured.off(saving) / row.measured.step for row, saving in answers if saving is not None]
    return _or_nan(statistics.median, off), _or_nan(max, off)


def _or_nan(reduce: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    return reduce(values) if values else math.nan
