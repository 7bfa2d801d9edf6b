"""The second phase of an estimate: replay the program without what each finding is about.

It needs no trace, only what the first phase kept (``prepare.Prepared``), so it can be repeated when the other ranks are
known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec
import numpy as np

from syncscope.estimate.edits import Question, combine
from syncscope.estimate.fit import MISFIT, Fit, fit, steady_steps
from syncscope.estimate.idle import AT_MOST, WHY_AT_MOST, WHY_NONE
from syncscope.estimate.peers import Peer, with_peers, without_late_peers
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.program import Program
from syncscope.estimate.replay import HOST, Interval, Replayed, replay
from syncscope.rules import BY_CODE
from syncscope.rules.base.idle_causes import own_cause
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.schema.findings import Finding, Sketch, SketchLane
from syncscope.schema.report import Replay
from syncscope.timeline.intervals import Floats

LITTLE = 0.01
"""A finding that saves a smaller share of the step is no error."""

BINS = 60
"""Bins of the step before; the step after has bins of the same length, fewer of them."""

MOST_STREAMS = 3
"""Streams drawn, the busiest."""

DRIFT = 0.01
"""Share of the step by which the same program differs from one time it is measured to the next."""

UNLIKE = (
    "no stretch of the launches is known to be the same in every step, so no CUDA graph can be tried: it is worth at "
    "most what launching takes while the device waits"
)
SUMS_UP = "it sums up what others cause: their savings are its own"
OUTSIDE = "it happens only outside the recorded steps"
UNKNOWN = "the recorded steps hold no calls that its fix would change"
RANGE = "no bare step time is known (record it, or give --bare-ms): how far the profiler slows the host is a guess"


OF_WAITS = frozenset(
    {
        Intervention.REMOVE_WAIT, Intervention.REMOVE_READ, Intervention.REMOVE_ALLOCATION,
        Intervention.COPY_ASYNCHRONOUSLY, Intervention.PREFETCH, Intervention.KEEP_ON_DEVICE,
        Intervention.OVERLAP_COLLECTIVES,
    }
)  # fmt: skip
"""Changes that save at most the time for which the host is blocked and the device exposed."""


@dataclass(frozen=True)
class Saving:
    """Milliseconds a step."""

    ms: float | None = None
    """``None`` where only the bounds are known."""
    low: float | None = None
    high: float | None = None
    likely: float | None = None
    """What it is if the profiler slowed the host as it usually does."""
    below_drift: bool = False
    """Whether all doubts but ``DRIFT`` leave it below ``DRIFT`` of the step."""

    @property
    def at_most(self) -> Saving:
        """What is known of a saving of which this is the most there can be."""
        likely = None if self.likely is None else round(self.likely / 2, 6)
        return replace(self, ms=None, low=0.0, likely=likely)


@dataclass(frozen=True)
class Estimate:
    """What a trace's findings would save."""

    findings: tuple[Finding, ...]
    together: Saving
    """The saving of all findings fixed together."""
    replay: Replay | None
    """``None`` where there are no findings, so nothing was replayed."""


def estimate_savings(prepared: Prepared, peers: Sequence[Peer] = ()) -> Estimate:
    """The findings of a trace, each with what its fix would save, and what all fixes together would save.

    ``peers`` are the ranks of its run, itself among them or not; none where they make no difference. A saving that
    cannot be estimated is ``None``, and the finding says why.
    """
    if prepared.program is None or prepared.replay is None:
        return _without_savings(prepared, prepared.replay)
    together = [peer for peer in peers if peer.phase == prepared.phase] if prepared.rank is not None else []
    others = [peer for peer in together if peer.rank != prepared.rank]
    program, known = with_peers(prepared.program, prepared.collectives, others)
    program, fitted = _fit(prepared, program, known)
    misfit = round(fitted.misfit, 6)
    if fitted.why:
        return _without_savings(prepared, Replay(misfit=misfit, null_why=fitted.why))
    pairs = list(zip(prepared.findings, prepared.questions, strict=True))
    tried = [(finding, question) for finding, question in pairs if question]
    on_one_rank = [known and not all(finding.fingerprint in other.findings for other in others) for finding, _ in tried]
    savings = replay_savings(program, [question for _, question in tried], fitted, on_one_rank, prepared.causes)
    before, *after = draw_steps(savings.replayed, program.streams)
    answers = iter(zip(savings.each, after, strict=False))
    causes = iter(savings.causes)
    findings = tuple(
        with_causes(
            _with_saving(finding, *next(answers), at_most, fitted, savings)
            if question
            else _without(finding, _why_untried(finding)),
            causes,
            fitted.ranged,
        )
        for (finding, question), at_most in zip(pairs, prepared.at_most, strict=True)
    )
    scale = None if fitted.ranged else fitted.scenarios[0].host
    replayed = msgspec.structs.replace(prepared.replay, misfit=misfit, host_scale=scale, before=before)
    return Estimate(findings, savings.all if tried else Saving(), replayed)


def _fit(prepared: Prepared, program: Program, known: bool) -> tuple[Program, Fit]:
    """The program as it runs without a profiler, and how it fits. If it does not fit, and the other ranks' traces show
    how long this one waited for them, it is fitted again without those waits: their profilers may have caused them."""
    fitted = fit(program, prepared.bare_ns, prepared.bare_ms)
    if fitted.scenarios or not known or abs(fitted.misfit) > MISFIT:
        return program, fitted
    prompt = without_late_peers(program)
    again = fit(program, prepared.bare_ns, prepared.bare_ms, prompt)
    return (prompt, again) if again.scenarios else (program, fitted)


def _why_untried(finding: Finding) -> str:
    """Why there is nothing to replay."""
    question = BY_CODE[finding.rule].question
    if isinstance(question, NoQuestion):
        return question.why
    if finding.sums_up:
        return SUMS_UP
    return UNKNOWN if finding.count else OUTSIDE


def _without_savings(prepared: Prepared, replay: Replay | None) -> Estimate:
    """The findings with the bounds that hold without a replay: what they block or leave idle is the most there is."""
    why = replay.null_why if replay else None
    return Estimate(tuple(_bounded(finding, why) for finding in prepared.findings), Saving(), replay)


def _bounded(finding: Finding, why: str | None) -> Finding:
    """A finding whose saving was not replayed."""
    causes = tuple(
        msgspec.structs.replace(
            cause, saving_low_ms_per_step=0.0, saving_high_ms_per_step=cause.ms_per_step, saving_null_why=why
        )
        if cause.cause not in WHY_NONE
        else msgspec.structs.replace(cause, saving_null_why=WHY_NONE[cause.cause])
        for cause in finding.causes
    )
    finding = msgspec.structs.replace(finding, causes=causes)
    if finding.sums_up:
        return _without(finding, SUMS_UP)
    question = BY_CODE[finding.rule].question
    if isinstance(question, NoQuestion):
        return _without(finding, question.why)
    most = _most(finding)
    if most is None or why is None:
        return _without(finding, why if finding.count or why is None else OUTSIDE)
    return msgspec.structs.replace(
        finding, saving_low_ms_per_step=0.0, saving_high_ms_per_step=round(most, 6), saving_null_why=why
    )


def _most(finding: Finding) -> float | None:
    """Milliseconds a step that fixing a finding saves at most: for what it blocks or exposes, or leaves idle; ``None``
    where more can be saved than that, or it is unknown."""
    if (own := own_cause(finding)) is not None:
        return own.ms_per_step
    if finding.idle_ms_per_step is not None:
        return finding.idle_ms_per_step
    known = [ms for ms in (finding.stall_ms_per_step, finding.exposed_ms_per_step) if ms is not None]
    return sum(known) if known and BY_CODE[finding.rule].question in OF_WAITS else None


def _without(finding: Finding, why: str | None) -> Finding:
    return msgspec.structs.replace(finding, saving_null_why=why)


def _with_saving(
    finding: Finding, saving: Saving, after: Sketch, at_most: bool, fitted: Fit, savings: Savings
) -> Finding:
    why = RANGE if fitted.ranged else None
    if at_most:
        saving, why = saving.at_most, WHY_AT_MOST if finding.causes else UNLIKE
    little = saving.likely is not None and saving.likely < LITTLE * savings.step_ms
    return msgspec.structs.replace(
        finding,
        severity="warning" if little and finding.severity == "error" else finding.severity,
        saving_ms_per_step=saving.ms,
        saving_low_ms_per_step=saving.low,
        saving_high_ms_per_step=saving.high,
        likely_saving_ms_per_step=saving.likely,
        saving_below_drift=saving.below_drift,
        saving_null_why=why,
        after=None if little else after,
    )


def with_causes(finding: Finding, savings: Iterator[Saving | None], ranged: bool) -> Finding:
    """A finding whose causes have their savings, the next of ``savings``; ``None`` for one that cannot be tried."""
    causes = []
    for cause, saving in zip(finding.causes, islice(savings, len(finding.causes)), strict=True):
        at_most = saving is not None and cause.cause in AT_MOST
        why = WHY_AT_MOST if at_most else RANGE if ranged else None
        known = (saving.at_most if at_most else saving) if saving else Saving()
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
    return msgspec.structs.replace(finding, causes=tuple(causes)) if causes else finding


@dataclass(frozen=True)
class Savings:
    """What each of some questions saves."""

    each: tuple[Saving, ...]
    """In the order of the questions."""
    causes: tuple[Saving | None, ...]
    """In the order of the causes; ``None`` where there is nothing to try."""
    all: Saving
    step_ms: float
    """Length of the unchanged step, in steady state."""
    replayed: Replayed
    """Question 0 changes nothing, then come the questions. The last changes all that these change."""


def replay_savings(
    program: Program,
    questions: Sequence[Question],
    fit: Fit,
    on_one_rank: Sequence[bool] = (),
    causes: Sequence[Question] = (),
) -> Savings:
    """Replay in steady state: nothing changed, each question, each cause of idle time left out, and all questions
    together.

    A question is ``on_one_rank`` if its fix changes nothing on the other ranks. All together are, if one is.
    """
    besides = [cause for cause in causes if cause and cause not in questions]
    every = [{}, *questions, *besides, combine(questions)]
    order, warm = steady_steps(program)
    alone = (False, *(on_one_rank or [False] * len(questions)), *[any(on_one_rank)] * (len(besides) + 1))
    replayed = replay(program, every, fit.scenarios, order, on_one_rank=alone)
    lengths = np.diff(replayed.ends[warm - 1 :], axis=0) * 1e-6
    # By recorded step: each is replayed as often as the others.
    by_step = lengths.reshape(-1, program.steps, *lengths.shape[1:]).mean(axis=0)
    saved = by_step[:, :1] - by_step
    step = float(by_step[:, 0, 0].mean())
    bounds = np.array([_saving(saved[:, number], step) for number in range(1, len(every))])
    # To fix all findings saves at least as much as to fix one of them.
    bounds[-1] = bounds[[*range(len(questions)), -1]].max(axis=0)
    savings = [_as_saving(row, step, fit.ranged) for row in bounds]
    of_causes = [savings[[*questions, *besides].index(cause)] if cause else None for cause in causes]
    return Savings(tuple(savings[: len(questions)]), tuple(of_causes), savings[-1], step, replayed)


def _as_saving(bounds: Floats, step: float, ranged: bool) -> Saving:
    """A saving from what ``_saving`` returns: never more than the step."""
    likely, low, high, most = (round(float(ms), 6) for ms in np.clip(bounds, 0.0, step))
    return Saving(None if ranged else likely, low, high, likely, below_drift=most < DRIFT * step)


def _saving(saved: Floats, step: float) -> tuple[float, float, float, float]:
    """Likely, least and greatest, from savings by step and scenario (steps, scenarios), the first being the likely
    one; and the greatest but for ``DRIFT``.

    The doubts are independent of each other: the steps, each pair of scenarios, and the two windows of steps.
    """
    means, steps = saved.mean(axis=0), len(saved)
    likely = float(means[0])
    spread = 2 * float(saved[:, 0].std(ddof=1)) / steps**0.5 if steps > 1 else 0.0
    pairs = means[1:].reshape(-1, 2) - likely
    below, above = np.minimum(pairs.min(axis=1), 0.0), np.maximum(pairs.max(axis=1), 0.0)
    always = spread**2 + (DRIFT * step) ** 2
    low, high = likely - (always + (below**2).sum()) ** 0.5, likely + (always + (above**2).sum()) ** 0.5
    return likely, low, high, likely + (spread**2 + (above**2).sum()) ** 0.5


def draw_steps(replayed: Replayed, names: Sequence[str]) -> list[Sketch]:
    """A small picture of the last step for each question, in order; ``names`` are those of the streams.

    It shows, bin by bin, how busy the host's waits and each stream are.
    """
    questions, scenarios = replayed.host.shape[1:]
    ends = replayed.ends[:, :, 0]
    # The last step of the host and the last of the device need not be at the same time: the host may run ahead.
    host, device = replayed.host[-2, :, 0], replayed.device[-2, :, 0]
    length = ends[-1] - ends[-2]
    bin_ns = max(float(length[0]) / BINS, 1.0)
    lanes = _lanes(replayed.last, scenarios)
    busiest = sorted((stream for stream in lanes if stream != HOST), key=lambda s: -lanes[s].busy[:, 0].sum())
    drawn = [HOST, *sorted(busiest[:MOST_STREAMS])]
    drawings = []
    for number in range(questions):
        many = max(1, min(round(float(length[number]) / bin_ns), BINS))
        edges = np.arange(many + 1, dtype=np.float64) * bin_ns
        shown = tuple(
            SketchLane(
                label="host blocked" if stream == HOST else names[stream],
                busy=_digits(lanes.get(stream), number, edges + (host if stream == HOST else device)[number]),
            )
            for stream in drawn
        )
        drawings.append(Sketch(step_ms=round(float(length[number]) * 1e-6, 6), lanes=shown))
    return drawings


def _lanes(stretches: Sequence[Interval], scenarios: int) -> dict[int, Interval]:
    """By stream all its stretches as one: times (stretches, questions), in the likely scenario."""
    by_stream: dict[int, list[Interval]] = {}
    for stretch in stretches:
        by_stream.setdefault(stretch.stream, []).append(stretch)
    return {
        stream: Interval(stream, *(np.array([s[part] for s in mine])[:, ::scenarios] for part in (1, 2, 3)))
        for stream, mine in by_stream.items()
    }


def _digits(lane: Interval | None, number: int, edges: Floats) -> str:
    """How busy each bin between ``edges`` (ns) is, in ninths."""
    if lane is None:
        return "0" * (len(edges) - 1)
    # Stretches of a lane follow one another: what was taken by a time grows along each of them, and not in between.
    times = np.maximum.accumulate(np.stack([lane.begin[:, number], lane.end[:, number]], axis=1).ravel())
    taken = np.repeat(np.cumsum(lane.busy[:, number]), 2)
    taken[::2] -= lane.busy[:, number]
    share = np.diff(np.interp(edges, times, taken)) / np.diff(edges)
    return "".join(str(round(9 * min(1.0, max(0.0, one)))) for one in share.tolist())
