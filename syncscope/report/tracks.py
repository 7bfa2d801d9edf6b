"""What a trace viewer gets to show of our findings: tracks of slices, in nanoseconds of the trace.

A track for each finding in the report's order, and before them the steps; behind them why the device is idle, and for
each stream the copies and collectives with no compute beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope import rules
from syncscope.report.picture.rows import waited_for
from syncscope.report.wording import where, worth
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.timeline.overlap import compute_unions, union_of
from syncscope.timeline.tables import CAUSES

Args = dict[str, str | int | float]


@dataclass(frozen=True)
class Slice:
    """One bar of a track."""

    ts: int
    end: int
    name: str
    args: Args
    waited_for: int = -1
    """Row of ``Trace.device``: what the host waited for here; −1 nothing known."""


@dataclass(frozen=True)
class Track:
    label: str
    slices: list[Slice]
    """In order of ``ts``; none overlaps the one before it."""


def tracks(timeline: Timeline, findings: Sequence[Finding]) -> list[Track]:
    """The tracks of one trace. ``findings`` are those of its report, with savings and status."""
    found = [Track("steps", _steps(timeline))]
    hits, _ = rules.find(timeline)
    hit_of: dict[object, list[Hit]] = {}
    for hit in hits:
        hit_of.setdefault(_key(hit.finding), []).append(hit)
    waited = waited_for(timeline)
    for finding in findings:
        same = hit_of.get(_key(finding))
        rows = list(_occurrences(timeline, finding, same.pop(0) if same else Hit(finding), waited))
        found += [Track(_label(finding), slices) for slices in _side_by_side(rows)]
    found.append(Track("idle: why", _idle(timeline)))
    found += _exposed(timeline)
    return [track for track in found if track.slices]


def _key(finding: Finding) -> tuple[object, ...]:
    """What of a finding neither estimate nor policy changes."""
    return finding.rule, finding.fingerprint, finding.site, finding.at, finding.first_ns, finding.op


def _label(finding: Finding) -> str:
    place = [where(finding.site)] if finding.site else []
    return " · ".join([f"{finding.rule} {finding.name}", *place, *(f"{saving} a step" for saving in _worth(finding))])


def _worth(finding: Finding) -> list[str]:
    return worth(finding.saving_ms_per_step, finding.saving_low_ms_per_step, finding.saving_high_ms_per_step)


def _args(finding: Finding) -> Args:
    """What holds for every occurrence; a figure that is missing is left out."""
    site = finding.site
    told = {
        "rule": f"{finding.rule} {finding.name}",
        "line": where(site) if site else None,
        "expression": site.expression if site else None,
        "at": where(finding.at) if finding.at else None,
        "op": finding.op,
        "times a step": finding.per_step,
        "blocked ms a step": finding.stall_ms_per_step,
        "exposed ms a step": finding.exposed_ms_per_step,
        "saving ms a step": finding.saving_ms_per_step,
        "saving at least": finding.saving_low_ms_per_step,
        "saving at most": finding.saving_high_ms_per_step,
        "no saving because": finding.saving_null_why,
        "severity": finding.severity,
        "status": finding.status,
        "message": finding.message,
        "fix": finding.fix,
    }
    return {name: value for name, value in told.items() if value is not None}


def _occurrences(timeline: Timeline, finding: Finding, hit: Hit, waited: np.ndarray) -> Iterator[Slice]:
    """The waits of a finding on the host, else its copies on the device, else all that the trace's figures speak of."""
    args, name = _args(finding), (finding.site.expression if finding.site else None) or finding.op or finding.name
    waits, copies = timeline.waits, timeline.copies
    if hit.waits:
        rows = waits.loc[sorted(hit.waits), ["begin", "end", "copy"]]
        size = np.append(copies["bytes"].to_numpy(np.int64), -1)[rows["copy"].to_numpy(np.int64)]
        for row, begin, end, nbytes in zip(rows.index, rows["begin"], rows["end"], size, strict=True):
            yield Slice(int(begin), int(end), name, _sized(args, int(nbytes)), int(waited[row]))
    elif hit.copies:
        for begin, end, nbytes in copies.loc[sorted(hit.copies), ["ts", "end", "bytes"]].itertuples(index=False):
            yield Slice(int(begin), int(end), name, _sized(args, int(nbytes)))
    elif timeline.span is not None:
        yield Slice(*timeline.span, name, args)


def _sized(args: Args, nbytes: int) -> Args:
    return args if nbytes < 0 else {**args, "bytes": nbytes}


def _side_by_side(slices: list[Slice]) -> list[list[Slice]]:
    """Slices in as few rows as let none overlap another: two threads may wait, and two streams copy, at once."""
    rows: list[list[Slice]] = []
    for one in sorted(slices, key=lambda one: (one.ts, -one.end)):
        row = next((row for row in rows if row[-1].end <= one.ts), None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return rows


def _steps(timeline: Timeline) -> list[Slice]:
    columns = timeline.steps[["ts", "end", "number"]].itertuples(index=False)
    return [Slice(int(ts), int(end), f"step {number}", {"number": int(number)}) for ts, end, number in columns]


def _idle(timeline: Timeline) -> list[Slice]:
    found = []
    for row in timeline.idle[["ts", "end", "cause", *CAUSES]].itertuples(index=False, name=None):
        ts, end, cause, *parts = row
        args: Args = {f"{name} ms": ns * 1e-6 for name, ns in zip(CAUSES, parts, strict=True) if ns}
        found.append(Slice(int(ts), int(end), str(cause), {"cause": str(cause), **args}))
    return found


def _exposed(timeline: Timeline) -> Iterator[Track]:
    """The pieces that ``Overlap`` counts: copies inside the device are none."""
    device = timeline.trace.device
    copy = ((device["kind"] == "memcpy") & (device["direction"] != "DtoD")).to_numpy(bool)
    collective = (device["collective"] != "").to_numpy(bool)
    compute = compute_unions(device)
    for what, moving in (("copy", copy), ("collective", collective)):
        for number, stream in _streams(device[moving]):
            mine = moving & (device["device"] == number).to_numpy(bool) & (device["stream"] == stream).to_numpy(bool)
            pieces = zip(*union_of(device, mine).without(compute[number]), strict=True)
            slices = [Slice(int(ts), int(end), f"exposed {what}", {}) for ts, end in pieces]
            yield Track(f"exposed {what} · device {number} stream {stream}", slices)


def _streams(rows: pd.DataFrame) -> list[tuple[int, int]]:
    return sorted({(int(number), int(stream)) for number, stream in zip(rows["device"], rows["stream"], strict=True)})
