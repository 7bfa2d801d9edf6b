"""The first phase of an estimate: the program of a trace and what each fix would change about it.

``Prepared`` holds all that the second phase (``savings.estimate_savings``) needs, and travels between processes as
bytes: msgpack of its fields with the raw bytes of each array, compressed. Nothing in it could run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from isal import isal_zlib
from msgspec.structs import replace

from syncscope.estimate.answers import LITTLE, lower_severity
from syncscope.estimate.batches import measure_handed_over
from syncscope.estimate.best import at_best
from syncscope.estimate.edits import NOTHING, Question
from syncscope.estimate.first_step import cause_comes_back, comes_back
from syncscope.estimate.graph_questions import ask_about_graphs, may_ask
from syncscope.estimate.idle import cause_question, leave_out_warm_up, without_pauses
from syncscope.estimate.limits import (
    Limit,
    find_computed,
    find_left,
    find_limits,
    find_whole_limit,
    is_first_pass,
    why_untried,
)
from syncscope.estimate.loader_questions import ask_about_loader
from syncscope.estimate.peers import Peer, SharedCollectives, find_shared_collectives
from syncscope.estimate.power import UNKNOWN, Condition, condition_of
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.questions import is_at_most, question
from syncscope.estimate.stamps import Stamped, find_stamped
from syncscope.estimate.study import Study
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.schema.recording import Bare
from syncscope.schema.report import Replay
from syncscope.timeline import Timeline
from syncscope.timeline.bare import bare_step_ns
from syncscope.trace.columns import Columns

NO_STEPS = "the trace has no steps, and is too long to count as one: call prof.step() at the end of each step"
NO_CALLS = "the trace holds no runtime calls to replay: record with ProfilerActivity.CPU too"
NO_DEVICE = "the trace holds no device activity to replay"
WITHOUT_ONCE = "what is done once (warm-up, or a pause of one step) is left out of the time that savings are shares of"
WHOLE = "the trace has no steps, so all of it counts as one: savings are in all, not a step"


class Prepared(msgspec.Struct, frozen=True):
    """What estimating the savings of a trace's findings needs, without the trace."""

    findings: tuple[Finding, ...]
    rank: int | None
    collectives: SharedCollectives
    questions: tuple[Question, ...] = ()
    """One for each finding; empty where there is nothing to try."""
    at_best: tuple[Question, ...] = ()
    """What each saves at best; empty where that is no other question."""
    at_most: tuple[bool, ...] = ()
    """For each finding, whether its question says only what there is to gain at most."""
    limits: tuple[Limit, ...] = ()
    """The most that each finding can save."""
    whole_limit_ms: float | None = None
    """The most that all of them together can save; ``None`` unknown."""
    left_ms: float | None = None
    """Milliseconds a step in which the device does not compute; ``None`` where that says nothing of what can be gained,
    or is unknown."""
    computed_ms: float = 0.0
    """Milliseconds a step that the device computes, which no less work of the host takes away."""
    host_ms: float = 0.0
    """Milliseconds from the host's first op or call to its last in a trace without steps; 0 where it has steps."""
    handed_ms: tuple[float, ...] = ()
    """For each finding, the milliseconds a step that its fix takes off the host as a batch is handed over."""
    untried: tuple[str | None, ...] = ()
    """For each finding, why nothing is tried, where the trace shows that nothing can be gained."""
    causes: tuple[Question, ...] = ()
    """One for each of the findings' ``causes``, finding by finding."""
    program: Program | None = None
    misfit: float | None = None
    """Share by which the replay of ``program`` misses the traced steps; ``None`` where it was not replayed yet."""
    bare_ns: tuple[int, ...] = ()
    """Lengths of the recorded bare steps."""
    bare_ms: float | None = None
    """Length of a step with no profiler, as the user gives it or the recording shows it in steady state."""
    replay: Replay | None = None
    """``None`` where there are no findings and nothing else is asked, so nothing is replayed."""
    phase: str | None = None
    """The phase that was recorded."""
    condition: Condition = UNKNOWN
    """What held the GPU's clock."""
    stamped: Stamped | None = None
    """Moments of the bare steps that the recorded ones have, too."""
    asked: tuple[tuple[str, Question], ...] = ()
    """Changes of the loader to try, by what they are called."""
    asked_least: tuple[Question, ...] = ()
    """What comes at least of each of the first of them; empty where that is the change itself."""
    begins_cold: bool = False
    """Whether the first recorded step may hold what is done once: somebody else's recording may begin cold."""
    come_back: tuple[bool, ...] = ()
    """For each finding, whether what its first step does comes back for all that."""
    causes_come_back: tuple[bool, ...] = ()
    """The same for each of ``causes``."""
    base: Question = NOTHING
    """What all savings are told against: the steps without what is done once; empty where there is no such thing or
    little else, or bare steps show how long one is."""

    @property
    def peer(self) -> Peer | None:
        """What other ranks need to know of this one, if it has a rank and meets them."""
        if self.rank is None or not len(self.collectives):
            return None
        findings = tuple(finding.fingerprint for finding in self.findings)
        lengths = self.collectives.with_lengths()
        return Peer(rank=self.rank, phase=self.phase, findings=findings, collectives=lengths)

    def to_bytes(self) -> bytes:
        """The form in which it travels between processes."""
        data = msgspec.msgpack.encode(self, enc_hook=_pack)
        return isal_zlib.compress(data, 1)

    @staticmethod
    def from_bytes(data: bytes) -> Prepared:
        """The same again. Raises ``zlib.error`` or ``msgspec.DecodeError`` for anything else."""
        return msgspec.msgpack.decode(zlib.decompress(data), type=Prepared, dec_hook=_unpack)


def prepare(
    timeline: Timeline,
    hits: Sequence[Hit],
    bare_ms: float | None = None,
    program: Callable[[], Program | None] | None = None,
) -> Prepared:
    """Compile the program of a trace, and find what fixing each of ``hits`` would change about it.

    ``bare_ms`` is the mean length of a step with no profiler; it counts before the recording's own. ``program`` returns
    the program, where it is compiled already.
    """
    findings = tuple(hit.finding for hit in hits)
    recording = timeline.trace.recording
    phase = recording.phase if recording else None
    prepared = Prepared(findings, timeline.trace.rank, find_shared_collectives(timeline), phase=phase)
    if not hits and not may_ask(timeline):
        return prepared
    compiled = compile_program(timeline) if program is None else program()
    if compiled is None:
        found = tuple(_lowered(timeline, finding) for finding in findings)
        return replace(prepared, findings=found, replay=Replay(null_why=_missing(timeline)) if hits else None)
    bare = recording.bare if recording else None
    whole, compiled = compiled, without_pauses(timeline, compiled)
    study = Study(timeline, compiled)
    untried = tuple(why_untried(timeline, hit) for hit in hits)
    questions = tuple(NOTHING if why else question(study, hit) for hit, why in zip(hits, untried, strict=True))
    of_loader = ask_about_loader(study)
    asked = (*((name, change) for name, change, _ in of_loader), *ask_about_graphs(study, hits))
    if not hits and not asked:
        return prepared
    named = [cause for finding in findings for cause in finding.causes]
    causes = tuple(cause_question(study, cause.cause) for cause in named)
    timed = bare_ms is not None or (bare is not None and bare_step_ns(bare) is not None)
    base = NOTHING if timed or is_first_pass(timeline, hits) else leave_out_warm_up(study)
    without_once = (WITHOUT_ONCE,) if base or compiled is not whole else ()
    assumptions = (*(() if len(timeline.steps) else (WHOLE,)), *without_once)
    return replace(
        prepared,
        handed_ms=tuple(measure_handed_over(study, hit) for hit in hits),
        questions=questions,
        at_best=tuple(at_best(study, hit) if asks else NOTHING for hit, asks in zip(hits, questions, strict=True)),
        at_most=tuple(is_at_most(study, hit) for hit in hits),
        limits=find_limits(study, hits),
        whole_limit_ms=find_whole_limit(timeline) if len(timeline.calls) else None,
        left_ms=find_left(timeline),
        computed_ms=find_computed(timeline),
        host_ms=_host_ms(timeline),
        untried=untried,
        causes=causes,
        program=compiled,
        bare_ns=tuple(bare.steps_ns) if bare and bare_step_ns(bare) else (),
        bare_ms=_steady_ms(bare) if bare_ms is None else bare_ms,
        stamped=find_stamped(timeline, compiled, bare) if bare_ms is None else None,
        replay=Replay(assumptions=(*assumptions, *study.assumptions)),
        condition=condition_of(recording.gpu, recording.device) if recording else UNKNOWN,
        asked=asked,
        asked_least=tuple(least for *_, least in of_loader),
        base=base,
        begins_cold=recording is None,
        come_back=tuple(comes_back(timeline, hit) for hit in hits),
        causes_come_back=tuple(cause_comes_back(timeline, cause.cause) for cause in named),
    )


def _host_ms(timeline: Timeline) -> float:
    tables = [table for table in (timeline.calls, timeline.ops) if len(table)]
    if len(timeline.steps) or not tables:
        return 0.0
    return float(max(table.end.max() for table in tables) - min(table.ts.min() for table in tables)) * 1e-6


def _lowered(timeline: Timeline, finding: Finding) -> Finding:
    """A finding of which nothing can be replayed: it saves no more than it blocks the host for, which is told where
    that is little."""
    calls, steps, blocked_ms = timeline.calls, timeline.steps, finding.stall_ms
    if not len(calls):
        return finding
    whole_ms = float(steps.dur.sum() if len(steps) else calls.end.max() - calls.ts.min()) * 1e-6
    finding = msgspec.structs.replace(finding, severity=lower_severity(finding.severity, blocked_ms, whole_ms))
    if blocked_ms is None or not finding.count or blocked_ms >= LITTLE * whole_ms:
        return finding
    most = blocked_ms / max(len(steps), 1)
    return msgspec.structs.replace(
        finding, saving_low_ms_per_step=0.0, saving_high_ms_per_step=round(most, 6), saving_below_drift=True
    )


def _steady_ms(bare: Bare | None) -> float | None:
    """Where the host keeps pace with the device, what a step takes; else the whole window is looked at."""
    if bare is None or not bare.steps_ns or bare.runs_ahead:
        return None
    step_ns = bare_step_ns(bare)
    return None if step_ns is None else step_ns * 1e-6


def _missing(timeline: Timeline) -> str:
    if not len(timeline.calls):
        return NO_CALLS
    return NO_DEVICE if timeline.device is None else NO_STEPS


def _pack(value: Any) -> Any:
    """Of an array type, shape and bytes; whole numbers in as few bytes as hold all of them."""
    if isinstance(value, Columns):
        return {name: getattr(value, name) for name in value.columns}
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value).__name__} does not travel")
    if value.dtype == np.int64 and value.size:
        value = value.astype(np.promote_types(np.min_scalar_type(value.min()), np.min_scalar_type(value.max())))
    return value.dtype.str, value.shape, value.tobytes()


def _unpack(kind: Any, packed: Any) -> Any:
    """The value of class ``kind`` that was packed: of an array ``kind`` says the type of its elements, too, and is no
    class. Raises TypeError or ValueError where it is none."""
    if isinstance(kind, type) and issubclass(kind, Columns):
        return kind(**{name: _unpack(np.ndarray, column) for name, column in packed.items()})
    dtype, shape, data = packed
    array = np.frombuffer(data, dtype=np.dtype(dtype)).reshape(shape)
    return array.astype(np.int64) if array.dtype.kind in "iu" else array
