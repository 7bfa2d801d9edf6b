"""The program as it runs without a profiler: what must be changed about the recorded one to meet the bare steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from syncscope.estimate.fit import LEAST, MISFIT, USUAL, WIDER, Fit, find_misfit, fit, steady_steps
from syncscope.estimate.peers import without_late_peers
from syncscope.estimate.power import at_clock
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.program import Program
from syncscope.estimate.replay import Scenario, replay
from syncscope.estimate.stamps import scale_stretches
from syncscope.schema.numbers import percent

CLOCKS = (0.88, 0.94, 1.06, 1.12)
"""Clocks, as shares of that of the recorded steps, at which a GPU at its power limit is looked for to meet the bare
step where nothing else does."""

CLOCK_DOUBT = 0.02
"""Share of the step by which savings may be off where the clock was found so."""

CUT_DOUBT = 0.02
"""Share of the step by which savings may be off where stretches were cut."""

HALVINGS = 12
"""In the search for the length that they are cut to."""

CUT = (
    "a stretch of the host's work took {:.3g} ms in the recorded steps and is taken to last {:.3g} ms, which is what "
    "the bare steps of {:.3g} ms leave of it"
)

CLOCKED = "kernels are taken to be {change} {how} without a profiler than recorded, as the bare steps show"


def fit_undisturbed(prepared: Prepared, program: Program, known: bool) -> tuple[Program, Fit]:
    """The program that meets the bare steps, and how; else the recorded one with a doubt, or why nothing fits.

    ``known`` is whether the other ranks' traces show how long this one waited for them: then it is tried without those
    waits, too, since their profilers may have caused them.
    """
    tried: list[tuple[Program, Fit]] = []
    known_misfit = prepared.misfit if program is prepared.program else None
    misfit = find_misfit(program) if known_misfit is None else known_misfit
    for bare, found in _attempts(prepared, program, misfit, known):
        if not (found.why or found.missed) or abs(found.misfit) > MISFIT:
            return bare, found
        tried.append((bare, found))
    # The first of those that miss it least.
    return min(tried, key=lambda one: (one[1].why is not None, abs(one[1].missed)))


def _attempts(prepared: Prepared, program: Program, misfit: float, known: bool) -> Iterator[tuple[Program, Fit]]:
    def fitted(bare: Program) -> tuple[Program, Fit]:
        return bare, fit(program, prepared.bare_ns, prepared.bare_ms, bare, misfit)

    clocks = dict.fromkeys((prepared.condition.timed, 1.0))
    for ratio in clocks:
        bare = at_clock(program, ratio)
        if prepared.stamped is not None:
            stamped, scale = scale_stretches(bare, prepared.stamped, *steady_steps(bare))
            found = fitted(stamped)[1] if stamped is not bare else None
            # What was measured is not scaled as if a profiler had made it so long: other steps were recorded.
            if found and found.scenarios and found.scenarios[0].host >= LEAST:
                yield stamped, replace(found, measured=scale)
    for ratio in clocks:
        yield fitted(at_clock(program, ratio))
    cut = _cut_stretches(prepared, program)
    if cut is not None:
        shorter, says = cut
        bare, found = fitted(shorter)
        yield bare, replace(found, doubt_why=found.doubt_why or WIDER.format(says), doubt=max(found.doubt, CUT_DOUBT))
    if known:
        yield fitted(at_clock(without_late_peers(program), prepared.condition.timed))
    clock = _clock(prepared, program, misfit) if prepared.condition.at_limit else None
    if clock is not None:
        bare, found = fitted(at_clock(program, clock))
        says = CLOCKED.format(change=percent(abs(1 - clock), 1.0), how="slower" if clock < 1 else "faster")
        yield bare, replace(found, doubt_why=found.doubt_why or WIDER.format(says), doubt=max(found.doubt, CLOCK_DOUBT))


def _clock(prepared: Prepared, program: Program, misfit: float) -> float | None:
    """The clock at which the replay with the usual scale meets the bare step; ``None`` where none does."""
    found = [(1.0, fit(program, prepared.bare_ns, prepared.bare_ms, misfit=misfit).missed)]
    for ratio in CLOCKS:
        missed = fit(program, prepared.bare_ns, prepared.bare_ms, at_clock(program, ratio), misfit).missed
        found.append((ratio, missed))
    found.sort()
    ratios, missed = np.array(found).T
    # The step is shorter at a higher clock. No miss is left where a fit has met it by a scale of the host's work.
    if missed[0] < 0 or missed[-1] > 0 or missed[0] == missed[-1]:
        return None
    return float(np.interp(0.0, missed[::-1], ratios[::-1]))


def _cut_stretches(prepared: Prepared, program: Program) -> tuple[Program, str] | None:
    """The program with its longest stretches of host work as short as the bare step needs, and what that means;
    ``None`` where none is longer than the whole bare step.

    A profiler makes every call a little longer, and few things many times: work on many threads, with those of the
    profiler beside them, and what the first call after its start sets up."""
    ends = prepared.bare_ms * 1e6 if prepared.bare_ms else float(np.mean(prepared.bare_ns)) if prepared.bare_ns else 0.0
    items = program.items
    longest = float(np.max(np.where(items.chain == 0, items.pre, 0.0), initial=0.0))
    if not ends or longest <= ends:
        return None

    def cut(length: float) -> Program:
        host = (items.chain == 0) & (items.loading == 0)
        return replace(program, items=items.replace(pre=np.where(host, np.minimum(items.pre, length), items.pre)))

    order, warm = steady_steps(program)
    usual = [Scenario(USUAL, worker_paced=float(program.workers is not False))]

    def lasts(length: float) -> float:
        done = replay(cut(length), [{}], usual, order).ends[:, 0, 0]
        return float(done[-1] - done[warm - 1]) / (len(order) - warm)

    low, high = 0.0, longest
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if lasts(middle) <= ends else (low, middle)
    return cut(high), CUT.format(longest * 1e-6, high * 1e-6, ends * 1e-6)
