"""Findings with their savings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from syncscope.estimate.answers import Saving, answer
from syncscope.estimate.costs import MEASURED
from syncscope.estimate.program import compile_program
from syncscope.estimate.questions import Study, question
from syncscope.estimate.scale import Fit, fit
from syncscope.findings import Finding
from syncscope.rules import RULES, Hit
from syncscope.rules.rule import Intervention
from syncscope.timeline import Timeline

LATER: dict[str, Intervention] = {
    "CPY203": "make one copy",
    "CPY204": "keep it on the device",
    "LCH501": "replay a graph",
    "OVL302": "overlap the collective",
    "OVL304": "prefetch the copy",
    "SYN106": "remove the allocation",
    "SYN108": "launch asynchronously",
}

NO_STEPS = "the trace has no steps to replay"
NO_CALLS = "the trace holds no runtime calls to replay"
NO_DEVICE = "the trace holds no device activity to replay"
NOTHING_TO_TRY = "no one change in the replay stands for its fix"
OUTSIDE = "it happens only outside the recorded steps"
RANGE = "the bare step time is unknown (record it, or give --bare-ms), so how much the profiler inflates the host is too"


@dataclass(frozen=True)
class Estimate:
    findings: tuple[Finding, ...]
    saving_all_ms_per_step: float | None
    fit: Fit | None
    assumptions: tuple[str, ...] = ()


def estimate(timeline: Timeline, hits: Sequence[Hit], bare_ms: float | None = None) -> Estimate:
    """The findings of ``hits`` with what each is worth, and what all of them are worth together.

    ``bare_ms`` is the mean length of a step with no profiler, where the recording does not hold it. A saving that
    cannot be told is ``None``, and the finding says why.
    """
    program = compile_program(timeline, MEASURED)
    if program is None:
        return _without(hits, _lacking(timeline), None)
    bare = timeline.trace.recording.bare if timeline.trace.recording else None
    found = fit(program, bare.steps_ns if bare else (), bare_ms)
    if found.why:
        return _without(hits, found.why, found)
    study = Study(timeline, program)
    interventions = {rule.code: rule.intervention for rule in RULES} | LATER
    asked = [question(study, hit, interventions[hit.finding.rule]) for hit in hits]
    answers = answer(program, [changes for changes in asked if changes], found)
    savings = iter(answers.each)
    findings = tuple(
        _worth(hit.finding, next(savings), found) if changes else _unknown(hit.finding, _reason(hit, interventions))
        for hit, changes in zip(hits, asked, strict=True)
    )
    every = None if found.ranged or not any(asked) else round(answers.all.ms, 6)
    return Estimate(findings, every, found)


def _reason(hit: Hit, interventions: dict[str, Intervention]) -> str:
    return NOTHING_TO_TRY if interventions[hit.finding.rule] == "none" else OUTSIDE


def _lacking(timeline: Timeline) -> str:
    if not len(timeline.calls):
        return NO_CALLS
    return NO_DEVICE if timeline.device is None else NO_STEPS


def _without(hits: Sequence[Hit], why: str, found: Fit | None) -> Estimate:
    return Estimate(tuple(_unknown(hit.finding, why) for hit in hits), None, found)


def _unknown(finding: Finding, why: str) -> Finding:
    return msgspec.structs.replace(finding, saving_null_why=why)


def _worth(finding: Finding, saving: Saving, found: Fit) -> Finding:
    return msgspec.structs.replace(
        finding,
        saving_ms_per_step=None if found.ranged else round(saving.ms, 6),
        saving_low_ms_per_step=round(saving.low, 6),
        saving_high_ms_per_step=round(saving.high, 6),
        saving_null_why=RANGE if found.ranged else None,
    )
