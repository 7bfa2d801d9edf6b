"""Recordings of an H200: the unchanged replay is the trace, and blocked time is not the saving."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.estimate.profiler_cost import MEASURED
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.schema.report import Report
from syncscope.timeline import Timeline
from syncscope.trace import load

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"
FILES = sorted(file.relative_to(TRACES) for file in TRACES.glob("*/*.json.gz"))


@cache
def program(file: Path) -> Program | None:
    return compile_program(Timeline(load(TRACES / file)), MEASURED)


@cache
def report(case: str) -> Report:
    return analyze(TRACES / case / "trace.json.gz")


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_unchanged_replay_is_the_trace(file: Path) -> None:
    compiled = program(file)
    assert compiled is not None
    replayed = replay(compiled, [{}], [Scenario()], profiled=True)
    assert replayed.host[-1, 0, 0] == pytest.approx(compiled.host_ns, rel=0.005)
    assert replayed.device[-1, 0, 0] == pytest.approx(compiled.device_ns, rel=0.005)


def test_backward_is_part_of_the_main_threads_chain() -> None:
    compiled = program(Path("backward_wait/trace.json.gz"))
    assert compiled is not None and compiled.chains == 1


@pytest.mark.parametrize("case", ["item_logging", "isnan_branch", "backward_wait", "mask_nonzero", "explicit_sync"])
def test_a_wait_of_a_step_that_the_device_bounds_costs_a_small_part_of_what_it_blocks(case: str) -> None:
    found = max(report(case).findings, key=lambda finding: finding.stall_ms_per_step or 0.0)
    assert found.saving_ms_per_step is not None and found.stall_ms_per_step is not None
    assert 0 < found.saving_ms_per_step < 0.08 * found.stall_ms_per_step


def test_many_waits_of_a_step_that_the_host_bounds_cost_most_of_it() -> None:
    (found,) = [finding for finding in report("small_copies").findings if finding.rule == "CPY203"]
    step = report("small_copies").traces[0].steps.bare_ms
    assert step is not None and found.saving_ms_per_step is not None
    assert 0.6 * step < found.saving_ms_per_step < step


def test_pinned_memory_on_a_stream_of_its_own_hides_the_copy() -> None:
    found = next(f for f in report("pageable_blocking").findings if f.rule == "OVL301")
    overlap = report("pageable_blocking").traces[0].overlap
    assert found.after is not None and overlap is not None
    assert found.after.step_ms == pytest.approx(overlap.compute_ms, rel=0.03)
