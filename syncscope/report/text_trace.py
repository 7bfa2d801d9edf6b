"""Print in a terminal what a trace is: a line, and on request what lies behind its figures."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from syncscope.report.escape import terminal
from syncscope.report.gpu_phrases import describe_gpu
from syncscope.report.numbers import count, milliseconds, percent
from syncscope.report.runs import holds_collectives_alone, is_counted_only
from syncscope.report.text_lines import line
from syncscope.report.trace_phrases import was_shared
from syncscope.report.view import View
from syncscope.report.worth_phrases import answer_asked
from syncscope.schema.idle import label_cause
from syncscope.schema.report import TraceInfo

INDENT = 2
LEAST_TOLD = 0.01
"""Of the step: less than that by which a replay misses it is not told."""


def show_trace(info: TraceInfo, console: Console, view: View) -> None:
    """Print a trace: its device, its steps, and how many of its waits have a line."""
    line(console, Text(terminal(info.path), style="bold"))
    facts = [terminal(info.device) if info.device else "device unknown"]
    if info.torch:
        facts.append(f"torch {terminal(info.torch)}")
    if info.rank is not None:
        facts.append(f"rank {info.rank}")
    if is_counted_only(info):
        line(console, Text(" · ".join(facts)), INDENT)
        return
    line(console, Text(" · ".join([*facts, *_steps(info), _coverage(info)])), INDENT, hang=INDENT)
    for text in (*describe_gpu(info.gpu), *answer_asked(info)):
        line(console, Text(terminal(text)), INDENT, hang=INDENT)
    if view.verbose:
        for text in (*_device_time(info), *_savings(info)):
            line(console, Text(text, style="dim"), INDENT, hang=INDENT)


def _steps(info: TraceInfo) -> list[str]:
    steps = info.steps
    if not steps.count:
        return ["no steps"]
    facts = [count(steps.count, "step")]
    if steps.bare_ms is not None:
        facts.append(f"{milliseconds(steps.bare_ms)} a step")
    if steps.profiled_ms is not None:
        facts.append(f"{milliseconds(steps.profiled_ms)} under the profiler")
    return facts


def _coverage(info: TraceInfo) -> str:
    if "runtime" not in info.has:
        return "no runtime calls: waits cannot be seen"
    waits, lines = info.coverage.waits, info.coverage.with_line
    if not waits:
        return "no waits" + (" inside the steps" if info.steps.count else "")
    return f"{lines} of {count(waits, 'wait')} {'has' if waits == 1 else 'have'} a line"


def _device_time(info: TraceInfo) -> list[str]:
    overlap = info.overlap
    if overlap is None:
        return [f"no device activity{' but collectives' if holds_collectives_alone(info) else ''}"]
    busy = [f"compute {milliseconds(overlap.compute_ms)}"]
    for label, whole, exposed in (
        ("copies", overlap.copy_ms, overlap.copy_exposed_ms),
        ("collectives", overlap.comm_ms, overlap.comm_exposed_ms),
    ):
        if whole > 0:
            busy.append(f"{label} {milliseconds(whole)} ({milliseconds(exposed)} exposed)")
    a_step = " a recorded step" if info.steps.count else ""
    lines = [f"device busy {milliseconds(overlap.device_busy_ms)}{a_step}: {', '.join(busy)}"]
    causes = sorted(overlap.idle_by_cause.items(), key=lambda pair: -pair[1])
    parts = ", ".join(
        f"{terminal(label_cause(cause, was_shared(info)))} {milliseconds(ms)}" for cause, ms in causes if ms > 0
    )
    lines.append(f"device idle {milliseconds(overlap.idle_ms)}{a_step}" + (f": {parts}" if parts else ""))
    return lines


def _savings(info: TraceInfo) -> list[str]:
    """What the savings assume, or why there are none."""
    replay = info.replay
    if replay is None:
        return []
    if replay.null_why is not None:
        return [f"no savings: {terminal(replay.null_why)}"]
    known = replay.host_scale is not None
    bare = f", host work × {replay.host_scale:.3g} to meet the bare step" if known else "; no bare step: only ranges"
    bare = f"; {terminal(replay.bounds_why)}" if replay.bounds_why else bare
    assumed = [f"assumed: {terminal(text)}" for text in replay.assumptions]
    of, meets = ("of a recorded step", "it") if info.steps.count else ("in all", "the trace")
    within = percent(max(abs(replay.misfit or 0.0), LEAST_TOLD), 1.0)
    return [f"savings: {of}, from a replay that meets {meets} within {within}{bare}", *assumed]
