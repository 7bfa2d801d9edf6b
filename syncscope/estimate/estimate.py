"""Findings with their savings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import pandas as pd

from syncscope.estimate.answers import Answers, Saving, answer
from syncscope.estimate.costs import MEASURED
from syncscope.estimate.edits import Question
from syncscope.estimate.peers import SAME, Peer, find_met, with_peers, without_waits
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.questions import Study, question
from syncscope.estimate.scale import MISFIT, Fit, fit
from syncscope.estimate.sketch import sketches
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.schema.findings import Finding, Sketch
from syncscope.schema.report import Replay
from syncscope.timeline import Timeline

LITTLE = 0.01
"""Share of the step below which a finding is worth so little that it is no error."""

NO_STEPS = "the trace has no steps to replay"
NO_CALLS = "the trace holds no runtime calls to replay"
NO_DEVICE = "the trace holds no device activity to replay"
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


@dataclass(frozen=True)
class Prepared:
    """A trace with the questions that its findings ask, without the trace: small enough to keep for every rank."""

    hits: tuple[Hit, ...]
    rank: int | None
    met: pd.DataFrame
    """``peers.find_met``."""
    asked: tuple[Question, ...] = ()
    """By hit; nothing where there is nothing to ask."""
    program: Program | None = None
    bare_ns: tuple[int, ...] = ()
    bare_ms: float | None = None
    replay: Replay | None = None
    """``None`` where nothing was found, so nothing is replayed."""

    @property
    def peer(self) -> Peer | None:
        """What other ranks need to know of this one, if it has a rank and meets them."""
        if self.rank is None or not len(self.met):
            return None
        columns = (self.met[name].tolist() for name in (*SAME, "dur"))
        findings = tuple(hit.finding.fingerprint for hit in self.hits)
        return Peer(rank=self.rank, findings=findings, met=tuple(zip(*columns, strict=True)))


def prepare(timeline: Timeline, hits: Sequence[Hit], bare_ms: float | None = None) -> Prepared:
    """What to ask of a trace, to find what ``hits`` are worth.

    ``bare_ms`` is the mean length of a step with no profiler; it counts before the recording's own.
    """
    one = Prepared(tuple(hits), timeline.info().rank, find_met(timeline))
    if not hits:
        return one
    program = compile_program(timeline, MEASURED)
    if program is None:
        return replace(one, replay=Replay(null_why=_lacking(timeline)))
    bare = timeline.trace.recording.bare if timeline.trace.recording else None
    study = Study(timeline, program)
    asked = tuple(question(study, hit) for hit in hits)
    told, steps = Replay(assumptions=study.assumptions), bare.steps_ns if bare else ()
    return replace(one, asked=asked, program=program, bare_ns=steps, bare_ms=bare_ms, replay=told)


def worth(one: Prepared, peers: Sequence[Peer] = ()) -> Estimate:
    """The findings of a trace with what each is worth, and what all of them are worth together; ``peers`` are the ranks
    of its run, itself or not.

    A saving that cannot be told is ``None``, and the finding says why.
    """
    if one.program is None or one.replay is None:
        return _without(one, one.replay)
    others = [peer for peer in peers if peer.rank != one.rank] if one.rank is not None else []
    program, known = with_peers(one.program, one.met, others)
    program, found = _fitting(one, program, known)
    misfit = round(found.misfit, 6)
    if found.why:
        return _without(one, Replay(misfit=misfit, null_why=found.why))
    changing = [(hit.finding, changes) for hit, changes in zip(one.hits, one.asked, strict=True) if changes]
    lone = [known and not all(finding.fingerprint in other.findings for other in others) for finding, _ in changing]
    answers = answer(program, [changes for _, changes in changing], found, lone)
    before, *after = sketches(answers.replayed, program.streams)
    told = iter(zip(answers.each, after, strict=False))
    findings = []
    for hit, changes in zip(one.hits, one.asked, strict=True):
        if changes:
            findings.append(_worth(hit.finding, *next(told), found, answers))
        else:
            findings.append(_unknown(hit.finding, _unasked(hit.finding)))
    scale = None if found.ranged else found.scenarios[0].host
    replay = msgspec.structs.replace(one.replay, misfit=misfit, host_scale=scale, before=before)
    return Estimate(tuple(findings), answers.all if changing else Saving(), replay)


def _fitting(one: Prepared, program: Program, known: bool) -> tuple[Program, Fit]:
    """The program as it runs bare, and how it fits. Where it does not, and the other ranks' traces tell how long this
    one waited for them, it may have been their profilers that it waited for."""
    found = fit(program, one.bare_ns, one.bare_ms)
    if found.scenarios or not known or abs(found.misfit) > MISFIT:
        return program, found
    prompt = without_waits(program)
    again = fit(program, one.bare_ns, one.bare_ms, prompt)
    return (prompt, again) if again.scenarios else (program, found)


def _unasked(finding: Finding) -> str:
    """Why there was nothing to ask of the replay."""
    question = BY_CODE[finding.rule].question
    if isinstance(question, NoQuestion):
        return question.why
    if question is Intervention.REPLAY_GRAPHS:
        return UNLIKE
    return UNKNOWN if finding.count else OUTSIDE


def _lacking(timeline: Timeline) -> str:
    if not len(timeline.calls):
        return NO_CALLS
    return NO_DEVICE if timeline.device is None else NO_STEPS


def _without(one: Prepared, replay: Replay | None) -> Estimate:
    why = replay.null_why if replay else None
    return Estimate(tuple(_unknown(hit.finding, why) for hit in one.hits), Saving(), replay)


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
