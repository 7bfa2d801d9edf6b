from __future__ import annotations

from syncscope.rules.grouping import say_ms
from syncscope.rules.rule import Case, Hit, Rule
from syncscope.rules.starvation import host_scale
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.timeline.launching import Launching
from syncscope.timeline.places import NOWHERE

LEAST_SHARE = 0.1
"""Share of the step that the device waits for the next launch, from which on the step is bound by launches."""

LEAST_LAUNCHES = 10
"""Launches a step below which there is nothing to gather."""


class LaunchBound(Rule):
    """Small kernels, and a host that cannot launch them as fast as the device runs them.

    Why it costs: to launch a kernel takes the host 5 to 20 µs, with PyTorch and Python around it. A kernel that runs
    for less leaves the device waiting for the next one, kernel after kernel, and no wait is to blame: the queue never
    fills. Said where the host, its waits left out, needs longer for the launches than the device for the work, and the
    device waits between launches for a tenth of the step.

    Bad:
        for p in model.parameters():            # thousands of tiny kernels
            p.data.add_(p.grad, alpha=-lr)

    Good:
        torch._foreach_add_(params, grads, alpha=-lr)           # one kernel for all of them
        step = torch.compile(step, mode="reduce-overhead")      # fused, and replayed as a CUDA graph

    Fine:
        y = x @ w              # one kernel that runs for longer than the next launch takes

    The launches that CUDA graphs would take away are those of stretches without a wait, a copy to or from the host or
    an allocation, that launch the same kernels in every step; a graph also needs shapes and addresses that stay.
    Under the profiler the host is slower: judged is the bare step where it was timed, else two thirds of the profiled.
    """

    code = "LCH501"
    name = "launch-bound"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        found, overlap, span = timeline.launching, timeline.overlap, timeline.span
        steps, scale = max(len(timeline.steps), 1), host_scale(timeline)
        if found is None or overlap is None or span is None or found.launches < LEAST_LAUNCHES * steps:
            return []
        span_ms = (span[1] - span[0]) * 1e-6 / steps
        host_ms = found.own_ns * 1e-6 / steps * scale
        idle_ms = waiting_ms(timeline) - (1 - scale) * span_ms
        if idle_ms < LEAST_SHARE * scale * span_ms or host_ms <= overlap.device_busy_ms:
            return []
        return [Hit(self._finding(timeline, found, host_ms, idle_ms))]

    def _finding(self, timeline: Timeline, found: Launching, host_ms: float, idle_ms: float) -> Finding:
        steps = len(timeline.steps)
        per, many = ("a step" if steps else "in all"), max(steps, 1)
        behind = (
            f"the host takes {say_ms(host_ms)} ms {per} for {found.launches / many:,.0f} launches that run for "
            f"{say_ms(found.busy_ns * 1e-6 / many)} ms, so the device waits {say_ms(idle_ms)} ms for the next one"
        )
        queue = f"half begin within {found.delay_ns / 1000:.3g} µs of being launched"
        assumed = "; assumed is that the profiler adds half to the host's time"
        return self.finding(
            NOWHERE,
            rank=timeline.trace.rank,
            count=found.launches,
            per_step=found.launches / steps if steps else None,
            first_ns=int(timeline.idle["ts"][(timeline.idle["launching"] > 0).to_numpy(bool)].min()),
            message=f"{behind}; {queue}; {_graphs(found, many)}{'' if timeline.step_figures.bare_ms else assumed}",
            fix=GRAPHS if 2 * (found.replayable or 0) >= found.launches else FUSE,
        )


GRAPHS = (
    "Replay them as a CUDA graph (torch.compile(mode='reduce-overhead'), torch.cuda.make_graphed_callables), or launch "
    "fewer and larger kernels: torch.compile, foreach or fused optimisers, larger batches."
)
FUSE = (
    "Launch fewer and larger kernels: torch.compile, foreach or fused optimisers, larger batches. For CUDA graphs, "
    "take waits, host copies and changing shapes out of the step first."
)


def _graphs(found: Launching, steps: int) -> str:
    if found.replayable is None:
        return "the trace holds too few steps to tell whether they repeat"
    share = found.replayable / found.launches
    return f"CUDA graphs would take away {found.replayable / steps:,.0f} of them ({share:.0%})"


def waiting_ms(timeline: Timeline) -> float:
    """Milliseconds a step that the device waits for a launch right behind another one."""
    idle = timeline.idle[(timeline.idle["launching"] > 0).to_numpy(bool)]
    return float(idle[["launching", "launch latency"]].sum().sum()) * 1e-6 / max(len(timeline.steps), 1)
