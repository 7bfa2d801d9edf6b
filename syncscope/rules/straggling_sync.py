from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from syncscope.advice import Advice
from syncscope.ranks.lateness import LateRank, compare_ranks
from syncscope.ranks.matching import GROUP
from syncscope.ranks.missing import find_missing_ranks
from syncscope.rules.allocator_sync import AllocatorSync
from syncscope.rules.base.lateness import tell_of_ranks
from syncscope.rules.base.meetings import is_alone
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import RunFindings, RunRule
from syncscope.rules.base.waiting_ranks import find_free_ms, find_held_ms, find_pace_ms, limit_by_late_ranks
from syncscope.rules.blocking_copy import BlockingCopy
from syncscope.rules.comm_not_overlapped import CommNotOverlapped
from syncscope.rules.dynamic_shape import DynamicShape
from syncscope.rules.explicit_sync import ExplicitSync
from syncscope.rules.launch_bound import ONCE, LaunchBound
from syncscope.rules.library_sync import LibrarySync
from syncscope.rules.pageable_copy import PageableCopy
from syncscope.rules.scalar_read import ScalarRead
from syncscope.rules.tensor_print import TensorPrint
from syncscope.schema.findings import STARVED, Finding
from syncscope.schema.idle import main_cause
from syncscope.schema.numbers import milliseconds
from syncscope.schema.report import START, Delay, NotChecked, Report, TraceInfo
from syncscope.timeline import Place, Timeline
from syncscope.timeline.collectives import POINT_TO_POINT
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.pauses import SEVERAL

LEAST_SHARE = 0.02
"""A rank is reported if it holds the others for at least this share of its step, without steps of all that its device
did."""

LEAST_MS = 0.05
"""A rank is reported if it holds the others for at least this many milliseconds a step."""

ALONE_ON_DEVICE = "collectives-alone"
"""Stands for a device of which nothing but collectives was recorded."""

MAIN_SHARE = 0.1
"""A kind of collective is named if it has at least this share of that time."""

EXPLAINED = 0.5
"""The rank's own device must be idle for this share of the time that the others are held. Otherwise it had more to
do."""

IN_ONE_STEP = 0.7
"""A rank does not come late throughout if one of several steps has this share of how long it holds the others."""

ALLOCATIONS = frozenset({AllocatorSync.code})
OF_EVERY_RANK = frozenset({
    BlockingCopy.code, PageableCopy.code, ScalarRead.code, DynamicShape.code, TensorPrint.code, ExplicitSync.code,
    LibrarySync.code,
})  # fmt: skip
"""Rules whose gains are what a rank's own host does, which it waits longer in return where others come late. Of copies
and waits the gain is told as all ranks have it, so that of the latest limits it only where every rank has a trace."""

AT_MOST = (
    "the step gets no shorter than the other ranks need: what their hosts do, and what the rank does that is then the "
    "last"
)
"""Why only the most is known that a late rank costs."""

ALONE = "the trace of one rank alone does not say who comes late to a collective"
APART = "no trace of another rank has the same collectives of the same steps"
UNSEEN = "; of its device nothing else was recorded, so nothing says what it did before"
"""What is said of a late rank whose trace holds collectives alone."""

LAUNCHES = "launching"
"""The cause that a finding of another rule is about."""

BECAUSE = {
    "wait": "after a wait",
    "host work": "while the host does something else than launch",
    LAUNCHES: "while the host launches one small thing after the other",
    "data loading": "while the host loads data",
    "allocation": "while the host allocates memory",
    "pageable copy": "while the host stages a copy of pageable memory",
    "host collective": "while the host waits for another rank's",
    "host idle": "while the host sleeps, or waits for a thread or another process",
    "collective": "beside another collective",
    "unknown": "and nothing shows why",
    START: "while the host has not launched its first work",
    ONCE: "in warm-up, which later steps do not repeat",
    PAUSE: "in one step alone",
}
"""Causes of idle time, to end a sentence."""


class StragglingSync(RunRule):
    """One rank waits for its device, or works on the host, and all others wait for that rank in a collective.

    Why it costs: a collective ends when the last rank has come, so what one rank loses between two collectives, every
    rank loses. A wait on rank 0 alone, to log or to save something, costs as much as the same wait on all of them.

    Bad:
        if rank == 0:
            print(loss.item())                       # all ranks meet again at the next all-reduce

    Good:
        if rank == 0 and step % 100 == 0:
            print(loss.item())                       # rarely
        losses.append(loss.detach())                 # or kept on the device, and read after the last step

    Fine:
        if rank == 0:
            save(model)                              # after the loop, or every few thousand steps

    Needs the traces of two ranks or more, of the same steps. Ranks are compared collective by collective, in the order
    of each kind and process group. All ranks end a collective together, so the one that ran it for the shortest time
    came last, and no common clock is needed. Sends and receives are compared where a run has two ranks, since what one
    sends the other receives. The finding names what its device was idle for before that, more than the others'. A rank
    whose device simply had more to compute is no finding. Profilers do not start at the same time, so of three steps or
    more the first is left out; of fewer, that a rank began the first later is told apart, and where no steps are known
    that its recording began later.
    """

    code = "DST601"
    name = "straggling-sync"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = NoQuestion(AT_MOST)
    advice = (
        Advice(ONCE, "Record later steps: what is done once says nothing of those that repeat."),
        Advice(PAUSE, "Record more steps to see whether it comes again: no other of these has it."),
        Advice(
            ALONE_ON_DEVICE,
            "See what this rank does before it: give its whole trace, with what the host and the device do besides "
            "collectives.",
        ),
        Advice(
            LAUNCHES,
            "Launch fewer and larger kernels before it (as LCH501 says where it is found). Where this rank launches no "
            "more than others, see what else uses its processors.",
        ),
        Advice(
            "unknown",
            "See what else uses this rank's device: the file does not hold what that did meanwhile, so nothing shows "
            "what the program could change. Record again with nobody else on it, and a warm-up before the window.",
        ),
        Advice(
            "",
            "Take the wait or the work off this rank's way to the collective: do it on the device, every so many "
            "steps, in a thread of its own, or after the last step.",
        ),
    )

    def is_needless(self, timeline: Timeline) -> bool:
        return timeline.device is not None and is_alone(timeline)

    def can_compare(self, info: TraceInfo) -> bool:
        return info.meetings is not None

    def leave_out(self, report: Report) -> Report:
        traces = tuple(msgspec.structs.replace(info, meetings=None) for info in report.traces)
        return msgspec.structs.replace(report, traces=traces, between_ranks=None)

    def compare(self, traces: Sequence[TraceInfo], findings: Sequence[Finding]) -> RunFindings:
        phases: dict[str | None, dict[int, TraceInfo]] = {}
        for number, info in enumerate(traces):
            if self.can_compare(info):
                phases.setdefault(info.phase, {})[number] = info
        compared = [self._compare_phase(ranks, findings) for ranks in phases.values()]
        between = [(one.between_ranks, ranks) for one, ranks in zip(compared, phases.values(), strict=True)]
        # The report has room for one phase: training, else the first.
        between.sort(key=lambda pair: not any(info.in_training for info in pair[1].values()))
        alone = {trace: kinds for one in compared for trace, kinds in one.alone.items()}
        told = next((table for table, _ in between if table is not None), None)
        return RunFindings(
            tuple(finding for one in compared for finding in one.findings),
            tuple(entry for one in compared for entry in one.not_checked),
            told,
            alone if find_missing_ranks(traces) else {},
            find_held_ms(traces, told),
            frozenset(number for number, info in enumerate(traces) if self._meets_no_other(info, traces)),
        )

    def _meets_no_other(self, info: TraceInfo, traces: Sequence[TraceInfo]) -> bool:
        """Whether a trace has nothing to compare, as with sends and receives alone, though another rank's is given."""
        others = {other.rank for other in traces if other.phase == info.phase} - {None, info.rank}
        return info.rank is not None and not self.can_compare(info) and bool(others)

    def explain(self, findings: Sequence[Finding], compared: RunFindings) -> list[Finding]:
        apart = {entry.trace for entry in compared.not_checked if entry.why == APART}
        told = tell_of_ranks(
            findings, CommNotOverlapped.code, compared.between_ranks, apart, compared.alone, compared.without_meetings
        )
        between = compared.between_ranks
        bounded = ALLOCATIONS if between is not None and between.missing else ALLOCATIONS | OF_EVERY_RANK
        return limit_by_late_ranks(told, CommNotOverlapped.code, between, bounded, compared.held_ms)

    def _compare_phase(self, ranks: dict[int, TraceInfo], findings: Sequence[Finding]) -> RunFindings:
        """What is between the ranks in one phase."""
        distinct = {info.rank for info in ranks.values()} - {None}
        lateness = compare_ranks(ranks) if len(distinct) == len(ranks) > 1 else None
        if lateness is None or not lateness.steps:
            why = APART if len(ranks) > 1 else ALONE
            unchecked = (NotChecked(rule=self.code, why=why, trace=n, rank=info.rank) for n, info in ranks.items())
            return RunFindings(not_checked=tuple(unchecked))
        late = tuple(
            self._finding(number, ranks, late, lateness.steps, findings)
            for number, every in sorted(lateness.late.items())
            if _holds_others(late := _explained(every, ranks[number]), lateness.steps, ranks[number])
        )
        alone = {number: kinds.union(POINT_TO_POINT) for number, kinds in lateness.alone.items()}
        return RunFindings(late, between_ranks=lateness.between, alone=alone)

    def _finding(
        self, number: int, ranks: Mapping[int, TraceInfo], late: LateRank, steps: int, findings: Sequence[Finding]
    ) -> Finding:
        info = ranks[number]
        unseen = _only_meets(info)
        delay = Delay(cause=ALONE_ON_DEVICE) if unseen else late.delays.most_common(1)[0][0]
        site = delay.site
        related = {
            other.fingerprint
            for other in findings
            if (other.trace == number and site is not None and other.site == site)
            or (other.trace == number and delay.cause == LAUNCHES and other.rule == LaunchBound.code)
            or (other.trace == number and other.rule == STARVED and _is_mostly_for(other, delay.cause))
            or (other.trace in late.held_traces and other.rule == CommNotOverlapped.code)
        }
        main = (name for name, held in late.names.most_common() if held >= MAIN_SHARE * late.held * 1e6)
        names = ", ".join(_describe(name, info) for name in main)
        held, idle = milliseconds(late.held / steps), milliseconds(late.idle / steps)
        where = f", at {site.file}:{site.line}" if site else ""
        why = f": its device is idle for {idle} before, {BECAUSE.get(delay.cause, delay.cause)}{where}"
        unlike = _unlike_the_others(ranks.values())
        most = None if unlike else round(_gains_at_most(_held_each_step_ms(late, steps), number, ranks), 6)
        return self.finding(
            Place(site=site, at=delay.at, chain=delay.chain, source=delay.site_source, ordinal=delay.ordinal),
            related=tuple(sorted(related)),
            trace=number,
            rank=info.rank,
            count=late.times,
            per_step=late.times / steps if info.steps.count else None,
            exposed_ms_per_step=round(late.held / steps, 6) if info.steps.count else None,
            exposed_ms=round(late.held, 6),
            message=f"rank {info.rank} comes last to {names} and holds the others for {held} "
            f"{'a step' if info.steps.count else 'in all'}{UNSEEN if unseen else why}{_in_one_step(late, steps)}"
            f"{_began_later(late.before, info)}",
            fix=self.advise(delay.cause),
            phase=info.phase,
            saving_low_ms_per_step=None if unlike else 0.0,
            saving_high_ms_per_step=most,
            saving_null_why=unlike or AT_MOST,
        )


def _is_mostly_for(starved: Finding, cause: str) -> bool:
    """Whether a finding about idle time is mostly about one cause, and so its fix is for that."""
    main = main_cause(starved)
    return main is not None and main.cause == cause


def _unlike_the_others(infos: Iterable[TraceInfo]) -> str | None:
    """Why what was recorded is no part of a step of the program: a rank's recorded steps are not like its others."""
    replays = (info.replay for info in infos if info.steps.bare_ms is not None)
    return next((replay.null_why for replay in replays if replay is not None and replay.null_why), None)


def _gains_at_most(held_ms: float, number: int, ranks: Mapping[int, TraceInfo]) -> float:
    """Milliseconds that a step gets shorter at most where a rank holds others no more: it holds them for ``held_ms``,
    and the step of each of them takes what its own host needs anyhow."""
    pace_ms = find_pace_ms(ranks[number])
    free = (find_free_ms(info, pace_ms) for other, info in ranks.items() if other != number)
    return min([held_ms, *(ms for ms in free if ms is not None)])


def _describe(name: str, info: TraceInfo) -> str:
    """A collective with what the program calls its process group: ``allreduce of group 12 (TENSOR_MODEL_PARALLEL)``."""
    group = name.partition(GROUP)[2]
    known = info.meetings.groups.get(group) if info.meetings is not None else None
    return f"{name} ({known})" if known else name


def _only_meets(info: TraceInfo) -> bool:
    """Whether a trace holds nothing of its device but collectives."""
    return info.overlap is None


def _in_one_step(late: LateRank, steps: int) -> str:
    most = max(late.by_step.values(), default=0.0)
    if steps < 2 or most <= IN_ONE_STEP * late.held:
        return ""
    apart = ", which is left out of what is saved" if steps >= SEVERAL else ""
    return f"; of the {milliseconds(late.held)} in {steps} steps {milliseconds(most)} are in one{apart}"


def _held_each_step_ms(late: LateRank, steps: int) -> float:
    """Milliseconds for which a rank holds the others in each step: where one of several has most of it, in the rest."""
    most = max(late.by_step.values(), default=0.0)
    if steps < SEVERAL or most <= IN_ONE_STEP * late.held:
        return late.held / steps
    return (late.held - most) / (steps - 1)


def _began_later(before_ms: float, info: TraceInfo) -> str:
    if before_ms < LEAST_MS:
        return ""
    first = "the first recorded step" if info.steps.count else "recording"
    return f"; it also began {first} later, for which they waited {milliseconds(before_ms)} more"


def _step_ms(info: TraceInfo) -> float:
    """How long a rank's step is, without steps all of the trace; 0 where that is unknown."""
    if info.steps.count:
        return info.steps.profiled_ms or 0.0
    if info.overlap is not None:
        return info.overlap.device_busy_ms + info.overlap.idle_ms
    met = info.meetings.collectives if info.meetings else ()
    return max((one.end_ms for one in met), default=0.0) - min((one.end_ms - one.ms for one in met), default=0.0)


def _holds_others(late: LateRank, steps: int, info: TraceInfo) -> bool:
    """Whether a rank holds the others for long."""
    return late.held / steps >= max(LEAST_MS, LEAST_SHARE * _step_ms(info))


def _explained(late: LateRank, info: TraceInfo) -> LateRank:
    """What its idle device explains of how long a rank holds the others, all of it where that was not recorded."""
    return late if _only_meets(info) else late.explained(EXPLAINED)
