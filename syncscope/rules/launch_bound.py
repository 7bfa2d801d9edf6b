from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.idle_places import find_idle_place
from syncscope.rules.base.late_begins import find_late_ms
from syncscope.rules.base.launch_advice import OF_COMPILED
from syncscope.rules.base.pauses import paused_ms
from syncscope.rules.base.program import ends_with_graph, name_compiled
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.findings import Finding
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.bubbles import are_launched_in_a_row
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.collectives import POINT_TO_POINT
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.launching import Launching
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import CAUSES
from syncscope.timeline.waits import is_wait

ONCE = "warm-up"
"""The cause of idle time that later steps do not repeat."""

LEAST_SHARE = 0.1
"""The step is bound by launches if the device waits for the next launch for at least this share of it."""

LEAST_SHARE_OF_PART = 0.2
"""The same where a part of the step is: by how much the profiler slows the host there is less certain than in all."""

LEAST_LAUNCHES = 10
"""Launches a step below which there is nothing to gather."""

MANY_WAITS, FEW_LAUNCHES = 10, 50
"""Waits a step from which launches are cut up, and how many of these between two are worth no graph of their own."""

MOST_LINES = 3
"""Lines of waits that are named."""

PROFILED = 1.5
"""How much slower a profiler with PyTorch's ops makes a host that only launches."""

AS_MUCH = 1.1
"""Where the device may wait for more than so many times as long, both are told."""

REPEATED = "repeated"
"""The name for launches that are the same in each step."""

BESIDE_WAITS = " A graph can hold no wait: take them out first, as at {}, or make graphs of what lies between them."
"""How the fix of such launches goes on where a step has waits with lines, and too few to cut the launches up."""

SHARDED, EXCHANGES = "sharded", "exchanges"
"""The names for launches between which FSDP's hooks come, and for those between sends and receives."""

SHARED = "other processes used the device too: what waits behind their work hides whether it waits for launches"


class LaunchBound(RankRule):
    """Small kernels, and a host that cannot launch them as fast as the device runs them.

    Why it costs: launching a kernel takes the host 5 to 20 µs, with PyTorch and Python around it. A kernel that runs
    for less leaves the device waiting for the next one, kernel after kernel. No wait causes this: the queue never
    fills. Reported where the host, its waits left out, needs longer for the launches than the device for the work, and
    the device waits between launches for a tenth of the step, without what is done once.

    Bad:
        for p in model.parameters():            # thousands of tiny kernels
            p.data.add_(p.grad, alpha=-lr)

    Good:
        torch._foreach_add_(params, grads, alpha=-lr)           # one kernel for all of them
        step = torch.compile(step, mode="reduce-overhead")      # fused, and replayed as a CUDA graph

    Fine:
        y = x @ w              # one kernel that runs for longer than the next launch takes

    What the host needs for a launch is what it needs in this trace: launches follow each other if they are no more than
    five times as far apart as most, from 200 µs, since most lie inside of one module, to 1 ms, or if only what
    PyTorch's own op does before it launches takes longer, up to 1 ms. Where the trace has stacks, the finding names the
    function in which most of the waiting is. Launches that a graph captures do not count, nor does waiting for that of
    a graph.

    CUDA graphs would take away the launches of stretches that hold no wait, no copy to or from the host and no
    allocation, and launch the same kernels in every step. A graph also needs shapes and addresses that stay. Between
    the hooks of FSDP none is tried, and none that holds a send or a receive. The profiler makes the host slower, so the
    rule looks at the bare step where it was timed, else at two thirds of the profiled one; and where a part of that is
    bound by launches, at two thirds of what launching takes there, if the device waits for a fifth of it all. What the
    profiler adds while the device computes is hidden, so where the step was not timed, the device may wait for as long
    as two thirds of the time that each launch takes leave of the wait for it: that is the most that is told. On a
    device that other processes use too, launches may wait behind the work of those. So where the device again and again
    begins late what was launched in time, the rule looks at how long the host launches one kernel right after the
    other, and where it finds nothing on a device that is known to be shared, it is not checked.
    """

    code = "LCH501"
    name = "launch-bound"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.REPLAY_GRAPHS
    needs_async_launches = True
    advice = (
        *OF_COMPILED,
        Advice(
            SHARDED,
            "Launch fewer and larger kernels: compile each block before it is sharded (torch.compile(block)), use "
            "fused optimizers, larger batches. FSDP fetches the weights of a block to another address each time, so a "
            "CUDA graph can hold neither the blocks nor the step.",
        ),
        Advice(
            EXCHANGES,
            "Launch fewer and larger kernels: compile what a stage computes between two exchanges (torch.compile of "
            "the stage's module), larger microbatches. A CUDA graph of the whole step would hold the sends and "
            "receives, which wait for another rank.",
        ),
        Advice(
            "cut",
            "Take out the waits between the launches, most of which are at {op}, then replay what is left as a CUDA "
            "graph (torch.compile(mode='reduce-overhead'), torch.cuda.make_graphed_callables). A graph can hold no "
            "wait, and so few launches between two are hardly worth one.",
        ),
        Advice(
            REPEATED,
            "Replay the launches as a CUDA graph (torch.compile(mode='reduce-overhead'), "
            "torch.cuda.make_graphed_callables), or launch fewer and larger kernels: torch.compile, foreach or fused "
            "optimizers, larger batches.",
        ),
        Advice(
            "",
            "Launch fewer and larger kernels: torch.compile, foreach or fused optimizers, larger batches. For CUDA "
            "graphs, take waits, host copies and changing shapes out of the step first.",
        ),
    )

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if why := super().why_unchecked(timeline):
            return why
        return SHARED if timeline.processes_on_device and _find_pace(timeline) is None else None

    def find(self, inspection: Inspection) -> list[Hit]:
        pace = _find_pace(inspection.timeline)
        return [] if pace is None else [Hit(self._finding(inspection.timeline, pace))]

    def _finding(self, timeline: Timeline, pace: _Pace) -> Finding:
        launching, host_ms, idle_ms = pace.launching, pace.host_ms, pace.idle_ms
        steps, bubbles = len(timeline.steps), timeline.bubbles
        per, many = ("a step" if steps else "in all"), max(steps, 1)
        host, run, idle = (milliseconds(ms) for ms in (host_ms, launching.busy_ns * 1e-6 / many, idle_ms))
        launches = f"{launching.launches / many:,.0f} launches that run for {run}"
        spread = pace.most_ms > AS_MUCH * idle_ms
        idle += f" to {milliseconds(pace.most_ms)}" if spread else ""
        behind = f"the host takes {host} {per} for {launches}, {_waits(pace.late_ms, idle, steps)}"
        delay = launching.delay_ns
        queue = f"half begin within {milliseconds(delay * 1e-6)} of being launched; " if delay >= 0 else ""
        bare = timeline.step_figures.bare_ms
        assumed = "" if bare else "; this assumes that the profiler adds half to the host's time"
        assumed += " where the device waits for a launch" if pace.in_part else ""
        assumed += ", everywhere or only where the device waits for a launch" if spread else ""
        most = find_idle_place(timeline, "launching")
        where = f"; {most.share_in_words()} of it in {most.in_words()}" if most else ""
        cuts = _find_cuts(timeline, launching.launches) if launching.repeats else None
        where += f"; {cuts.waits / many:,.0f} waits {per} cut them up" if cuts else ""
        circumstances = ["cut"] if cuts else [REPEATED] if launching.repeats else []
        circumstances = [*_name_ranks(timeline, launching), *circumstances]
        entry = self.choose_advice(*name_compiled(timeline), *circumstances)
        few = _name_waits(timeline, least=1) if entry.when == REPEATED else ""
        return self.finding(
            most.place if most else NOWHERE,
            rank=timeline.trace.rank,
            count=launching.launches,
            per_step=launching.launches / steps if steps else None,
            first_ns=int(bubbles.ts[(bubbles.by_cause[:, LAUNCHING] > 0) | (bubbles.late > 0)].min()),
            idle_ms_per_step=round(idle_ms, 6),
            message=f"{behind}; {queue}{_graphs(launching, many)}{where}"
            f"{'' if timeline.step_figures.bare_ms else assumed}",
            fix=entry.sentence.replace("{op}", cuts.lines if cuts else "") + (BESIDE_WAITS.format(few) if few else ""),
        )


class _Cuts(msgspec.Struct, frozen=True):
    """Waits between launches that leave only few of those between two."""

    waits: int
    lines: str
    """The lines of the most frequent."""


def _find_cuts(timeline: Timeline, launches: int) -> _Cuts | None:
    """The waits between ``launches``, where they leave few between two and have lines; ``None`` where they do not."""
    many = int(_are_inside(timeline).sum())
    if many < MANY_WAITS * max(len(timeline.steps), 1) or many * FEW_LAUNCHES < launches:
        return None
    lines = _name_waits(timeline)
    return _Cuts(many, lines) if lines else None


def _are_inside(timeline: Timeline) -> Bools:
    """Which waits are part of a step, or of all where there are none."""
    waits = timeline.waits
    inside: Bools = is_wait(waits.kind) & ((waits.step >= 0) | (len(timeline.steps) == 0))
    return inside


def _name_waits(timeline: Timeline, least: int = 0) -> str:
    """The lines of the most frequent waits, of those with ``least`` a step: ``train.py:3 and train.py:5``; ``""`` where
    none has a line."""
    every, steps = timeline.places, max(len(timeline.steps), 1)
    sites = Counter(every[place].site for place in timeline.waits.place[_are_inside(timeline)].tolist())
    often = [site for site, count in sites.most_common() if count >= least * steps]
    lines = list(dict.fromkeys(f"{site.file}:{site.line}" for site in often if site is not None))[:MOST_LINES]
    return " and ".join(filter(None, (", ".join(lines[:-1]), lines[-1]))) if lines else ""


class _Pace(msgspec.Struct, frozen=True):
    """Steps that are bound by launches, with milliseconds a step."""

    launching: Launching
    host_ms: float
    """That the host takes for the launches."""
    idle_ms: float
    """That the device waits for them."""
    in_part: bool = False
    """Whether only a part of the steps is bound by launches, so that the profiler is taken to slow only that."""
    late_ms: float = 0.0
    """For how long the device begins late what was launched, which hides that it would wait for launches: 0 where it
    shows. ``idle_ms`` is then what the host launches for longer than the device runs."""
    most_ms: float = 0.0
    """That the device waits at most, where it is a guess how far the profiler slows the host: as much of that is hidden
    as the device computes."""


def find_most_ms(timeline: Timeline) -> float:
    """Milliseconds a step that the device waits for launches at most; 0 where those are not what it waits for."""
    pace = _find_pace(timeline)
    return 0.0 if pace is None else max(pace.idle_ms, pace.most_ms)


def _find_pace(timeline: Timeline) -> _Pace | None:
    """The pace of the launches, ``None`` where they are not what the device waits for."""
    launching, overlap, span = timeline.launching, timeline.overlap, timeline.span
    steps, scale = max(len(timeline.steps), 1), _bare_share(timeline)
    if launching is None or overlap is None or span is None or launching.launches < LEAST_LAUNCHES * steps:
        return None
    span_ms = (span[1] - span[0]) * 1e-6 / steps - overlap.idle_by_cause.get(ONCE, 0.0) - paused_ms(timeline)
    host_ms = (launching.own_ns * 1e-6 / steps - paused_ms(timeline)) * scale
    if host_ms <= overlap.device_busy_ms:
        return None
    waiting_ms, bare_ms = _waiting_ms(timeline), scale * span_ms
    idle_ms = waiting_ms - (1 - scale) * span_ms
    guessed = timeline.step_figures.bare_ms is None
    if idle_ms >= LEAST_SHARE * bare_ms:
        return _Pace(launching, host_ms, idle_ms, most_ms=_left_ms(timeline, 1 - scale) if guessed else 0.0)
    idle_ms = waiting_ms - (1 - scale) * _launching_ms(timeline)
    if guessed and idle_ms >= LEAST_SHARE_OF_PART * bare_ms:
        return _Pace(launching, host_ms, idle_ms, in_part=True)
    late_ms, idle_ms = find_late_ms(timeline), scale * _in_a_row_ms(timeline) - overlap.device_busy_ms
    return _Pace(launching, host_ms, idle_ms, late_ms=late_ms) if late_ms and idle_ms >= LEAST_SHARE * bare_ms else None


LAUNCHING, LATENCY = CAUSES.index("launching"), CAUSES.index("launch latency")


def _waits(late_ms: float, idle: str, steps: int) -> str:
    """That the device waits for launches, or why that does not show."""
    if not late_ms:
        return f"so the device waits {idle} for the next one"
    return (
        f"and {'a step takes' if steps else 'they take'} no less; a device of its own would wait {idle} for them. Here "
        f"it is late to begin what was launched in time, for {milliseconds(late_ms)}, as when another process uses it, "
        "and fewer launches do not shorten that"
    )


def _name_ranks(timeline: Timeline, launching: Launching) -> list[str]:
    """What comes between the launches because there are other ranks, for advice that leaves CUDA graphs of it out."""
    if launching.sharded:
        return [SHARDED]
    return [EXCHANGES] if np.isin(timeline.collectives.name, POINT_TO_POINT).any() else []


def _graphs(launching: Launching, steps: int) -> str:
    if launching.sharded:
        return "FSDP's hooks come between them, so no CUDA graph can hold a step"
    if launching.replayable is None:
        return "the trace holds too few steps to tell whether they repeat"
    if 2 * launching.replayable < steps:
        return "no stretch of them is the same in every step, which a CUDA graph needs"
    saved = f"{launching.replayable / steps:,.0f}"
    if not launching.repeats:
        return f"as the program is, CUDA graphs could take the place of only {saved} of these launches"
    return f"CUDA graphs would take away {saved} of them"


def _waiting_ms(timeline: Timeline) -> float:
    """Milliseconds a step that the device waits for a launch that comes right after another one, but for those of
    graphs."""
    by_cause = timeline.bubbles.by_cause
    counts = ~ends_with_graph(timeline) & (by_cause[:, LAUNCHING] > 0)
    waiting = sum(int(by_cause[counts, cause].sum()) for cause in (LAUNCHING, LATENCY))
    return waiting * 1e-6 / max(len(timeline.steps), 1)


def _launching_ms(timeline: Timeline) -> float:
    """Milliseconds a step that the host takes for the launches for which the device waits, each from the end of the
    command before it."""
    return int(_launching(timeline)[1].sum()) * 1e-6 / max(len(timeline.steps), 1)


def _left_ms(timeline: Timeline, slowed: float) -> float:
    """``_waiting_ms`` without what a profiler adds that takes a share (``slowed``) of the host's time for each launch:
    while the device computes, that is hidden."""
    waiting, launching = _launching(timeline)
    return float(np.maximum(waiting - slowed * launching, 0.0).sum()) * 1e-6 / max(len(timeline.steps), 1)


def _launching(timeline: Timeline) -> tuple[Ints, Ints]:
    """Of each launch that the device waits for, but those of graphs, for how long that is, and how long the host takes
    from the end of the command before it to its own; ns."""
    calls, bubbles = timeline.calls, timeline.bubbles
    counts = ~ends_with_graph(timeline) & (bubbles.by_cause[:, LAUNCHING] > 0)
    launch, commands = bubbles.launch[counts], np.flatnonzero(calls.do(COMMANDS))
    before = commands[np.maximum(np.searchsorted(commands, launch) - 1, 0)]
    waiting = bubbles.by_cause[counts][:, [LAUNCHING, LATENCY]].sum(axis=1)
    return waiting, calls.end[launch] - calls.end[before]


def _in_a_row_ms(timeline: Timeline) -> float:
    """Milliseconds a step that the host takes for all launches that come right after another command, each from the end
    of that one."""
    calls, steps = timeline.calls, timeline.steps
    launch = np.flatnonzero(calls.do(["launch"]) & ((step_of(steps, calls.ts) >= 0) | (len(steps) == 0)))
    launch = launch[are_launched_in_a_row(launch, calls, timeline.ops)]
    commands = np.flatnonzero(calls.do(COMMANDS))
    before = commands[np.maximum(np.searchsorted(commands, launch) - 1, 0)]
    return int(np.maximum(calls.end[launch] - calls.end[before], 0).sum()) * 1e-6 / max(len(steps), 1)


def _bare_share(timeline: Timeline) -> float:
    """Share of its recorded time that the host takes without the profiler: by the bare steps, else assumed."""
    steps = timeline.step_figures
    if steps.bare_ms is None or not steps.profiled_ms:
        return 1 / PROFILED
    left_ms = steps.profiled_ms - paused_ms(timeline)
    return min(1.0, steps.bare_ms / left_ms) if left_ms > 0 else 1.0
