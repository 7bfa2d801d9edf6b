"""Hold the rows of a trace against each other: what one kind of row says must be there, and is not, was lost.

PyTorch's warnings, the recorded calls and the count of the run are witnesses of waits, device rows of the calls that
launched them, calls of device rows, ops of what they always do, and the events of when the steps were. Each check asks
only for what every undamaged trace holds, so that a program that never waits stays clean: the profiler waits itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from syncscope.timeline.disagreement import Disagreement, disagree
from syncscope.timeline.intervals import are_among
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.witnesses_of_launches import (
    about_clocks,
    about_commands,
    about_devices,
    about_empty_steps,
    about_launches,
    about_launching_ops,
)
from syncscope.timeline.witnesses_of_numbers import about_numbers
from syncscope.timeline.witnesses_of_waits import (
    about_counts,
    about_reads,
    about_recorded_calls,
    about_recorded_copies,
    about_sync_records,
    about_warnings,
)
from syncscope.trace.sets import different

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

UNREADABLE = "\ufffd"
"""In the place of bytes that are not UTF-8."""


def find_disagreements(timeline: Timeline) -> tuple[Disagreement, ...]:
    """What the witnesses disagree about."""
    found = [*_about_steps(timeline)]
    if len(timeline.calls):
        found += [
            *about_warnings(timeline),
            *about_recorded_calls(timeline),
            *about_recorded_copies(timeline),
            *about_sync_records(timeline),
            *about_reads(timeline),
            *about_launches(timeline),
            *about_devices(timeline),
            *about_commands(timeline),
            *about_clocks(timeline),
            *(about_launching_ops(timeline) or about_numbers(timeline)),
            *about_empty_steps(timeline),
            *_about_ops(timeline),
            *_about_names(timeline),
            *about_counts(timeline),
        ]
    return tuple(found)


def _about_ops(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Runtime calls of ops that are not there; those inside an annotation may be the annotation's own."""
    calls, ops = timeline.trace.rows["runtime"], timeline.trace.rows["ops"]
    if not len(ops):
        return ()
    external = calls["external_id"]
    orphans = (external > 0) & (calls["ts"] > ops["ts"][0]) & ~are_among(external, ops["external_id"])
    rows = calls.take(orphans)
    marks = timeline.annotations
    marks = marks.take(np.array([not name.startswith("ProfilerStep#") for name in marks.name.tolist()], dtype=bool))
    nesting = Nesting(marks.ts, marks.end, marks.tid)
    around = nesting.innermost(rows["tid"], rows["ts"], rows["end"])
    missing = different(external[orphans][around < 0])
    return disagree(
        "cpu_op", len(missing),
        "an op of PyTorch that made a runtime call is not in the trace",
        "{} ops of PyTorch that made runtime calls are not in the trace",
    )  # fmt: skip


def _about_names(timeline: Timeline) -> tuple[Disagreement, ...]:
    unreadable = int(timeline.calls.named(lambda name: UNREADABLE in name).sum())
    return disagree(
        "runtime", unreadable,
        "the name of a runtime call is not readable",
        "the names of {} runtime calls are not readable",
    )  # fmt: skip


def _about_steps(timeline: Timeline) -> tuple[Disagreement, ...]:
    steps, trace = timeline.steps, timeline.trace
    tables = [trace.rows[name] for name in ("runtime", "ops", "device", "frames") if len(trace.rows[name])]
    if not len(steps) or not tables:
        return ()
    first = min(int(table["ts"][0]) for table in tables)
    last = max(int(table["end"].max()) for table in tables)
    outside = (steps.end < first) | (steps.ts > last)
    begun = sum(np.searchsorted(table["ts"], steps.end) - np.searchsorted(table["ts"], steps.ts) for table in tables)
    if trace.step_source == "profiler":
        outside[-1] &= bool(outside[:-1].any()) or len(steps) == 1  # the program may have ended after its last step()
    elif trace.step_source == "seconds":
        outside &= bool(outside.all())  # the program may have done nothing for a while
    if outside.any():
        return disagree(
            "steps", int(outside.sum()),
            "a step lies outside the time of all events",
            "{} steps lie outside the time of all events",
        )  # fmt: skip
    return () if np.any(begun > 0) else (Disagreement("steps", "no event lies inside the steps"),)
