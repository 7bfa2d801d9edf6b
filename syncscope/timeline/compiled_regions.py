"""The compiled graphs that run in a trace's steps, by PyTorch's own marks of them (torch ≥ 2.2)."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from syncscope.patterns import compile_later
from syncscope.schema.compiling import CompiledRegion, RecordedRegions
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Bools
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Calls, Marks, Objects, Ops, Steps

REGION = compile_later(r"Torch-Compiled Region(?:: (?P<id>\S+))?$")
"""What Dynamo runs in the place of a function: a graph, and then the rest of the function, other regions among it."""
GRAPH = compile_later(r"## Call CompiledFxGraph |CompiledFunction(?:Backward)?$|CUDAGraph.*replay")
"""The graphs themselves, as Inductor and autograd name them."""


def find_regions(ops: Ops, annotations: Marks, calls: Calls, steps: Steps) -> RecordedRegions | None:
    """The regions that begin in the steps, and what they launch; ``None`` where none does."""
    tables = (ops, annotations)
    found = [(table, _matching(table.name, REGION)) for table in tables]
    table, rows = next(((table, rows) for table, rows in found if rows.any()), (ops, np.zeros(len(ops), dtype=bool)))
    marks = table.take(rows)
    inside = step_of(steps, marks.ts) >= 0
    if not inside.any():
        return None
    launches = calls.take(calls.do(COMMANDS))
    launches = launches.take(step_of(steps, launches.ts) >= 0)
    innermost = Nesting(marks.ts, marks.end, marks.tid).innermost(launches.tid, launches.ts, launches.end)
    names = [match["id"] if (match := REGION.match(name)) else None for name in marks.name.tolist()]
    count = Counter(name for name, here in zip(names, inside.tolist(), strict=True) if here)
    launched = Counter(names[row] for row in innermost.tolist() if row >= 0)
    return RecordedRegions(
        steps=len(steps),
        regions=tuple(
            CompiledRegion(compile_id=name, count=times, launches=launched[name]) for name, times in count.items()
        ),
        launches_between=_between(tables, launches, innermost >= 0),
    )


def _between(tables: tuple[Ops, Marks], launches: Calls, in_region: Bools) -> int | None:
    """Launches in a region that are in no graph; ``None`` where graphs have no marks, or launches no rows."""
    marked, in_graph = False, np.zeros(len(launches), dtype=bool)
    for table in tables:
        graphs = table.take(_matching(table.name, GRAPH))
        marked |= len(graphs) > 0
        nesting = Nesting(graphs.ts, graphs.end, graphs.tid)
        in_graph |= nesting.innermost(launches.tid, launches.ts, launches.end) >= 0
    return int((in_region & ~in_graph).sum()) if marked and len(launches) else None


def _matching(names: Objects, pattern: re.Pattern[str]) -> Bools:
    """Which names (n,) match. Each is tested once."""
    matches = {name: pattern.match(name) is not None for name in set(names.tolist())}
    return np.array([matches[name] for name in names.tolist()], dtype=bool)
