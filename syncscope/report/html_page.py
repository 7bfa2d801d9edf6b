"""What the HTML page shows above its timeline: the verdict, the figures and the parts of a step, from the report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.report.device_time import find_whole
from syncscope.report.gpu_phrases import describe_gpu
from syncscope.report.numbers import count, milliseconds
from syncscope.report.picture.lanes import Lanes, Spot
from syncscope.report.picture.of_trace import find_picture
from syncscope.report.trace_phrases import label_by_file, was_shared
from syncscope.report.worth_phrases import answer_asked
from syncscope.rules import RULES
from syncscope.schema.findings import Finding
from syncscope.schema.idle import QUEUED, label_cause
from syncscope.schema.report import Overlap, Report, Steps, TraceInfo

LEAST_HEADLINE = 0.05
"""Idle or exposed time is the verdict only if it takes at least this share of a step."""

LEAST_PIECE = 0.01
"""A cause of idle time has its own part of the bar if it takes at least this share of a step."""

BECAUSE = {
    "wait": "the host was waiting and had queued nothing",
    "warm-up": "the host did what is done once: it captured graphs, compiled, or loaded and chose kernels",
    "single pause": "it paused in one step, and in no other at the same place",
    "data loading": "the host was loading data",
    "allocation": "the host was allocating memory",
    "pageable copy": "the host was inside copies of pageable memory",
    "host collective": "the host waited for other ranks in collectives of the hosts' own (gloo)",
    "host idle": "the host slept, or waited for a thread or another process",
    "collective": "the host was starting collectives, or the device went from one to the next",
    "launching": "the host launched small pieces of work one by one",
    "host work": "the host was busy between launches",
    "launch latency": "launches were on their way to the device",
    "queued on device": "work was queued, and the device held it back",
    "unknown": "the trace does not show it",
}
"""Causes of idle time in a sentence."""

BEHIND_ANOTHER = "work was queued, most likely behind the work of another process on the device"
"""In the place of ``queued on device`` where the device was shared."""

SHARED = "Other processes used the device too: times are not this program's alone."


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of the step's bar; the pieces lie end to end."""

    key: str
    """``compute``, ``copy_hidden``, ``comm_hidden``, ``copy_exposed``, ``comm_exposed``, ``other`` or ``idle``."""
    label: str
    ms: float
    share: float | None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A number under the verdict; ``ms`` is ``None`` where it is unknown."""

    label: str
    ms: float | None
    share: float | None = None
    note: str = ""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """One trace of the report."""

    label: str
    rank: int | None
    details: tuple[str, ...]
    figures: tuple[Figure, ...]
    parts: tuple[Part, ...]
    lanes: int | None
    """Index of its lanes in the page's data, ``None`` when they were not made."""
    owners: tuple[int | None, ...]
    """For each of the lanes' spots the finding (index in the report) that its waits or copies belong to, if any."""
    first: dict[int, int]
    """Where its findings (indices in the report) first occur, in the lanes' time."""


def make_views(report: Report, lanes: Sequence[Lanes]) -> tuple[View, ...]:
    """One view a trace, in the report's order."""
    labels = label_by_file(report.traces)
    out = []
    for number, (info, label) in enumerate(zip(report.traces, labels, strict=True)):
        at = find_picture(info, lanes)
        mine = {place: finding for place, finding in enumerate(report.findings) if finding.trace == number}
        wait_ms = lanes[at].blocked_ms_per_step if at is not None else _blocked_ms(info)
        view = View(
            label=label,
            rank=info.rank,
            details=write_details(report, number),
            figures=make_figures(info, wait_ms),
            parts=split_step(info.overlap, was_shared(info)),
            lanes=at,
            owners=_owners(mine, lanes[at].spots) if at is not None else (),
            first=_first(mine, lanes[at].start_ns) if at is not None else {},
        )
        out.append(view)
    return tuple(out)


def _blocked_ms(info: TraceInfo) -> float | None:
    """Milliseconds a step in which some thread is blocked, for a trace without lanes."""
    blocked = info.each_step.blocked_ms if info.each_step else None
    return sum(blocked) / len(blocked) if blocked else None


def _first(findings: dict[int, Finding], start_ns: int) -> dict[int, int]:
    """When each finding first occurs. One without a moment of its own has that of another finding at its line."""
    known = {f.site: f.first_ns for f in reversed(findings.values()) if f.site is not None and f.first_ns is not None}
    begins = {
        place: known.get(one.site) if one.first_ns is None and one.site is not None else one.first_ns
        for place, one in findings.items()
    }
    return {place: first_ns - start_ns for place, first_ns in begins.items() if first_ns is not None}


def _owners(findings: dict[int, Finding], spots: Sequence[Spot]) -> tuple[int | None, ...]:
    """For each spot the first of its findings that is in the report; a selection of rules leaves some out."""
    index = {finding.number: place for place, finding in findings.items()}
    return tuple(next((index[number] for number in spot.findings if number in index), None) for spot in spots)


def write_details(report: Report, trace: int) -> tuple[str, ...]:
    """The sentences under the verdict: what was not seen, the longest cause of idle time, the state of the GPU, and
    what was asked beside the findings."""
    info = report.traces[trace]
    out = [*_tell_unseen(report, info), *([SHARED] if was_shared(info) else [])]
    overlap, whole = info.overlap, find_whole(info)
    if overlap is not None and whole and overlap.idle_by_cause and overlap.idle_ms > LEAST_HEADLINE * whole:
        cause = max(overlap.idle_by_cause, key=overlap.idle_by_cause.__getitem__)
        out.append(f"The longest cause of idle time: {_explain(cause, info)}.")
    out += describe_gpu(info.gpu)
    found = any(finding.status == "unexpected" and finding.trace == trace for finding in report.findings)
    if not found and len(report.traces) > 1:  # of a single trace the lines above say so
        mine = (entry for entry in report.not_checked if entry.trace == trace)
        unseen = len({entry.rule for entry in mine if not (entry.partial or entry.needless or entry.rest)})
        some = f" {count(unseen, 'rule')} could not be checked." if unseen else ""
        out.append("No unexpected findings." + some)
    return (*out, *answer_asked(info))


def _explain(cause: str, info: TraceInfo) -> str:
    """A cause of idle time in a sentence."""
    return BEHIND_ANOTHER if cause == QUEUED and was_shared(info) else BECAUSE.get(cause, label_cause(cause))


def _tell_unseen(report: Report, info: TraceInfo) -> list[str]:
    """What was lost of a trace, and which traces and ranks are not in the report."""
    unread = len(report.unread)
    texts = [*info.lost, *(missing.text for missing in report.missing_ranks)]
    texts += [f"{count(unread, 'trace')} could not be read"] if unread else []
    return [f"Not all was seen: {text}." for text in texts]


def make_figures(info: TraceInfo, wait_ms: float | None) -> tuple[Figure, ...]:
    """The row of numbers under the verdict, all of the recorded step. Collectives have one where there are any."""
    overlap, whole = info.overlap, find_whole(info)

    def part(label: str, ms: float | None, note: str = "") -> Figure:
        return Figure(label=label, ms=ms, share=None if ms is None or not whole else ms / whole, note=note)

    figures = (
        _step(info.steps),
        part("Device busy", overlap.device_busy_ms if overlap else None),
        part("Device idle", overlap.idle_ms if overlap else None),
        part("Host blocked", wait_ms, "waiting for the device"),
        part("Copies exposed", overlap.copy_exposed_ms if overlap else None, "no compute beside them"),
        part("Collectives exposed", overlap.comm_exposed_ms if overlap else None, "no compute beside them"),
    )
    return figures if overlap is None or overlap.comm_ms or (info.world_size or 1) > 1 else figures[:-1]


def _step(steps: Steps) -> Figure:
    """The length of the recorded step, which is that of all figures beside it, and what it is without the profiler."""
    if not steps.count:
        return Figure(label="Recorded step", ms=steps.profiled_ms, note="no steps in the trace")
    note = "under the profiler" + (f", mean of {steps.count}" if steps.count > 1 else "")
    if steps.bare_ms is not None:
        note += f"; {milliseconds(steps.bare_ms)} without it"
    return Figure(label="Recorded step", ms=steps.profiled_ms, note=note)


def split_step(overlap: Overlap | None, shared: bool = False) -> tuple[Part, ...]:
    """The step's bar. Hidden copies and collectives lie beside compute, so they are cut out of its piece. ``shared`` is
    whether other processes used the device too."""
    if overlap is None:
        return ()
    total = overlap.device_busy_ms + overlap.idle_ms
    copy_hidden = max(0.0, overlap.copy_ms - overlap.copy_exposed_ms)
    comm_hidden = max(0.0, overlap.comm_ms - overlap.comm_exposed_ms)
    other = overlap.device_busy_ms - overlap.compute_ms - overlap.copy_exposed_ms - overlap.comm_exposed_ms
    pieces = [
        ("compute", "Compute alone", overlap.compute_ms - copy_hidden - comm_hidden),
        ("copy_hidden", "Copy, hidden by compute", copy_hidden),
        ("comm_hidden", "Collective, hidden by compute", comm_hidden),
        ("copy_exposed", "Copy, exposed", overlap.copy_exposed_ms),
        ("comm_exposed", "Collective, exposed", overlap.comm_exposed_ms),
        ("other", "Other device work", other),
        *(("idle", label, ms) for label, ms in _idle(overlap, LEAST_PIECE * total, shared)),
    ]
    return tuple(
        Part(key=key, label=label, ms=ms, share=ms / total if total else None) for key, label, ms in pieces if ms > 1e-6
    )


def _idle(overlap: Overlap, least: float, shared: bool) -> list[tuple[str, float]]:
    """Idle time by cause, the greatest first; what is under ``least`` ms is one piece when it is several causes."""
    causes = sorted(overlap.idle_by_cause.items(), key=lambda pair: -pair[1])
    causes.append(("cause unknown", max(0.0, overlap.idle_ms - sum(overlap.idle_by_cause.values()))))
    small = [ms for _, ms in causes if 0 < ms < least]
    pieces = [(f"Idle: {label_cause(cause, shared)}", ms) for cause, ms in causes if ms >= least or len(small) == 1]
    return pieces if len(small) < 2 else [*pieces, ("Idle: other causes", sum(small))]


class RuleDoc(msgspec.Struct, frozen=True, kw_only=True):
    """The documentation of one rule."""

    code: str
    name: str
    severity: str
    summary: str
    doc: str


def document_rules(report: Report) -> tuple[RuleDoc, ...]:
    """Documentation of the rules that the report speaks of: first those that found something, each part in the order
    of their numbers."""
    found = {finding.rule for finding in report.findings}
    spoken_of = found | {entry.rule for entry in report.not_checked if not entry.needless}
    return tuple(
        RuleDoc(code=rule.code, name=rule.name, severity=rule.severity, summary=rule.summary, doc=_body(rule.doc))
        for rule in sorted(RULES, key=lambda rule: (rule.code not in found, rule.code[3:]))
        if rule.code in spoken_of
    )


def _body(doc: str) -> str:
    """What follows the first line."""
    return doc.partition("\n")[2].strip("\n")
