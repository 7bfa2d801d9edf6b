"""The second phase of an estimate: replay the program without what each finding is about.

It needs no trace, only what the first phase kept (``prepare.Prepared``), so it can be repeated when the other ranks are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import msgspec
import numpy as np

from syncscope.estimate.answers import DRIFT, Saving, deny_saving, explain_handed_over, give_causes, give_saving
from syncscope.estimate.clocks import LIKELY
from syncscope.estimate.edits import NOTHING, Edits, Question, combine
from syncscope.estimate.fit import MISFIT, Fit, steady_steps
from syncscope.estimate.limits import ALL_SAVE, LEAST_STEPS
from syncscope.estimate.peers import Peer, with_peers
from syncscope.estimate.power import POWER_DOUBT, SLOWED, Condition, Work, at_clock, between, may_be_capped, settle
from syncscope.estimate.power import RANGE as RESPONSES
from syncscope.estimate.power import UNKNOWN as UNKNOWN_CONDITION
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.profiler_cost import without_profiler
from syncscope.estimate.program import Program
from syncscope.estimate.replay import Replayed, Scenario, replay
from syncscope.estimate.sketches import draw_steps
from syncscope.estimate.together import Tried, cap, computed_ms, join, reach, reach_causes
from syncscope.estimate.undisturbed import fit_undisturbed
from syncscope.schema.findings import Finding, Sketch
from syncscope.schema.report import Asked, Replay
from syncscope.timeline.intervals import Floats

OFF = 0.016
"""Share of the step by which a saving is off for what no trace tells. Of 89 programs, each left out in turn while this
was chosen from the others, 89 % of 179 savings then lie in their ranges."""

HOST_DOUBT = 0.3
"""Share by which the host's work that a fix takes off may be longer or shorter than at the scale of all work: what a
profiler adds differs from call to call, and twice the workers are seldom twice as fast. The step's length is known, so
what is taken too much of the one part is too little of the rest, and the saving is off by the share times the rest. Of
27 recordings of such fixes, in view when this was set, half were predicted within 0.13 of that and three quarters
within 0.18."""

REPEATED = 0.1
"""Share of a saving, times the rest of the step, by which it differs from one process to the next. Of 44 pairs that
were timed in two processes, in view when this was set, and that save more than 4 % of the step, half agreed within
0.04, three quarters within 0.1 and nine tenths within 0.2."""


class Estimate(msgspec.Struct, frozen=True):
    """What a trace's findings would save."""

    findings: tuple[Finding, ...]
    together: Saving
    """The saving of all findings fixed together."""
    replay: Replay | None
    """``None`` where there are no findings and nothing else is asked, so nothing was replayed."""


def estimate_savings(prepared: Prepared, peers: Sequence[Peer] = ()) -> Estimate:
    """The findings of a trace, each with what its fix would save, and what all fixes together would save.

    ``peers`` are the ranks of its run, itself among them or not; none where they make no difference. A saving that
    cannot be estimated is ``None``, and the finding says why.
    """
    if prepared.program is None or prepared.replay is None:
        return _deny_all(prepared, prepared.replay)
    together = [peer for peer in peers if peer.phase == prepared.phase] if prepared.rank is not None else []
    others = [peer for peer in together if peer.rank != prepared.rank]
    program, known = with_peers(prepared.program, prepared.collectives, others)
    program, fitted = fit_undisturbed(prepared, program, known)
    if not fitted.scenarios:
        return _deny_all(prepared, Replay(misfit=round(fitted.misfit, 6), null_why=fitted.why))
    tried = Tried.of(prepared)
    found = [finding for finding, question in zip(prepared.findings, prepared.questions, strict=True) if question]
    on_one_rank = [known and not all(finding.fingerprint in other.findings for other in others) for finding in found]
    asks = _Asks.of(prepared, tried, on_one_rank)
    kept_ms, changed_ms = computed_ms(program, asks.every)
    savings = replay_savings(
        program, asks.every, fitted, asks.on_one_rank,
        condition=prepared.condition, together=tried.whole or None, limit_ms=_most_ms(prepared),
        kept_ms=kept_ms if prepared.begins_cold else 0.0,
        base=prepared.base, first_is_odd=asks.first_is_odd,
    )  # fmt: skip
    step_ms, many = savings.step_ms, len(tried)
    before, *after = draw_steps(savings.replayed, program.streams)
    causes = iter(savings.each[asks.every.index(cause)] if cause else None for cause in prepared.causes)
    idle_ms = max(step_ms - prepared.computed_ms, 0.0)
    limits = [limit.of(step_ms, idle_ms, doubted=fitted.misfit > MISFIT) for limit in prepared.limits]
    limits = [ms for ms, question in zip(limits, prepared.questions, strict=True) if question]
    answers = reach(tried, savings.each[:many], savings.all, savings.each[len(savings.each) - len(tried.bests) :])
    answers = cap(tried, answers, limits, step_ms)
    findings = tuple(_answer_findings(prepared, answers.each, after, causes, fitted, step_ms))
    asked = tuple(_answer_asked(prepared, savings.each[many + len(asks.besides) :]))
    replayed = _describe(prepared.replay, fitted, savings.limited)
    replayed = msgspec.structs.replace(replayed, before=before, step_ms=round(step_ms, 6), asked=asked)
    left_ms = max(step_ms - prepared.computed_ms, 0.0) if prepared.left_ms is None else prepared.left_ms
    every = reach_causes(join(tried, answers, limits, step_ms, left_ms + changed_ms), findings, step_ms)
    return Estimate(findings, every, replayed)


class _Asks(msgspec.Struct, frozen=True):
    """All questions of a trace: those that are tried, causes of idle time besides, changes that are asked, and what is
    saved at best."""

    every: tuple[Question, ...]
    besides: tuple[Question, ...]
    on_one_rank: tuple[bool, ...]
    first_is_odd: tuple[bool, ...]

    @classmethod
    def of(cls, prepared: Prepared, tried: Tried, on_one_rank: Sequence[bool]) -> _Asks:
        """``on_one_rank`` is for each that is tried whether its fix changes nothing on the other ranks."""
        of_causes = zip(prepared.causes, prepared.causes_come_back, strict=True)
        besides = [(cause, again) for cause, again in of_causes if cause and cause not in tried.questions]
        asked = [*(question for _, question in prepared.asked), *filter(None, prepared.asked_least), *tried.bests]
        again = [again for again, question in zip(prepared.come_back, prepared.questions, strict=True) if question]
        come_back = [*again, *(again for _, again in besides), *[False] * len(asked)]
        one_rank = [*on_one_rank, *[any(on_one_rank)] * len(besides), *[False] * len(asked)]
        if tried.mixed:
            come_back[-1], one_rank[-1] = any(again), any(on_one_rank)
        return cls(
            every=(*tried.questions, *(cause for cause, _ in besides), *asked),
            besides=tuple(cause for cause, _ in besides),
            on_one_rank=tuple(one_rank),
            first_is_odd=tuple(prepared.begins_cold and not back for back in come_back),
        )


def _answer_findings(
    prepared: Prepared,
    savings: Sequence[Saving],
    after: Sequence[Sketch],
    causes: Iterator[Saving | None],
    fit: Fit,
    step_ms: float,
) -> Iterator[Finding]:
    """Each finding with its saving and those of its causes. ``savings`` are those of the findings that were tried, and
    ``after`` begins with theirs."""
    answers = iter(zip(savings, after, strict=False))
    shown = [limit.late_ms for limit in prepared.limits]
    known = prepared.findings, prepared.questions, prepared.at_most, prepared.untried, prepared.handed_ms
    for finding, question, at_most, why, handed_ms, shown_ms in zip(*known, shown, strict=True):
        found = deny_saving(finding, why)
        if question:
            found = give_saving(finding, *next(answers), at_most, fit, step_ms, shown_ms, prepared.host_ms)
            found = explain_handed_over(found, handed_ms, step_ms)
        yield give_causes(found, causes, fit, step_ms, max(step_ms - prepared.computed_ms, 0.0))


def _describe(replay: Replay, fit: Fit, limited: str | None) -> Replay:
    """What is said of the replay, and of the power limit where it is ``limited``. No scale of the host's work is where
    none meets the bare step."""
    met = not (fit.ranged or fit.missed)
    return msgspec.structs.replace(
        replay,
        misfit=round(fit.misfit, 6),
        saving_of="bare" if met else "recorded",
        host_scale=round(fit.scenarios[0].host * fit.measured, 4) if met else None,
        doubt=round(fit.doubt, 6) or None,
        bounds_why=fit.doubt_why,
        assumptions=(*replay.assumptions, limited) if limited else replay.assumptions,
    )


def _answer_asked(prepared: Prepared, savings: Sequence[Saving]) -> Iterator[Asked]:
    """What each change that is asked saves. ``savings`` are those of the changes, then of what comes of them at
    least."""
    least = iter(savings[len(prepared.asked) :])
    for (name, _), saving, other in zip_longest(prepared.asked, savings[: len(prepared.asked)], prepared.asked_least):
        lows = [one.low for one in (saving, next(least) if other else saving) if one.low is not None]
        yield Asked(
            question=name,
            saving_ms_per_step=saving.ms,
            saving_low_ms_per_step=min(lows, default=None),
            saving_high_ms_per_step=saving.high,
        )


def _most_ms(prepared: Prepared) -> float:
    """The most that anything can save: the mean length of a bare step, or what the trace leaves to gain; infinite where
    neither is known."""
    return min(_bare_ms(prepared), np.inf if prepared.whole_limit_ms is None else prepared.whole_limit_ms)


def _bare_ms(prepared: Prepared) -> float:
    """The mean length of a bare step, infinite where none is known."""
    if prepared.bare_ms is not None or not prepared.bare_ns:
        return np.inf if prepared.bare_ms is None else prepared.bare_ms
    return sum(prepared.bare_ns) / len(prepared.bare_ns) * 1e-6


def _deny_all(prepared: Prepared, replay: Replay | None) -> Estimate:
    """The findings where nothing could be replayed."""
    why = replay.null_why if replay else None
    return Estimate(tuple(deny_saving(finding, why) for finding in prepared.findings), Saving(), replay)


class Savings(msgspec.Struct, frozen=True):
    """What each of some questions saves."""

    each: tuple[Saving, ...]
    """In the order of the questions."""
    all: Saving
    step_ms: float
    """Mean length of the unchanged steps, in steady state."""
    replayed: Replayed
    """Question 0 changes nothing, the last everything."""
    limited: str | None = None
    """What is said of the power limit, where it makes a difference and was not measured."""


def replay_savings(
    program: Program,
    questions: Sequence[Edits | Question],
    fit: Fit,
    on_one_rank: Sequence[bool] = (),
    *,
    condition: Condition = UNKNOWN_CONDITION,
    together: Sequence[int] | None = None,
    limit_ms: float = np.inf,
    kept_ms: float = 0.0,
    base: Edits | Question = NOTHING,
    first_is_odd: Sequence[bool] = (),
) -> Savings:
    """Replay in steady state: nothing but the ``base`` changed, each question, and all of them, or those whose numbers
    are in ``together``.

    A question is ``on_one_rank`` if its fix changes nothing on the other ranks. All together are, if one is.
    ``first_is_odd`` is for each question whether the first recorded step may hold what is done once; not, by default.
    ``condition`` says whether the GPU's power limit takes a part back. No saving is more than
    ``limit_ms``, or leaves less of the step than ``kept_ms``.
    """
    whole = list(range(len(questions)) if together is None else together)
    asked = (NOTHING, *questions, combine(questions[number] for number in whole))
    every = [combine((base, question)) for question in asked]
    order, warm = steady_steps(program)
    one_rank = (False, *on_one_rank, any(on_one_rank))

    def run(changed: Program, scenarios: Sequence[Scenario]) -> Replayed:
        return replay(changed, every, scenarios, order, on_one_rank=one_rank, drawn=True)

    def by_step(replayed: Replayed) -> Floats:
        return _by_step(replayed, warm, program.steps)

    replayed = run(program, fit.scenarios)
    limited: list[Replayed] = []
    work, lengths = Work.of(program, every), by_step(replayed).mean(axis=0)
    step = float(lengths[0, 0])
    condition = condition.of(float(work.drawn(lengths * 1e6)[0, 0]))
    if may_be_capped(condition, work, lengths * 1e6):
        slow = run(at_clock(program, SLOWED), fit.scenarios[:1])
        replayed, *limited = _at_limit(condition, work, replayed, slow, by_step)
    columns = np.concatenate([by_step(replayed), *(by_step(one)[:, :, :1] for one in limited)], axis=2)
    saved = columns[:, :1] - columns
    odd = np.array([False, *(first_is_odd or [False] * len(questions)), False])
    odd[-1] = odd[1:-1][whole].all()
    saved[:, odd] = _trim_first(saved[:, odd])
    taken = _host_ms_taken(program, every, fit)
    taken -= taken[0]
    bounds = np.array(
        [_saving(saved[:, number], step, fit.doubt, float(taken[number])) for number in range(1, len(every))]
    )
    # To fix all findings saves at least as much as to fix one of them.
    bounds[-1] = bounds[[*whole, -1]].max(axis=0)
    savings = [_as_saving(row, step, min(max(step - kept_ms, 0.0), limit_ms), fit.ranged) for row in bounds]
    return Savings(tuple(savings[:-1]), savings[-1], step, replayed, condition.says if limited else None)


def _trim_first(saved: Floats) -> Floats:
    """Savings by step (steps, …), where the first step saves no more than the later ones do, if they all save
    something: a first copy or wait of a kind that takes far longer than the others is no part of what repeats."""
    if len(saved) < LEAST_STEPS:
        return saved
    most = saved[1:].max(axis=0)
    first = np.where(saved[1:].min(axis=0) > ALL_SAVE * most, np.minimum(saved[0], most), saved[0])
    trimmed: Floats = np.concatenate([first[None], saved[1:]])
    return trimmed


def _as_saving(bounds: Floats, step: float, limit: float, ranged: bool) -> Saving:
    """A saving from its likely value and its bounds: never more than ``limit``."""
    most = bounds[0] + max((bounds[2] - bounds[0]) ** 2 - (OFF * step) ** 2, 0.0) ** 0.5
    # What is likely is no surer where it is cut, so the least falls by as much.
    cut = np.array([0.0, max(bounds[0] - limit, 0.0), 0.0])
    likely, low, high = (round(float(ms), 6) for ms in np.clip(bounds - cut, 0.0, limit))
    return Saving(None if ranged else likely, low, high, likely, below_drift=bool(most < DRIFT * step))


def _at_limit(
    condition: Condition, work: Work, usual: Replayed, slow: Replayed, by_step: Callable[[Replayed], Floats]
) -> list[Replayed]:
    """The replay as the power limit leaves it, and as it would with kernels that follow the clock more and less. Where
    nothing is known of the GPU, the first is that without a limit."""
    length, slower = (by_step(one).mean(axis=0)[:, :1] * 1e6 for one in (usual, slow))
    likely = settle(condition, work, length, slower, LIKELY)
    others = [
        settle(condition.doubted(factor), work, length, slower, response)
        for factor, response in zip((1 - POWER_DOUBT, 1 + POWER_DOUBT), RESPONSES, strict=True)
    ]
    limited = [between(usual, slow, part) for part in others]
    return [between(usual, slow, likely, drawn=True) if condition.known else usual, *limited]


def _by_step(replayed: Replayed, warm: int, steps: int) -> Floats:
    """Milliseconds that each recorded step takes (steps, questions, scenarios), without those that fill the queues."""
    lengths: Floats = np.diff(replayed.ends[warm - 1 :], axis=0) * 1e-6
    # Each is replayed as often as the others.
    mean: Floats = lengths.reshape(-1, steps, *lengths.shape[1:]).mean(axis=0)
    return mean


def _host_ms_taken(program: Program, questions: Sequence[Question], fit: Fit) -> Floats:
    """Milliseconds of work, or of waiting for workers, that each question takes off the host in a step (questions,)."""
    items = without_profiler(program.items)
    taken = np.zeros(len(questions))
    for number, question in enumerate(questions):
        pre, own = question.column("pre"), question.column("own")
        edited = question.are(lambda edit: edit.pre != 1 or edit.own != 1)
        rows = question.items[edited]
        # Not as a product of vectors, for which numpy starts threads.
        taken[number] = (items.pre[rows] * (1 - pre[edited]) + items.own[rows] * (1 - own[edited])).sum()
        taken[number] *= fit.scenarios[0].host
        period, batch = items.period[question.items], question.column("batch")
        faster = (batch > 0) & (batch < period)
        taken[number] += sum((period[faster] - batch[faster]).tolist())
    milliseconds: Floats = np.maximum(taken, 0.0) / program.steps * 1e-6
    return milliseconds


def _saving(saved: Floats, step: float, doubt: float, taken: float) -> tuple[float, float, float]:
    """Likely, least and greatest, from savings by step and scenario (steps, scenarios); the first is the likely one.

    The doubts are independent of each other: the steps, each pair of scenarios, what no trace tells, ``doubt``, a share
    of the step, another process, and how long the host's work that is ``taken`` off really is.
    """
    means, steps = saved.mean(axis=0), len(saved)
    likely = float(means[0])
    spread = 2 * float(saved[:, 0].std(ddof=1)) / steps**0.5 if steps > 1 else 0.0
    pairs = means[1:].reshape(-1, 2) - likely
    below, above = np.minimum(pairs.min(axis=1), 0.0), np.maximum(pairs.max(axis=1), 0.0)
    rest = 1 - min(max(likely / step, 0.0), 1.0) if step else 1.0
    uncertain, repeated = HOST_DOUBT * rest * min(taken, max(likely, 0.0)), REPEATED * rest * likely
    always = spread**2 + (OFF * step) ** 2 + repeated**2 + (doubt * step) ** 2 + uncertain**2
    return likely, likely - (always + (below**2).sum()) ** 0.5, likely + (always + (above**2).sum()) ** 0.5
