from __future__ import annotations

from syncscope.rules.grouping import say_ms
from syncscope.rules.rule import Case, Hit, Rule
from syncscope.rules.starvation import FIXES, culprits_of, loader
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.timeline.places import NOWHERE

LEAST_SHARE = 0.1
"""Idle share of the span from which on the device counts as starved."""

MAIN_SHARE = 0.1
"""Share of the idle time from which on a finding is named as a cause."""

SITE_SHARE = 0.5
"""Share of the idle time in bubbles behind its waits from which on a finding lends this one its site."""


class DeviceStarved(Rule):
    """The device is idle for a tenth of the step or more.

    Why it costs: a device that has nothing queued is paid for and does nothing. Either a wait emptied the queue and
    the host had to start filling it again; or the host did something else than launch: loading data, allocating, a
    collective, work of its own; or it launched one small thing after the other (see LCH501). One finding a trace, with
    the idle time by cause, at the wait or the loader that caused the most of it.

    Bad:
        for x, y in DataLoader(data, num_workers=0):   # the device waits for the next batch
            loss = step(x, y)
            history.append(loss.item())                # the queue is emptied every step

    Good:
        for x, y in DataLoader(data, num_workers=8, pin_memory=True):
            history.append(step(x, y).detach())        # read at the end

    Fine:
        idle time under a tenth of the step

    Where the bare step time is known, what the profiler adds to the step is not counted as idle.
    A bubble behind a wait is charged to the wait only for as long as the wait blocked the host; the rest is the
    host's own work, and would be there without the wait.
    """

    code = "OVL303"
    name = "device-starved"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        if timeline.overlap is None or timeline.span is None:
            return []
        steps = max(len(timeline.steps), 1)
        span_ms = (timeline.span[1] - timeline.span[0]) * 1e-6 / steps
        if span_ms <= 0 or timeline.overlap.idle_ms - _inflation(timeline) < LEAST_SHARE * span_ms:
            return []
        return [Hit(self._finding(case, span_ms))]

    def _finding(self, case: Case, span_ms: float) -> Finding:
        timeline = case.timeline
        overlap, steps = timeline.overlap, len(timeline.steps)
        assert overlap is not None
        idle_ms, causes = overlap.idle_ms, overlap.idle_by_cause
        culprits = [culprit for culprit in culprits_of(case) if culprit.caused_ms >= MAIN_SHARE * idle_ms]
        loading = causes.get("data loading", 0.0) >= SITE_SHARE * idle_ms
        place = loader(timeline) if loading else culprits[0].place(SITE_SHARE * idle_ms) if culprits else NOWHERE
        bound = [hit.finding.fingerprint for hit in case.hits if hit.finding.rule == "LCH501"]
        behind = [culprit.finding.fingerprint for culprit in culprits]
        parts = ", ".join(f"{cause} {say_ms(ms)}" for cause, ms in causes.items() if ms >= 0.01 * idle_ms)
        per = "a step" if steps else "in all"
        where = f"; most of the waits at {_line(culprits[0].finding)}" if culprits else ""
        return self.finding(
            place,
            related=tuple(dict.fromkeys([*behind, *bound])),
            rank=timeline.trace.rank,
            count=len(timeline.idle),
            per_step=len(timeline.idle) / steps if steps else None,
            first_ns=int(timeline.idle["ts"].min()),
            message=f"the device is idle for {say_ms(idle_ms)} of {say_ms(span_ms)} ms {per} "
            f"({idle_ms / span_ms:.0%}): {parts} ms{where}",
            fix=FIXES[next(iter(causes), "unknown")],
        )


def _inflation(timeline: Timeline) -> float:
    """Milliseconds a step that the profiler itself makes the host, and so the device's idle time, longer."""
    steps = timeline.step_figures
    if steps.profiled_ms is None or steps.bare_ms is None:
        return 0.0
    return max(0.0, steps.profiled_ms - steps.bare_ms)


def _line(finding: Finding) -> str:
    site = finding.site
    if site is None:
        return finding.op or "a runtime call"
    return f"{site.file}:{site.line}" if finding.site_source == "hook" else f"{site.function} in {site.file}"
