"""Does the program fit its trace, and by what is the host's work to be scaled for it to fit the bare step?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from syncscope.estimate.machine import Scenario, replay
from syncscope.estimate.program import Program
from syncscope.timeline.intervals import Floats

MISFIT = 0.03
"""Share of the step by which a replay may miss it."""

LEAST, MOST = 0.6, 1.05
"""Between these the host's work may be scaled."""

USUAL, SPREAD = 0.95, 0.1
"""The scale where the step's length does not tell, and how far from it one must be ready to go."""

PAGEABLE = 0.1
"""Share by which the time of pageable copies differs from one window, and one process, to the next: it depends on where
the pages lie."""

PAGEABLE_MOST = 0.2
"""Share by which it may differ from the trace's before the model does not fit."""

NOISE = 0.005
"""Share of the step by which two windows of steps differ, at least."""

WARM = 6
"""Steps that fill the queues before any is counted, and as many at least are counted."""


@dataclass(frozen=True)
class Fit:
    """How a program fits."""

    misfit: float
    """Share by which its replay misses the traced steps."""
    scenarios: tuple[Scenario, ...] = ()
    """The likely one, then pairs of what else may be true. Empty when the model does not fit."""
    why: str | None = None
    """Why it does not."""
    ranged: bool = False
    """No bare step is known: the likely scenario is a guess."""


def steady(steps: int) -> list[int]:
    """Which recorded steps to replay: ``WARM`` of them first, then whole rounds."""
    rounds = -(-WARM // steps)
    return [number % steps for number in range(-WARM, rounds * steps)]


def fit(program: Program, bare_ns: tuple[int, ...], bare_ms: float | None = None) -> Fit:
    """Compare with the trace and with the bare steps: their lengths, idle device to idle device, or only ``bare_ms``,
    the mean of many."""
    traced = replay(program, [{}], [Scenario()], taxed=False)
    ends = (traced.host[-1, 0, 0] / program.host_ns, traced.device[-1, 0, 0] / program.device_ns)
    misfit = max((float(end) - 1 for end in ends), key=abs)
    if abs(misfit) > MISFIT:
        return Fit(misfit, why=f"the model does not fit this trace: its replay misses the traced step by {misfit:+.1%}")
    pageable = bool(program.items["pageable"].any())
    if bare_ms is None and not bare_ns:
        return Fit(misfit, _around(Scenario(USUAL), LEAST, 1.0, pageable), ranged=True)
    grid = _grid(pageable)
    if bare_ms is not None:
        ends = replay(program, [{}], grid, steady(program.steps)).ends[:, 0]
        found, wanted = (ends[-1] - ends[WARM - 1]) / (len(ends) - WARM), bare_ms * 1e6
    else:
        order = [number % program.steps for number in range(len(bare_ns))]
        found, wanted = replay(program, [{}], grid, order).ends[-1, 0], float(sum(bare_ns))
    return _nearest(misfit, grid, found / wanted - 1, pageable)


def _grid(pageable: bool) -> list[Scenario]:
    hosts = np.round(np.arange(LEAST, MOST + 0.001, 0.0125), 4).tolist()
    copies = np.round(np.arange(1 - PAGEABLE_MOST, 1 + PAGEABLE_MOST + 0.001, 0.05), 4).tolist() if pageable else [1.0]
    return [Scenario(host, copy) for copy in copies for host in hosts]


def _nearest(misfit: float, grid: list[Scenario], off: Floats, pageable: bool) -> Fit:
    """The scenario in which the replay meets the bare step, near the usual one where that hardly matters; ``off`` is by
    how much it misses in each of ``grid``."""
    host, copies = np.array(grid).T
    doubt = (off / NOISE) ** 2 + ((host - USUAL) / SPREAD) ** 2 + ((copies - 1) / PAGEABLE) ** 2
    best = int(np.argmin(doubt))
    if abs(off[best]) > MISFIT:
        why = f"with the host's work scaled by {LEAST} to {MOST}, it misses the bare step by {off[best]:+.1%} or more"
        return Fit(misfit, why=f"the model does not fit this trace: {why}")
    likely = host[(doubt <= doubt[best] + 4) & (copies == copies[best])]
    return Fit(misfit, _around(grid[best], float(likely.min()), float(likely.max()), pageable))


def _around(likely: Scenario, least: float, most: float, pageable: bool) -> tuple[Scenario, ...]:
    found = (likely, likely._replace(host=least), likely._replace(host=most))
    if not pageable:
        return found
    return (*found, *(likely._replace(pageable=likely.pageable + doubt) for doubt in (-PAGEABLE, PAGEABLE)))
