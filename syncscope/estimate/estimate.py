"""Findings with their savings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from syncscope.estimate.answers import Answers, Saving, answer
from syncscope.estimate.costs import MEASURED
from syncscope.estimate.program import compile_program
from syncscope.estimate.questions import Study, question
from syncscope.estimate.scale import Fit, fit
from syncscope.estimate.sketch import sketches
from syncscope.findings import Finding, Replay, Sketch
from syncscope.rules import Hit
from syncscope.timeline import Timeline

LITTLE = 0.01
"""Share of the step below which a finding is worth so little that it is no error."""

NO_STEPS = "the trace has no steps to replay"
NO_CALLS = "the trace holds no runtime calls to replay"
NO_DEVICE = "the trace holds no device activity to replay"
UNTRIED = {
    "SYN107": "the host is ahead of the device there, so nothing is lost",
    "OVL303": "it sums up what others cause: their savings are its own",
    "HAZ401": "a wait is missing there, not one too many",
    "HAZ402": "a wait is missing there, not one too many",
    "HAZ403": "a wait is missing there, not one too many",
}
"""Why there is nothing to replay, by rule."""

UNLIKE = "no stretch of the launches is the same in every step, so nothing can be replayed as a graph"
OUTSIDE = "it happens only outside the recorded steps"
UNKNOWN = "the recorded steps hold no calls that its fix would change"
RANGE = "no bare step time is known (record it, or give --bare-ms): how far the profiler slows the host is a guess"


@dataclass(frozen=True)
class Estimate:
    """What a trace's findings are worth."""

    findings: tuple[Finding, ...]
    every: Saving
    """Of all of them together."""
    replay: Replay | None
    """``None`` where nothing was found, so nothing replayed."""


def estimate(timeline: Timeline, hits: Sequence[Hit], bare_ms: float | None = None) -> Estimate:
    """The findings of ``hits`` with what each is worth, and what all of them are worth together.

    ``bare_ms`` is the mean length of a step with no profiler; it counts before the recording's own. A saving that
    cannot be told is ``None``, and the finding says why.
    """
    if not hits:
        return Estimate((), Saving(), None)
    program = compile_program(timeline, MEASURED)
    if program is None:
        return _without(hits, Replay(null_why=_lacking(timeline)))
    bare = timeline.trace.recording.bare if timeline.trace.recording else None
    found = fit(program, bare.steps_ns if bare else (), bare_ms)
    if found.why:
        return _without(hits, Replay(misfit=round(found.misfit, 6), null_why=found.why))
    study = Study(timeline, program)
    asked = [question(study, hit) for hit in hits]
    answers = answer(program, [changes for changes in asked if changes], found)
    before, *after = sketches(answers.replayed, program.streams)
    worth = iter(zip(answers.each, after, strict=False))
    findings = []
    for hit, changes in zip(hits, asked, strict=True):
        if changes:
            findings.append(_worth(hit.finding, *next(worth), found, answers))
        else:
            findings.append(_unknown(hit.finding, _unasked(hit.finding)))
    replay = Replay(
        misfit=round(found.misfit, 6),
        host_scale=None if found.ranged else found.scenarios[0].host,
        assumptions=study.assumptions,
        before=before,
    )
    return Estimate(tuple(findings), answers.all if any(asked) else Saving(), replay)


def _unasked(finding: Finding) -> str:
    """Why there was nothing to ask of the replay."""
    if finding.rule in UNTRIED:
        return UNTRIED[finding.rule]
    if finding.rule == "LCH501":
        return UNLIKE
    return UNKNOWN if finding.count else OUTSIDE


def _lacking(timeline: Timeline) -> str:
    if not len(timeline.calls):
        return NO_CALLS
    return NO_DEVICE if timeline.device is None else NO_STEPS


def _without(hits: Sequence[Hit], replay: Replay) -> Estimate:
    return Estimate(tuple(_unknown(hit.finding, replay.null_why) for hit in hits), Saving(), replay)


def _unknown(finding: Finding, why: str | None) -> Finding:
    return msgspec.structs.replace(finding, saving_null_why=why)


def _worth(finding: Finding, saving: Saving, after: Sketch, found: Fit, answers: Answers) -> Finding:
    likely = saving.high if saving.ms is None else saving.ms
    little = likely is not None and likely < LITTLE * answers.step_ms
    return msgspec.structs.replace(
        finding,
        severity="warning" if little and finding.severity == "error" else finding.severity,
        saving_ms_per_step=saving.ms,
        saving_low_ms_per_step=saving.low,
        saving_high_ms_per_step=saving.high,
        saving_null_why=RANGE if found.ranged else None,
        after=None if little else after,
    )
