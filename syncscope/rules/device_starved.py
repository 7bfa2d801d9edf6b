from __future__ import annotations

from syncscope.advice import UNCACHED, Advice
from syncscope.rules.base.culprits import find_culprits, find_slowest_loader
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.rules.launch_bound import LaunchBound
from syncscope.schema.findings import Finding
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.allocations import is_uncached
from syncscope.timeline.places import NOWHERE

LEAST_SHARE = 0.1
"""The device counts as starved if it is idle for at least this share of the span."""

MAIN_SHARE = 0.1
"""A finding is named as a cause if it explains at least this share of the idle time."""

SITE_SHARE = 0.5
"""This finding gets the site of another one if the bubbles after the other's waits are at least this share of the idle
time."""


BACK_TO_BACK, SPACE_NS = "back-to-back", 10_000
"""The name for a device that waits for nothing: most of the time between its queued kernels is in spaces of less than
this."""


class DeviceStarved(RankRule):
    """The device is idle for a tenth of the step or more.

    Why it costs: a device that has nothing queued is paid for and does nothing. Either a wait emptied the queue and
    the host had to start filling it again; or the host did something else than launch: loading data, allocating, a
    collective, work of its own; or it launched one small thing after the other (see LCH501). There is one finding a
    trace, with the idle time by cause, at the wait or the loader that caused the most of it.

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
    A bubble behind a wait is charged to the wait only for as long as the wait blocked the host. The rest is the host's
    own work, and would be there without the wait.
    """

    code = "OVL303"
    name = "device-starved"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = NoQuestion("it sums up what others cause: their savings are its own")
    needs_async_launches = True
    advice = (
        Advice("wait", "Remove the waits named here first: the host can then launch ahead of the device."),
        Advice("data loading", "Load ahead: more DataLoader workers, prefetch_factor, persistent_workers."),
        Advice(
            f"{UNCACHED} allocation",
            "The caching allocator is off, so the driver allocates and frees every tensor: leave out "
            "PYTORCH_NO_CUDA_MEMORY_CACHING.",
        ),
        Advice("allocation", "Let the caching allocator warm up; leave out empty_cache(), and fix shapes that change."),
        Advice("pageable copy", "Copy from pinned memory with non_blocking=True."),
        Advice(
            "collective",
            "Start the collective earlier or with async_op=True, and keep object collectives and barriers out.",
        ),
        Advice(
            "launching",
            "Launch fewer and larger kernels: torch.compile, CUDA graphs, larger batches.",
        ),
        Advice("host work", "Move it out of the thread that launches, or to where the device still has work queued."),
        Advice("launch latency", "Launch fewer, larger kernels: torch.compile, CUDA graphs, larger batches."),
        Advice(
            "shared queued on device",
            "The device was shared, and work was queued behind that of another process: record again on a device that "
            "nobody else uses.",
        ),
        Advice(
            f"{BACK_TO_BACK} queued on device",
            "These are the spaces between kernels that are queued already: run fewer and larger ones, which "
            "torch.compile makes by fusing them, or larger batches.",
        ),
        Advice(
            "queued on device",
            "Look at what the streams wait for: events between them, or a collective of another rank.",
        ),
        Advice("", "Record the runtime calls too (ProfilerActivity.CPU and CUDA), to see what the host did."),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline = inspection.timeline
        if timeline.overlap is None or timeline.span is None:
            return []
        steps = max(len(timeline.steps), 1)
        span_ms = (timeline.span[1] - timeline.span[0]) * 1e-6 / steps
        if span_ms <= 0 or timeline.overlap.idle_ms - _profiler_ms(timeline) < LEAST_SHARE * span_ms:
            return []
        return [Hit(self._finding(inspection, span_ms))]

    def _finding(self, inspection: Inspection, span_ms: float) -> Finding:
        timeline = inspection.timeline
        overlap, steps, bubbles = timeline.overlap, len(timeline.steps), timeline.bubbles
        assert overlap is not None
        idle_ms, causes = overlap.idle_ms, overlap.idle_by_cause
        culprits = [culprit for culprit in find_culprits(inspection) if culprit.caused_ms >= MAIN_SHARE * idle_ms]
        loading = causes.get("data loading", 0.0) >= SITE_SHARE * idle_ms
        place = culprits[0].place(SITE_SHARE * idle_ms) if culprits else NOWHERE
        others = [culprit.finding for culprit in culprits]
        others += [hit.finding for hit in inspection.hits if hit.finding.rule == LaunchBound.code]
        parts = ", ".join(f"{cause} {milliseconds(ms)}" for cause, ms in causes.items() if ms >= 0.01 * idle_ms)
        per = "a step" if steps else "in all"
        shared = ("shared",) if timeline.processes_on_device else ()
        where = f"; most of the waits at {_line(culprits[0].finding)}" if culprits else ""
        where += "; other processes used the device too" if shared else ""
        return self.finding(
            find_slowest_loader(timeline) if loading else place,
            related=tuple(dict.fromkeys(finding.fingerprint for finding in others)),
            rank=timeline.trace.rank,
            count=len(bubbles),
            per_step=len(bubbles) / steps if steps else None,
            first_ns=int(bubbles.ts.min()),
            message=f"the device is idle for {milliseconds(idle_ms)} of {milliseconds(span_ms)} {per} "
            f"({idle_ms / span_ms:.0%}): {parts}{where}",
            fix=self.advise(*shared, *_circumstances(timeline), *next(iter(causes), "unknown").split()),
        )


def _circumstances(timeline: Timeline) -> list[str]:
    """What the advice on a cause depends on."""
    queued = timeline.bubbles.due_to("queued on device")
    found = [UNCACHED] if is_uncached(timeline.waits, timeline.calls) else []
    if 2 * queued[queued < SPACE_NS].sum() > queued.sum():
        found.append(BACK_TO_BACK)
    return found


def _profiler_ms(timeline: Timeline) -> float:
    """Milliseconds a step by which the profiler makes the host's, and so the device's idle time, longer."""
    steps = timeline.step_figures
    if steps.profiled_ms is None or steps.bare_ms is None:
        return 0.0
    return max(0.0, steps.profiled_ms - steps.bare_ms)


def _line(finding: Finding) -> str:
    site = finding.site
    if site is None:
        return finding.op or "a runtime call"
    return f"{site.file}:{site.line}" if finding.site_source == "hook" else f"{site.function} in {site.file}"
