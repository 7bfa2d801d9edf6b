"""The tracks that a trace viewer shows of a report: slices, in nanoseconds of the trace.

The steps come first, then a track for each finding in the report's order, then why the device is idle, for each
stream the copies and collectives with no compute beside them, and the lines that its compiled kernels come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscope.report.finding_phrases import format_location, format_place
from syncscope.report.picture.rows import find_awaited
from syncscope.report.worth_phrases import describe_saving
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.kernel_lines import inner_frame
from syncscope.timeline.overlap import compute_unions
from syncscope.timeline.tables import CAUSES

Args = dict[str, str | int | float]


class Slice(msgspec.Struct, frozen=True):
    """One bar of a track."""

    ts: int
    end: int
    name: str
    args: Args
    waited_for: int = -1
    """Row of ``Trace.device``: what the host waited for here; −1 nothing known."""


class Track(msgspec.Struct, frozen=True):
    label: str
    slices: list[Slice]
    """In order of ``ts``; none overlaps the one before it."""


def make_tracks(timeline: Timeline, findings: Sequence[Finding], hits: Sequence[Hit]) -> list[Track]:
    """The tracks of one trace. ``findings`` are those of its report, with their numbers; ``hits`` is what all rules
    found in it."""
    tracks = [Track("steps", _steps(timeline))]
    hit_of = {hit.finding.number: hit for hit in hits}
    awaited = find_awaited(timeline)
    for finding in findings:
        hit = hit_of.get(finding.number) if finding.number is not msgspec.UNSET else None
        rows = list(_occurrences(timeline, finding, hit or Hit(finding), awaited))
        tracks += [Track(_label(finding), slices) for slices in _side_by_side(rows)]
    tracks.append(Track("idle: why", _idle(timeline)))
    tracks += _exposed(timeline)
    tracks += _kernel_lines(timeline)
    return [track for track in tracks if track.slices]


def _label(finding: Finding) -> str:
    place = [format_place(finding)] if finding.site or finding.annotation else []
    return " · ".join(
        [
            f"{finding.rule} {finding.name}",
            *place,
            *(f"{saving} a recorded step" for saving in describe_saving(finding)),
        ]
    )


def _args(finding: Finding) -> Args:
    """What holds for every occurrence; a figure that is missing is left out."""
    site = finding.site
    args = {
        "rule": f"{finding.rule} {finding.name}",
        "line": format_place(finding) if site or finding.annotation else None,
        "expression": site.expression if site else None,
        "at": format_location(finding.at) if finding.at else None,
        "op": finding.op,
        "times a step": finding.per_step,
        "blocked ms a step": finding.stall_ms_per_step,
        "exposed ms a step": finding.exposed_ms_per_step,
        "phase": finding.phase,
        "times a step of the run": finding.run_per_step,
        "times in the run": finding.occurrences,
        "saving ms a step": finding.saving_ms_per_step,
        "saving at least": finding.saving_low_ms_per_step,
        "saving at most": finding.saving_high_ms_per_step,
        "saving ms a step of the run": finding.run_saving_ms_per_step,
        "no saving because": finding.saving_null_why,
        "severity": finding.severity,
        "status": finding.status,
        "message": finding.message,
        "fix": finding.fix,
    }
    return {name: value for name, value in args.items() if value is not None}


def _occurrences(timeline: Timeline, finding: Finding, hit: Hit, awaited: Ints) -> Iterator[Slice]:
    """The waits of a finding on the host, else its copies on the device, else the span of the trace's figures."""
    args, name = _args(finding), (finding.site.expression if finding.site else None) or finding.op or finding.name
    if hit.waits:
        waits = timeline.waits.take(sorted(hit.waits))
        size = np.append(timeline.copies.bytes, -1)[waits.copy]
        columns = (waits.begin.tolist(), waits.end.tolist(), size.tolist(), awaited[waits.row].tolist())
        for begin, end, nbytes, row in zip(*columns, strict=True):
            yield Slice(begin, end, name, _sized(args, nbytes), row)
    elif hit.copies:
        copies = timeline.copies.take(sorted(hit.copies))
        for begin, end, nbytes in zip(copies.ts.tolist(), copies.end.tolist(), copies.bytes.tolist(), strict=True):
            yield Slice(begin, end, name, _sized(args, nbytes))
    elif timeline.span is not None:
        yield Slice(*timeline.span, name, args)


def _sized(args: Args, nbytes: int) -> Args:
    return args if nbytes < 0 else {**args, "bytes": nbytes}


def _side_by_side(slices: list[Slice]) -> list[list[Slice]]:
    """Slices in as few rows as possible in which none overlaps another: two threads may wait at once."""
    rows: list[list[Slice]] = []
    for one in sorted(slices, key=lambda one: (one.ts, -one.end)):
        row = next((row for row in rows if row[-1].end <= one.ts), None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return rows


def _steps(timeline: Timeline) -> list[Slice]:
    steps = timeline.steps
    columns = zip(steps.ts.tolist(), steps.end.tolist(), steps.number.tolist(), strict=True)
    return [Slice(ts, end, f"step {number}", {"number": number}) for ts, end, number in columns]


def _idle(timeline: Timeline) -> list[Slice]:
    bubbles = timeline.bubbles
    slices = []
    columns = (bubbles.ts.tolist(), bubbles.end.tolist(), bubbles.cause, bubbles.by_cause.tolist())
    for ts, end, cause, parts in zip(*columns, strict=True):
        args: Args = {f"{name} ms": ns * 1e-6 for name, ns in zip(CAUSES, parts, strict=True) if ns}
        slices.append(Slice(ts, end, str(cause), {"cause": str(cause), **args}))
    return slices


def _exposed(timeline: Timeline) -> Iterator[Track]:
    """The pieces that ``Overlap`` counts: copies inside the device are none."""
    activities = timeline.activities
    copies = activities.take((activities.kind == "memcpy") & (activities.direction != "DtoD"))
    collectives = activities.take(activities.collective != "")
    compute = compute_unions(activities)
    for what, moving in (("copy", copies), ("collective", collectives)):
        for number, stream in sorted(set(zip(moving.device.tolist(), moving.stream.tolist(), strict=True))):
            mine = moving.take((moving.device == number) & (moving.stream == stream))
            ts, end = Union(mine.ts, mine.end).without(compute[number])
            slices = [Slice(*piece, f"exposed {what}", {}) for piece in zip(ts.tolist(), end.tolist(), strict=True)]
            yield Track(f"exposed {what} · device {number} stream {stream}", slices)


def _kernel_lines(timeline: Timeline) -> Iterator[Track]:
    """A slice for each kernel of which the recording knows a line, as long as the kernel runs."""
    known = {name: list(map(_format_line, places)) for name, places in timeline.kernel_lines.items()}
    rows = timeline.activities
    rows = rows.take(np.array([name in known for name in rows.name.tolist()], dtype=bool))
    rows = rows.take(np.argsort(rows.ts, kind="stable"))
    for device, stream in sorted(set(zip(rows.device.tolist(), rows.stream.tolist(), strict=True))):
        mine = rows.take((rows.device == device) & (rows.stream == stream))
        slices = []
        for ts, end, name in zip(mine.ts.tolist(), mine.end.tolist(), mine.name.tolist(), strict=True):
            lines = {f"line {number}": line for number, line in enumerate(known[name], 1)}
            slices.append(Slice(ts, end, known[name][0], {"kernel": name, **lines}))
        for row in _side_by_side(slices):
            yield Track(f"lines · device {device} stream {stream}", row)


def _format_line(place: Place) -> str:
    """``train.py:9  t.tanh() * 3``, and the line of a library that it leads to."""
    if place.site is None:
        return "line unknown"
    text = "  ".join([format_location(place.site), *([place.site.expression] if place.site.expression else [])])
    inside = inner_frame(place)
    return f"{text}  ({format_location(inside)})" if inside is not None else text
