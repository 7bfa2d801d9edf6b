"""How long the savings take: ``python -m benchmarks.replay [TRACE] [CALLS] [QUESTIONS]``.

The recorded steps of a real trace are repeated until they hold 100,000 runtime calls, and thirty questions are asked,
each about another thirtieth of the waits and launches. Needs no GPU. Times are those of the processor, and in all those
of the clock, too: they differ where others use the machine.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.fit import fit
from syncscope.estimate.profiler_cost import MEASURED
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario
from syncscope.estimate.savings import replay_savings
from syncscope.timeline import Timeline
from syncscope.trace import Trace, load
from syncscope.trace.rows import Rows, Texts

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
TRACES = (FIXTURES / "generate" / "trace.json.gz", FIXTURES / "small_copies" / "trace.json.gz")
"""One that launches much and waits little, one with a wait for every three calls."""


SCENARIOS = (Scenario(0.95), Scenario(0.85), Scenario(1.05))
"""Where a trace does not fit, its questions are asked all the same."""


def repeated(trace: Trace, calls: int) -> Trace:
    """The trace's steps over and over, until they hold as many runtime calls."""
    steps = trace.rows["steps"]
    begin, end = int(steps["ts"].min()), int(steps["end"].max())
    parts = {name: _inside(trace.rows[name], begin, end) for name in ("runtime", "device", "steps")}
    times = -(-calls // len(parts["runtime"]))
    length = max(end, int(parts["device"]["end"].max())) - begin
    names = int(trace.rows["runtime"]["correlation"].max()) + 1
    return replace(
        trace, rows=trace.rows | {name: _tiled(table, times, length, names) for name, table in parts.items()}
    )


def _inside(table: Rows, begin: int, end: int) -> Rows:
    return table.take((table["ts"] >= begin) & (table["ts"] < end))


def _tiled(table: Rows, times: int, length: int, names: int) -> Rows:
    found = Rows(
        {name: np.tile(column, times) for name, column in table.numbers.items()},
        {name: Texts(np.tile(column.codes, times), column.names) for name, column in table.texts.items()},
    )
    number = np.repeat(np.arange(times), len(table))
    for column in ("ts", "end"):
        found.numbers[column] += number * length
    if "correlation" in found.numbers:
        found.numbers["correlation"] += np.where(found["correlation"] >= 0, number * names, 0)
    return found.take(np.argsort(found["ts"], kind="stable"))


def shares(program: Program, many: int) -> list[Edits]:
    """``many`` questions that share out the waits, or the launches where there are fewer waits than questions."""
    items = program.items
    chosen = np.flatnonzero(items.wait)
    if len(chosen) < many:
        chosen = np.flatnonzero(items.stream >= 0)
    return [{int(item): Edit(free=True, gone=True) for item in part} for part in np.array_split(chosen, many)]


def main(path: Path, calls: int = 100_000, many: int = 30) -> None:
    timeline = Timeline(repeated(load(path), calls))
    calls_, steps, waits = (len(table) for table in (timeline.calls, timeline.steps, timeline.waits))
    print(f"{path.parent.name}: {calls_:,} calls, {steps:,} steps, {waits:,} waits")
    bare = timeline.trace.recording.bare if timeline.trace.recording else None
    clock, begin = time.perf_counter(), time.process_time()
    program = compile_program(timeline, MEASURED)
    assert program is not None
    compiled = time.process_time()
    found = fit(program, bare.steps_ns if bare else ())
    found = replace(found, scenarios=found.scenarios or SCENARIOS)
    fitted = time.process_time()
    replay_savings(program, shares(program, many), found)
    end, clock = time.process_time(), time.perf_counter() - clock
    parts = (("compile", compiled - begin), ("fit", fitted - compiled), (f"{many} questions", end - fitted))
    print(
        "  "
        + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts)
        + f"; in all {end - begin:.2f} s, {clock:.2f} s by the clock"
    )


if __name__ == "__main__":
    for trace in [Path(argument) for argument in sys.argv[1:2]] or TRACES:
        main(trace, *map(int, sys.argv[2:4]))
