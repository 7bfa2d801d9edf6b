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

import numpy as np

from benchmarks.savings.catalogue import Pair, pairs
from benchmarks.savings.patched import PATCHED
from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.estimate.edits import NOTHING
from syncscope.estimate.graph_questions import GRAPHS
from syncscope.estimate.power import Work
from syncscope.estimate.prepare import Prepared
from syncscope.schema.report import Asked
from syncscope.timeline import Timeline
from syncscope.trace import load

RECORDINGS = Path(__file__).parent / "recordings"
MODES = {"windows": "trace", "full": "full"}
"""Mode of recording → stem of its files."""

VERSIONS = "before", "after"

SETS: dict[str, Callable[[Pair], bool]] = {
    "In view": lambda pair: pair.ranks == 1 and not pair.held_out and not pair.fresh,
    "Held out": lambda pair: pair.held_out,
    "Two ranks": lambda pair: pair.ranks > 1,
    "New": lambda pair: pair.fresh and not pair.newest and not pair.compiled,
    "Newest": lambda pair: pair.newest and not pair.contact,
    "Met": lambda pair: pair.contact == 1,
    "Met second": lambda pair: pair.contact == 2,
    "Met third": lambda pair: pair.contact == 3,
    "Met fourth": lambda pair: pair.contact == 4,
    "Met fifth": lambda pair: pair.contact == 5,
    "Met sixth": lambda pair: pair.contact == 6,
    "Met seventh": lambda pair: pair.contact == 7,
    "Met eighth": lambda pair: pair.contact == 8,
    "Met ninth": lambda pair: pair.contact == 9,
    "Compiled": lambda pair: pair.compiled and not pair.contact,
}
"""What is scored together: pairs whose recordings were in view while the replay was made, pairs that were recorded and
predicted before anything was changed because of them, those of two ranks, in view too, those written after the model
of the power limit and of loaders was set, in view since they were scored, those written after the constants of
2026-11-22 were set, and those that were met since, at nine times, each before it came into view. Those before
whose fix changes what ``torch.compile`` makes of the program are scored by themselves."""

GRAPH = "CUDA graph"
"""The question of pairs that the report may answer without a finding."""
DRAWS = 2000
DRIFTED = 0.03
"""Share by which the bare step of a recording may differ from the timed one, before that is said."""
NEAR_STEP, NEAR_SAVING = 0.01, 0.25
"""A prediction is near within this share of the step, or of the saving. A pair whose measured interval is wider than
that to both sides is shown but not scored: its measurement could not tell."""
NARROW = 0.02
"""Width of the measured interval, as a share of the step, up to which a pair counts where distances are shares of the
step."""
UNLIKE = 0.25
"""Share by which they may differ before the two are not the same program any more, and the pair is not scored."""
DISTURBED = (
    "graph_gradients.small", "graph_gradients.medium", "graph_mixer.deep", "loader_item.paced", "loader_item.fed",
    "tf32_checks.few",
)  # fmt: skip
"""Fresh pairs beside whose timing the process before was still at work on the GPU: blocks of the same version took up
to 2.2 times as long, for seconds. One that had made no optimizer went on for ten seconds after its recording.
``record`` now waits for the end of each."""
GREAT = 0.04
"""Savings above this share of the step are scored by themselves, too."""
LARGE = 0.05
"""A saving above this share of the step must not be promised more than twice over."""


@dataclass(frozen=True)
class Measured:
    """A saving measured by interleaved blocks: the median of their paired differences and its 95 % interval.

    Of 185 lists of blocks, halves of the same list agree best by this median: on a shared machine to 1.6 % of the step,
    and the same with ratios in place of differences. Trimmed means, ratios of medians or of quartiles, and leaving out
    what was slow on both sides do as well or worse (1.5 to 2.2 %), and worse where they are far apart.
    """

    step: float
    """Median step before the fix."""
    saving: float
    low: float
    high: float
    timed: float | None = None
    """The step as it was timed, where this one is scaled."""

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float]) -> Measured:
        saved = [slow - fast for slow, fast in zip(before, after, strict=True)]
        draw = random.Random(0)
        medians = sorted(statistics.median(draw.choices(saved, k=len(saved))) for _ in range(DRAWS))
        low, high = medians[round(DRAWS * 0.025)], medians[round(DRAWS * 0.975) - 1]
        return cls(statistics.median(before), statistics.median(saved), low, high)

    @property
    def width(self) -> float:
        """Of the interval, as a share of the step."""
        return (self.high - self.low) / self.step

    @property
    def allowed(self) -> float:
        """How far from the saving a prediction is near."""
        return max(NEAR_STEP * self.step, NEAR_SAVING * self.saving)

    @property
    def scored(self) -> bool:
        return self.high - self.low <= 2 * self.allowed

    def scaled(self, factor: float) -> Measured:
        """The same saving of a step that is longer by a factor."""
        step, saving, low, high = (factor * value for value in (self.step, self.saving, self.low, self.high))
        return Measured(step, saving, low, high, timed=self.step)

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
    bare: float | None = None
    """The recording's own step with no profiler, which the replay starts from."""
    capped: bool = False
    """The GPU is at its power limit, as the recording shows or its kernels say."""


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
    def drift(self) -> float:
        """By what share the recording's own bare step is longer than the one that was timed."""
        bare = self.predicted.bare
        return bare / (self.measured.timed or self.measured.step) - 1 if bare else 0.0

    @property
    def unscored(self) -> str:
        """Why it is not scored, whatever was predicted; empty where it is."""
        if self.pair.name in DISTURBED:
            return "timed beside another program"
        if abs(self.drift) > UNLIKE:
            return "timed and recorded steps differ"
        return "" if self.measured.scored else "the interval is too wide"

    @property
    def narrow(self) -> bool:
        """Whether it is measured well enough for its distance to be a share of the step."""
        return not self.unscored and self.measured.width <= NARROW

    @property
    def near(self) -> bool:
        """Whether the prediction lies within 1 % of the step or a quarter of the saving of the measured one."""
        saving, measured = self.predicted.saving, self.measured
        return saving is not None and abs(saving - measured.saving) <= measured.allowed

    @property
    def possible(self) -> bool:
        """Whether the prediction lies so near to the measured interval: nothing measured speaks against it."""
        saving, measured = self.predicted.saving, self.measured
        return saving is not None and measured.off(saving) <= measured.allowed

    @property
    def inside(self) -> bool:
        """Whether the measured saving lies in the predicted range. A fix that makes a step longer saves nothing."""
        low, high = self.predicted.low, self.predicted.high
        return low is not None and high is not None and low <= max(self.measured.saving, 0.0) <= high

    @property
    def overpromised(self) -> bool:
        """More than twice a large saving."""
        measured, saving = self.measured, self.predicted.saving
        return saving is not None and measured.saving > LARGE * measured.step and saving > 2 * measured.saving


def predict(pair: Pair, *files: Path, bare_ms: float | None = None) -> Predicted:
    """What the replay of the version before the fix, one trace a rank, says that the fix is worth to the first rank:
    the findings that it answers, fixed together. ``bare_ms`` is the step that it is told, as a user can."""
    timelines = [Timeline(load(file)) for file in files]
    every = [rules.find(one)[0] for one in timelines]
    hits = [[hit for hit in found if pair.answers(hit.finding)] for found in every]
    question = pair.asked or (GRAPHS if pair.question == GRAPH and not any(hits) else "")
    hits = every if question else hits
    prepared = [prepare(one, found, bare_ms) for one, found in zip(timelines, hits, strict=True)]
    told = estimate_savings(prepared[0], [peer for one in prepared if (peer := one.peer)])
    saving, low, high = told.together.ms, told.together.low, told.together.high
    if question:
        asked = told.replay.asked if told.replay else ()
        saving, low, high = next((_figures(one) for one in asked if one.question == question), (None, None, None))
    info = timelines[0].info()
    overlap = info.overlap
    whys = [finding.saving_null_why for finding in told.findings if finding.saving_null_why]
    stalls = [finding.stall_ms_per_step for finding in told.findings if finding.stall_ms_per_step is not None]
    return Predicted(
        rules=tuple(sorted({finding.rule for finding in told.findings})),
        saving=saving,
        low=low,
        high=high,
        why="" if saving is not None else "not asked" if pair.asked else next(iter(whys), "no finding"),
        blocked=sum(stalls) if stalls else None,
        idle=overlap.idle_ms if overlap else None,
        busy=overlap.device_busy_ms if overlap else None,
        bare=info.steps.bare_ms,
        capped=_at_limit(prepared[0], info.steps.bare_ms),
    )


def _at_limit(prepared: Prepared, bare_ms: float | None) -> bool:
    if prepared.program is None or not bare_ms:
        return prepared.condition.at_limit
    work = Work.of(prepared.program, [NOTHING])
    return prepared.condition.of(float(work.drawn(np.array([[bare_ms * 1e6]]))[0, 0])).at_limit


def _figures(asked: Asked) -> tuple[float | None, float | None, float | None]:
    return asked.saving_ms_per_step, asked.saving_low_ms_per_step, asked.saving_high_ms_per_step


def traces(pair: Pair, mode: str, recordings: Path = RECORDINGS) -> list[Path]:
    """The files of a recording, one a rank, whether they are there or not."""
    folder, stem = recordings / pair.name, MODES[mode]
    if pair.ranks == 1:
        return [folder / f"{stem}.json.gz"]
    return [folder / stem / f"rank{rank}.json.gz" for rank in range(pair.ranks)]


def rows(
    recordings: Path = RECORDINGS, wanted: Callable[[Pair], bool] = lambda pair: True, *, told: bool = False
) -> list[Row]:
    """A row for each recording that is there, by pair and mode, of the ``wanted`` pairs.

    Where the replay is ``told`` how long the step was that was timed, what is left of a distance is the replay's own: a
    host that ran at another speed while it was recorded has no part in it.
    """
    found = []
    for pair in filter(wanted, [*pairs(), *(one.pair for one in PATCHED)]):
        for mode, stem in MODES.items():
            files = traces(pair, mode, recordings)
            if all(file.exists() for file in files):
                timings = json.loads((recordings / pair.name / f"{stem}.timings.json").read_text())
                measured = Measured.of(*([pair.backwards * ms for ms in timings[f"{name}_ms"]] for name in VERSIONS))
                predicted = predict(pair, *files, bare_ms=measured.step if told else None)
                if predicted.bare and not told:  # compared as shares of the step: the host is now faster and now slower
                    measured = measured.scaled(predicted.bare / measured.step)
                found.append(Row(pair, mode, measured, predicted))
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
    """How the narrow rows of a kind of fix do. A row without an answer holds nothing."""
    scored = [row for row in every if row.pair.kind == kind and row.narrow]
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


@dataclass(frozen=True)
class Summary:
    """How some rows do, whatever their kind of fix; shares of the rows, and of the step."""

    rows: int
    near: float
    inside: float
    answered: float
    every: int
    """Rows with any interval, also those that are not scored."""
    possible: float
    """Of them those near to the interval."""
    met: float
    """Of them those whose range meets the interval."""
    worst: float
    """Distance of a prediction from the measured saving."""
    width: float
    """Median width of a range."""


def summarise(every: Sequence[Row]) -> Summary:
    """Rows whose interval is narrow enough, by their median, and all of them by their interval."""
    scored = [row for row in every if not row.unscored]
    off = [
        abs(row.predicted.saving - row.measured.saving) / row.measured.step
        for row in scored
        if row.predicted.saving is not None
    ]
    widths = [row.width for row in scored if row.width is not None]

    def share(flags: Sequence[bool]) -> float:
        return sum(flags) / len(flags) if flags else math.nan

    return Summary(
        rows=len(scored),
        near=share([row.near for row in scored]),
        inside=share([row.inside for row in scored]),
        answered=share([row.predicted.saving is not None for row in scored]),
        every=len(every),
        possible=share([row.possible for row in every]),
        met=share([row.held for row in every]),
        worst=_or_nan(max, off),
        width=_or_nan(statistics.median, widths),
    )


def _naive(scored: Sequence[Row], answer: Callable[[Row], float | None]) -> tuple[float, float]:
    answers = [(row, answer(row)) for row in scored]
    off = [row.measured.off(saving) / row.measured.step for row, saving in answers if saving is not None]
    return _or_nan(statistics.median, off), _or_nan(max, off)


def _or_nan(reduce: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    return reduce(values) if values else math.nan
