"""The program as it runs without a profiler: what must be changed about the recorded one to meet the bare steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from syncscope.estimate.fit import MISFIT, WIDER, Fit, fit, steady_steps
from syncscope.estimate.peers import without_late_peers
from syncscope.estimate.power import at_clock
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.program import Program
from syncscope.estimate.stamps import scale_stretches

CLOCKS = (0.88, 0.94, 1.06, 1.12)
"""Clocks, as shares of that of the recorded steps, at which a GPU at its power limit is looked for to meet the bare
step where nothing else does."""

CLOCK_DOUBT = 0.02
"""Share of the step by which savings may be off where the clock was found so."""

CLOCKED = "kernels are taken to be {change:.0%} {how} without a profiler than recorded, as the bare steps show"


def fit_undisturbed(prepared: Prepared, program: Program, known: bool) -> tuple[Program, Fit]:
    """The program that meets the bare steps, and how; else the recorded one with a doubt, or why nothing fits.

    ``known`` is whether the other ranks' traces show how long this one waited for them: then it is tried without those
    waits, too, since their profilers may have caused them.
    """
    tried: list[tuple[Program, Fit]] = []
    for bare, found in _attempts(prepared, program, known):
        if not (found.why or found.missed) or abs(found.misfit) > MISFIT:
            return bare, found
        tried.append((bare, found))
    # The first of those that miss it least.
    return min(tried, key=lambda one: (one[1].why is not None, abs(one[1].missed)))


def _attempts(prepared: Prepared, program: Program, known: bool) -> Iterator[tuple[Program, Fit]]:
    def fitted(bare: Program) -> tuple[Program, Fit]:
        return bare, fit(program, prepared.bare_ns, prepared.bare_ms, bare)

    clocks = dict.fromkeys((prepared.condition.timed, 1.0))
    for ratio in clocks:
        bare = at_clock(program, ratio)
        if prepared.stamped is not None:
            stamped, scale = scale_stretches(bare, prepared.stamped, *steady_steps(bare))
            if stamped is not bare:
                found = fitted(stamped)[1]
                yield stamped, replace(found, measured=scale)
    for ratio in clocks:
        yield fitted(at_clock(program, ratio))
    if known:
        yield fitted(at_clock(without_late_peers(program), prepared.condition.timed))
    clock = _clock(prepared, program) if prepared.condition.at_limit else None
    if clock is not None:
        bare, found = fitted(at_clock(program, clock))
        says = CLOCKED.format(change=abs(1 - clock), how="slower" if clock < 1 else "faster")
        yield bare, replace(found, doubt_why=found.doubt_why or WIDER.format(says), doubt=max(found.doubt, CLOCK_DOUBT))


def _clock(prepared: Prepared, program: Program) -> float | None:
    """The clock at which the replay with the usual scale meets the bare step; ``None`` where none does."""
    found = [(1.0, fit(program, prepared.bare_ns, prepared.bare_ms).missed)]
    for ratio in CLOCKS:
        missed = fit(program, prepared.bare_ns, prepared.bare_ms, at_clock(program, ratio)).missed
        found.append((ratio, missed))
    found.sort()
    ratios, missed = np.array(found).T
    # The step is shorter at a higher clock. No miss is left where a fit has met it by a scale of the host's work.
    if missed[0] < 0 or missed[-1] > 0 or missed[0] == missed[-1]:
        return None
    return float(np.interp(0.0, missed[::-1], ratios[::-1]))
