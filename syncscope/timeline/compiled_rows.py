"""What a trace's own rows say of ``torch.compile``, where nothing was recorded about it.

PyTorch marks each run of a compiled function (``Torch-Compiled Region: FUNCTION/VARIANT``), and, from 2.6 on, each
compilation (``… (dynamo_timed)``). A marked function that runs inside of another is what comes behind a break in its
graph, or what is called at the break; one that runs inside of a graph is the body of an operator, and breaks none.
Neither the line nor the reason is in the trace; where it has stacks, the line is that of the ``def`` around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from syncscope.patterns import compile_later
from syncscope.schema.compiling import CompileEvent, CompileKind
from syncscope.schema.counting import RecordedPhase
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.compiled_regions import GRAPH, REGION
from syncscope.timeline.compiling import BetweenGraphs, Compiled, CompiledEvent, CompiledSpan
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.loads import find_marks
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.places import NOWHERE, Place, Places
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Calls, Marks, Ops, Steps
from syncscope.trace.quantiles import median

COMPILATION = compile_later(r"(?:_compile\.compile_inner|entire_frame_compile) \(dynamo_timed\)$")
"""Dynamo's name for one compilation of a function, with all that it calls."""

VARIANT = compile_later(r"\d+/(?P<variant>\d+)")

NEWER = compile_later(r"Pregraph bytecode$|.*\(dynamo_timed\)$")
"""Rows of versions that mark compilations: what runs before a graph (torch ≥ 2.7), and the compiler's own work."""

MOST_RUNS = 100
"""Of a function, that are looked at for what is between its graphs."""

UNMARKED = "torch._dynamo's marks of what it compiles"

UNNAMED = RecordedPhase(name="", kind="other")
"""A trace does not say what the program does."""


def read_compiled(ops: Ops, annotations: Marks, calls: Calls, steps: Steps, places: Places) -> Compiled | None:
    """What the rows say, of the steps where there are any; ``None`` where no row is of a compiled function."""
    regions = _matching((ops, annotations), REGION)
    compilations = _matching((ops, annotations), COMPILATION)
    if not len(regions) and not len(compilations):
        return None
    graphs = find_marks(GRAPH.pattern, ops, annotations)
    events = [
        *_breaks(_of_steps(regions, steps), graphs, calls, places),
        *_compilations(compilations, regions, steps, places),
    ]
    events = [_numbered(event, number) for number, event in enumerate(events)]
    marked = any(table.named(NEWER.match).any() for table in (ops, annotations))
    spans = tuple(span for event in events for span in event.spans)
    return Compiled(tuple(events), spans, 0, () if marked else (UNMARKED,))


def _breaks(regions: Marks, graphs: Marks, calls: Calls, places: Places) -> Iterator[CompiledEvent]:
    """An event for each function, by its line or its number, that runs in parts inside of each other. Its ``graphs`` is
    how many parts a run has at most."""
    parent = _parents(regions, graphs)
    inside = np.flatnonzero(parent >= 0)
    root = np.arange(len(regions))
    while (nested := parent[root] >= 0).any():
        root[nested] = parent[root[nested]]
    outer, parts = np.unique(root[inside], return_counts=True)
    found: dict[tuple[Place, str | None], dict[int, int]] = {}
    for row, inner in zip(outer.tolist(), parts.tolist(), strict=True):
        found.setdefault((_place(places, regions, row), _id(regions.name[row])), {})[row] = inner + 1
    for (place, known), parts_of in found.items():
        event = CompileEvent(
            phase=0, kind="break", count=len(parts_of), compile_ids=_named(known), graphs=max(parts_of.values())
        )
        runs = regions.take(np.array(list(parts_of), dtype=np.int64))
        yield CompiledEvent(event, UNNAMED, place, None, between=_between(runs, graphs, calls))


def _parents(regions: Marks, graphs: Marks) -> Ints:
    """The region around each, −1 where there is none, or where a graph of that region is around it, too: an operator
    that the graph calls was compiled by its author."""
    parent = Nesting(regions.ts, regions.end, regions.tid).parent.copy()
    around = Nesting(graphs.ts, graphs.end, graphs.tid).innermost(regions.tid, regions.ts, regions.end)
    rows = np.flatnonzero((parent >= 0) & (around >= 0))
    parent[rows[graphs.ts[around[rows]] >= regions.ts[parent[rows]]]] = -1
    return parent


def _between(runs: Marks, graphs: Marks, calls: Calls) -> BetweenGraphs | None:
    """``None`` where a run has no row of a graph."""
    launches = calls.take(calls.do(COMMANDS))
    host_ns, launched = [], []
    columns = (column[:MOST_RUNS].tolist() for column in (runs.ts, runs.end, runs.tid))
    for ts, end, tid in zip(*columns, strict=True):
        mine = graphs.take((graphs.tid == tid) & (graphs.ts >= ts) & (graphs.ts < end))
        if not len(mine):
            return None
        inside = Union(mine.ts, mine.end)
        host_ns.append(end - ts - inside.clipped(ts, end).length)
        begins: Ints = launches.ts[(launches.tid == tid) & (launches.ts >= ts) & (launches.ts < end)]
        launched.append(int((inside.within(begins, begins + 1) == 0).sum()))
    return BetweenGraphs(int(median(host_ns)), int(median(launched)))


def _compilations(compilations: Marks, regions: Marks, steps: Steps, places: Places) -> Iterator[CompiledEvent]:
    """An event for each compilation in the steps. The function that runs next on the thread is what was compiled: a
    second variant of it is one that was compiled again."""
    outermost = compilations.take(Nesting(compilations.ts, compilations.end, compilations.tid).parent < 0)
    mine = _of_steps(outermost, steps)
    for row, step in enumerate(step_of(steps, mine.ts).tolist()):
        ts, end, tid = int(mine.ts[row]), int(mine.end[row]), int(mine.tid[row])
        following = np.flatnonzero((regions.tid == tid) & (regions.ts >= end))
        compiled = _id(regions.name[following[0]]) if len(following) else None
        variant = VARIANT.match(compiled or "")
        kind: CompileKind = "recompile" if variant and int(variant["variant"]) > 0 else "compile"
        event = CompileEvent(phase=0, kind=kind, count=1, compile_ids=_named(compiled), graphs=1, time_ns=end - ts)
        span = CompiledSpan(0, kind, ts, end, tid, step)
        yield CompiledEvent(event, UNNAMED, _place(places, mine, row), None, (span,))


def _numbered(event: CompiledEvent, number: int) -> CompiledEvent:
    return replace(event, spans=tuple(replace(span, event=number) for span in event.spans))


def _place(places: Places, marks: Marks, row: int) -> Place:
    """The program's function around a row, where the trace has stacks."""
    one = slice(row, row + 1)
    number = int(places.of_frames(marks.ts[one], marks.end[one], marks.tid[one])[0])
    place = places.all[number]
    return replace(NOWHERE, source="compile") if place is NOWHERE or place.site is None else place


def _matching(tables: tuple[Ops, Marks], pattern: re.Pattern[str]) -> Marks:
    """The rows that match of the first table that has any; versions of PyTorch differ in which it is."""
    found = [table.take(table.named(pattern.match)) for table in tables]
    return next((marks for marks in found if len(marks)), found[-1])


def _of_steps(marks: Marks, steps: Steps) -> Marks:
    """Those that begin in a step; all where the trace has no steps."""
    return marks.take(step_of(steps, marks.ts) >= 0) if len(steps) else marks


def _id(name: str) -> str | None:
    """``FUNCTION/VARIANT`` of a region's name."""
    match = REGION.match(name)
    return match["id"] if match else None


def _named(compile_id: str | None) -> tuple[str, ...]:
    return () if compile_id is None else (compile_id,)
