"""From savings to findings: what each saves, or why that is not known, and its severity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec.structs import replace

from syncscope.estimate.fit import Fit
from syncscope.estimate.idle import AT_MOST, BEYOND_ITSELF, WHY_AT_MOST, WHY_NONE
from syncscope.rules import BY_CODE
from syncscope.rules.base.groups import SAVING_NULL_WHY
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.schema.findings import Finding, Severity, Sketch
from syncscope.schema.idle import cap_causes, main_cause
from syncscope.schema.numbers import milliseconds

DRIFT = 0.01
"""Share of the step by which the same program differs from one time it is measured to the next."""

LITTLE = 0.01
"""A finding that saves a smaller share of the step is no error."""

UNLIKE = (
    "less than half of the launches are known to be the same in every step and to be such as a CUDA graph can hold, so "
    "none is tried: it is worth at most what launching takes while the device waits"
)
JOINED = (
    "one graph is worth at most this by its launches and waits: what fusing kernels over the break changes is not in it"
)
CHEAPER = (
    "how much less time its collectives can take is not known: it is worth at most what nothing hides of them, where "
    "none takes longer than the shortest that moves as much, and seldom can all of it go"
)
BOUNDS: dict[object, str] = {Intervention.JOIN_GRAPHS: JOINED, Intervention.OVERLAP_COLLECTIVES: CHEAPER}
"""Why no more than a bound is known, by what was asked; else ``UNLIKE``."""
SUMS_UP = "it sums up what others cause: their savings are its own"
OUTSIDE = "it happens only outside the recorded steps"
IDLE_DEVICE = "it happens only before the device's first work or after its last, so the device waits for nothing there"
NO_STEPS = "the trace has no steps, so what one would be as a single graph is not known"
UNKNOWN = "the recorded steps hold no calls that its fix would change"
RANGE = "no bare step time is known (record it, or give --bare-ms): how far the profiler slows the host is a guess"


class Saving(msgspec.Struct, frozen=True):
    """Milliseconds a step."""

    ms: float | None = None
    """``None`` where only the bounds are known."""
    low: float | None = None
    high: float | None = None
    likely: float | None = None
    """What it is if the profiler slowed the host as it usually does."""
    below_drift: bool = False
    """Whether all doubts but ``DRIFT`` leave it below ``DRIFT`` of the step."""
    likely_high: float | None = None
    """Of several together the most without those of which only a bound is known; ``None`` where that is ``high``."""

    def at_most(self) -> Saving:
        """What is known of a saving of which this is the most there can be."""
        return replace(self, ms=None, low=0.0, likely=None)

    def capped(self, most_ms: float, step_ms: float) -> Saving:
        """The same, with no figure above the most that a step of ``step_ms`` leaves to gain. What is likely is no surer
        for it, so the least falls by as much. A replay that finds more than there is may be off by that, so without a
        timed step what is likely lies as far below the most, but no lower than halfway to the least."""
        ms, high, likely = (
            None if one is None else min(one, round(most_ms, 6)) for one in (self.ms, self.high, self.likely)
        )
        cut = (self.likely or 0.0) - (likely or 0.0)
        low = None if self.low is None else round(min(max(self.low - cut, 0.0), most_ms), 6)
        if ms is None and likely is not None and low is not None:
            likely = round(max(likely - cut, (low + likely) / 2 if cut else 0.0), 6)
        return Saving(ms, low, high, likely, self.below_drift or most_ms < LITTLE * step_ms)


def deny_saving(finding: Finding, why: str | None = None) -> Finding:
    """A finding of which there is nothing to replay. ``why`` is said where nothing of the trace was replayed, and the
    finding's own reason before its rule's."""
    question, known = BY_CODE[finding.rule].question, why
    if isinstance(question, NoQuestion):
        why = finding.saving_null_why if finding.saving_null_why not in (None, SAVING_NULL_WHY) else question.why
    elif finding.sums_up:
        why = SUMS_UP
    elif why is None and (main := main_cause(finding)) is not None:
        why = WHY_NONE.get(main.cause, UNKNOWN)
    elif why is None or not finding.count:
        without_steps = NO_STEPS if question is Intervention.JOIN_GRAPHS else IDLE_DEVICE
        stepless = without_steps if finding.per_step is None else UNKNOWN
        why = stepless if finding.count else OUTSIDE
    causes = tuple(msgspec.structs.replace(cause, saving_null_why=known) for cause in finding.causes)
    return msgspec.structs.replace(finding, causes=causes, saving_null_why=why)


def lower_severity(severity: Severity, saving_ms: float | None, step_ms: float | None) -> Severity:
    """The severity of a finding that likely saves so much of a step: an error that saves little is a warning."""
    little = saving_ms is not None and step_ms is not None and saving_ms < LITTLE * step_ms
    return "warning" if little and severity == "error" else severity


AHEAD = (
    "; the saving is larger than this wait, because a host with less to launch also gets ahead elsewhere in the step"
)
AHEAD_OF_GUESS = (
    "; the saving is larger than this wait, because the replay takes the profiler to add less, and a host with less to "
    "launch also gets ahead elsewhere in the step"
)
BEYOND = 1.1
"""A saving of so many times the device's wait for launches or more is said to be more than that."""


def give_saving(
    finding: Finding,
    saving: Saving,
    after: Sketch,
    at_most: bool,
    fit: Fit,
    step_ms: float,
    shown_ms: float | None = None,
    host_ms: float = 0.0,
) -> Finding:
    """A finding with its saving. One that is ``at_most`` is the most there is; ``after`` is the step with it fixed, and
    ``step_ms`` the length of the step as it is. ``shown_ms`` is what the device waited for the host because of it in
    the trace, ``None`` unknown. ``host_ms`` is how long the host works in a trace without steps: an error saves enough
    of that too."""
    why = RANGE if fit.ranged else None
    if at_most:
        bound = BOUNDS.get(BY_CODE[finding.rule].question, UNLIKE)
        saving, why = saving.at_most(), WHY_AT_MOST if finding.causes else bound
    little = saving.likely is not None and saving.likely < LITTLE * step_ms
    return msgspec.structs.replace(
        finding,
        severity=lower_severity(finding.severity, _sure_ms(saving, fit, shown_ms), max(step_ms, host_ms)),
        saving_ms_per_step=saving.ms,
        saving_low_ms_per_step=saving.low,
        saving_high_ms_per_step=saving.high,
        likely_saving_ms_per_step=saving.likely,
        saving_below_drift=saving.below_drift,
        saving_null_why=why,
        after=None if little else after,
        message=finding.message + _explain_beyond_itself(finding, saving),
    )


HANDED_OVER = (
    "; a loader that pins also takes the batch from its workers in another thread, which saves this one about {} a "
    "step, once for all copies of the batch"
)
PINNING = "pin_memory=True"
PIN_BATCHES = f"Let the loader pin its batches (DataLoader({PINNING})), and pass non_blocking=True."
"""What comes before a fix that speaks of something else."""


def explain_handed_over(finding: Finding, handed_ms: float, step_ms: float) -> Finding:
    """A finding with its saving. Where its fix also takes ``handed_ms`` a step off the host as a batch is handed over,
    and that is more than the host waits here, it says so, and the fix begins with that: else nobody could tell what is
    saved, and how."""
    likely = finding.likely_saving_ms_per_step or 0.0
    if likely < LITTLE * step_ms or handed_ms <= max(finding.stall_ms_per_step or 0.0, LITTLE * step_ms):
        return finding
    return msgspec.structs.replace(
        finding,
        message=finding.message + HANDED_OVER.format(milliseconds(min(handed_ms, likely))),
        fix=finding.fix if PINNING in finding.fix else f"{PIN_BATCHES} {finding.fix}",
    )


def _explain_beyond_itself(finding: Finding, saving: Saving) -> str:
    """Why less to launch saves clearly more than the time that the device waits for launches; empty where it does
    not."""
    idle_ms = None if finding.causes else finding.idle_ms_per_step
    if idle_ms is None or saving.likely is None or saving.likely <= BEYOND * idle_ms:
        return ""
    return AHEAD_OF_GUESS if saving.ms is None else AHEAD


def _sure_ms(saving: Saving, fit: Fit, shown_ms: float | None) -> float | None:
    """The saving that makes a finding an error. The trace must show it where it may be nothing, or where it is a guess
    how far the profiler slows the host."""
    unsure = saving.low is not None and saving.low <= 0
    if saving.likely is None or not (unsure or fit.ranged):
        return saving.likely
    if shown_ms is None:
        return 0.0 if unsure else saving.likely
    return min(saving.likely, shown_ms)


def give_causes(
    finding: Finding, savings: Iterator[Saving | None], fit: Fit, step_ms: float, left_ms: float
) -> Finding:
    """A finding whose causes have their savings, the next of ``savings``; ``None`` for one that cannot be tried. No
    cause saves more than it explains, but for those ``BEYOND_ITSELF``, which save no more than all idle time, nor more
    than ``left_ms`` of the step, for which the device does not compute, nor than the finding, where its saving is
    known."""
    causes = []
    for cause, saving in zip(finding.causes, islice(savings, len(finding.causes)), strict=True):
        at_most = saving is not None and cause.cause in AT_MOST
        why = WHY_AT_MOST if at_most else RANGE if fit.ranged else None
        most_ms = finding.idle_ms_per_step if cause.cause in BEYOND_ITSELF else cause.ms_per_step
        known = saving.capped(left_ms if most_ms is None else min(most_ms, left_ms), step_ms) if saving else Saving()
        known = known.at_most() if at_most else known
        causes.append(
            msgspec.structs.replace(
                cause,
                saving_ms_per_step=known.ms,
                saving_low_ms_per_step=known.low,
                saving_high_ms_per_step=known.high,
                likely_saving_ms_per_step=known.likely,
                saving_null_why=why if saving else WHY_NONE.get(cause.cause, UNKNOWN),
            )
        )
    return cap_causes(msgspec.structs.replace(finding, causes=tuple(causes))) if causes else finding
