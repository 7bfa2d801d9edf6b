"""The program as it runs without a profiler."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscope.estimate.fit import find_misfit, fit
from syncscope.estimate.peers import find_shared_collectives
from syncscope.estimate.power import Condition, at_clock
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.estimate.undisturbed import fit_undisturbed
from syncscope.timeline import Timeline
from tests.estimate.simulated import Launch, Op, Wait, Work, trace

LOOP: list[Op] = [Work(10), Launch(900), Launch(900), Wait(), Work(40)]
TIMELINE = Timeline(trace([LOOP] * 4).trace())
"""Bounded by the device."""


def program() -> Program:
    found = compile_program(TIMELINE, Costs(*[0.0] * 6))
    assert found is not None
    return found


def prepared(compiled: Program, clock: float, condition: Condition) -> Prepared:
    """Bare steps at a clock that is some share of that of the recorded ones."""
    ends = replay(at_clock(compiled, clock), [{}], [Scenario()], [0, 1, 2, 3] * 3).ends[:, 0, 0]
    length = float(ends[-1] - ends[3]) / 8
    return Prepared(
        (), None, find_shared_collectives(TIMELINE), program=compiled, bare_ms=length * 1e-6, condition=condition
    )


def test_kernels_are_as_long_as_at_the_clock_that_was_recorded() -> None:
    compiled = program()
    bare, found = fit_undisturbed(prepared(compiled, 0.9, Condition(timed=0.9)), compiled, known=False)
    assert not found.doubt and found.doubt_why is None
    assert bare.items.dur.sum() > 1.05 * compiled.items.dur.sum()


def test_a_clock_that_the_bare_steps_belie_is_not_believed() -> None:
    compiled = program()
    bare, found = fit_undisturbed(prepared(compiled, 1.0, Condition(timed=0.9)), compiled, known=False)
    assert not found.doubt
    assert bare.items.dur.sum() == pytest.approx(compiled.items.dur.sum())


def test_at_the_limit_the_clock_is_found_that_meets_the_bare_step() -> None:
    compiled = program()
    bare, found = fit_undisturbed(prepared(compiled, 0.9, Condition()), compiled, known=False)
    assert found.why is None and found.doubt_why is not None and "slower without a profiler" in found.doubt_why
    assert bare.items.dur.sum() == pytest.approx(at_clock(compiled, 0.9).items.dur.sum(), rel=0.02)


def test_away_from_the_limit_no_clock_is_looked_for() -> None:
    compiled = program()
    cool = Condition(budget=2.0)
    bare, found = fit_undisturbed(prepared(compiled, 0.9, cool), compiled, known=False)
    assert found.doubt > 0 and bare.items.dur.sum() == pytest.approx(compiled.items.dur.sum())


def test_no_fit_is_better_than_the_first_that_meets_the_step() -> None:
    compiled = program()
    ready = prepared(compiled, 1.0, Condition())
    bare, found = fit_undisturbed(replace(ready, condition=Condition()), compiled, known=False)
    assert found == fit(compiled, (), ready.bare_ms, bare)


def test_a_misfit_that_is_known_of_this_program_is_believed_and_not_found_again() -> None:
    compiled = program()
    ready = replace(prepared(compiled, 1.0, Condition()), program=compiled, misfit=0.0123)
    assert fit_undisturbed(ready, compiled, known=False)[1].misfit == 0.0123
    other = replace(compiled, host_ns=compiled.host_ns + 1)
    assert fit_undisturbed(ready, other, known=False)[1].misfit == pytest.approx(find_misfit(other))


def test_a_stretch_longer_than_the_whole_bare_step_is_cut_to_what_that_leaves_of_it() -> None:
    """Pinning took 6 ms beside the profiler's threads, and the bare step takes 1.1 ms."""
    timeline = Timeline(trace([[Work(6000), Launch(50), Work(900), Launch(50), Wait()]] * 4).trace())
    compiled = compile_program(timeline, Costs(*[0.0] * 6))
    assert compiled is not None
    ready = Prepared(
        (), None, find_shared_collectives(timeline), program=compiled, bare_ms=1.1, condition=Condition(budget=2.0)
    )
    bare, found = fit_undisturbed(ready, compiled, known=False)
    assert found.why is None and found.doubt_why is not None and "took 6" in found.doubt_why
    host = bare.items.chain == 0
    assert bare.items.pre[host].max() < 900_000
    assert bare.items.pre[host].sum() / 4 < 1_100_000
