"""Find whether a program fits its trace, and by how much its host work must be scaled to fit the bare step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.estimate.items import COLLECTIVE
from syncscope.estimate.program import Program
from syncscope.estimate.replay import Scenario, replay
from syncscope.schema.numbers import percent
from syncscope.timeline.intervals import Floats
from syncscope.trace.quantiles import quantiles

MISFIT = 0.03
"""The share of the step by which a replay may miss it before its answers are doubted for it."""

USELESS = 0.5
"""The share beyond which there is no answer: what was recorded is something else."""

MISSED = 0.5
"""Share of what a replay misses by which a saving may be off."""

SLOWER = (
    "replayed, the recorded steps take {} longer than they did, so the trace lacks what let their work run side by "
    "side (launches or streams that it lost)"
)
FASTER = (
    "replayed, the recorded steps take {} less time than they did, so they waited for something that the trace "
    "lacks (events that it lost, another process on the device)"
)
TOO_LONG = (
    "the recorded steps are {} the bare ones of {:.3g} ms even without what a profiler adds, so they "
    "did more: record steps like the others (--profile-at), or give --bare-ms of such steps"
)
TOO_SHORT = (
    "the bare steps of {1:.3g} ms are {0} the recorded ones, so they did more (an epoch's end, a "
    "loader that was slower then): record more of them (--profile-at), or give --bare-ms of steps like "
    "the recorded ones"
)
"""In what a replay differs from the traced or the bare steps, with the share by which it does and a bare step in
ms."""

WIDER = "ranges are wider: {}"
WIDER_OF_RECORDED = "savings are those of the recorded steps, and ranges are wider: {}"
"""What follows for the savings, where they are not denied."""

LEAST, MOST = 0.6, 1.3
"""Factors between which the host's work may be scaled. A host is up to 15 % slower in one process, or one minute, than
in the next, so it may also have been while the bare steps were timed."""

LEAST_EVER = 0.35
"""The least factor where none of those meets the bare step: the profiler recorded more than its measured costs say."""

USUAL, SPREAD = 0.95, 0.1
"""The scale where the step's length does not show it, and how far from it the true one may lie."""

PAGEABLE = 0.1
"""Share by which the time of pageable copies differs from one window, and one process, to the next: it depends on where
the pages lie."""

PAGEABLE_MOST = 0.2
"""Share by which it may differ from the trace's before the model does not fit."""

SLOWDOWN_DOUBT = 0.25
"""How far ``SLOWDOWN`` may be off, as a share of the collective's time."""

NOISE = 0.005
"""Share of the step by which two windows of steps differ, at least."""

FEWEST = 5
"""Bare steps from which their spread is told."""

MEDIAN_ERROR, QUARTILES = 1.2533, 1.349
"""Of normal values: the median's standard error as a multiple of the mean's, and how many standard deviations lie
between the quartiles."""

COARSE_HOST, COARSE_COPIES = 0.05, 0.2
"""Scales that are replayed lie this far apart, ..."""

FINER = 8
"""... and this many times closer those that are compared."""

WARM = 6
"""Steps that fill the queues before any is counted, and as many at least are counted."""

MOST_ITEMS = 50_000
"""Items that are replayed for that at most, beyond one step."""

MOST_BARE = 50
"""Steps of a bare window that are replayed, at most, unless a round of the recorded ones is longer."""


class Fit(msgspec.Struct, frozen=True):
    """How a program fits."""

    misfit: float
    """Share by which its replay misses the traced steps."""
    scenarios: tuple[Scenario, ...] = ()
    """The likely one, then pairs of alternatives. Empty when the model does not fit."""
    why: str | None = None
    """Why it does not, in words for a user."""
    ranged: bool = False
    """No bare step is known: the likely scenario is a guess."""
    doubt: float = 0.0
    """Share of the step by which every saving may be off, because the replay does not meet a step."""
    doubt_why: str | None = None
    """Why it is doubted, in words for a user."""
    missed: float = 0.0
    """Share by which the replay misses the bare step, where that is doubted."""
    measured: float = 1.0
    """The mean factor on the host's work that stamps showed, before that of the scenarios."""


def steady_steps(program: Program) -> tuple[list[int], int]:
    """Which recorded steps to replay, and how many of them only fill the queues: ``WARM``, then whole rounds; fewer
    where steps are huge."""
    steps = program.steps
    warm = max(1, min(WARM, MOST_ITEMS * steps // len(program.items)))
    rounds = -(-warm // steps)
    return [number % steps for number in range(-warm, rounds * steps)], warm


def find_misfit(program: Program) -> float:
    """Share by which the replay of the traced steps takes longer than they did, on the host or on the device: the one
    that it misses more."""
    traced = replay(program, [{}], [Scenario()], profiled=True)
    ends = (traced.host[-1, 0, 0] / program.host_ns, traced.device[-1, 0, 0] / program.device_ns)
    return max((float(end) - 1 for end in ends), key=abs)


def fit(
    program: Program,
    bare_ns: tuple[int, ...],
    bare_ms: float | None = None,
    bare: Program | None = None,
    misfit: float | None = None,
) -> Fit:
    """Compare the replay with the trace, and with the bare steps: their lengths, from idle device to idle device, or
    only ``bare_ms``, that of a steady one. ``bare`` is what runs in those, where it is not just the same. ``misfit`` is
    the program's, where it is known."""
    misfit = find_misfit(program) if misfit is None else misfit
    says = (SLOWER if misfit > 0 else FASTER).format(percent(abs(misfit), 1.0))
    if abs(misfit) > USELESS:
        return Fit(misfit, why=says)
    found = _fit_bare(bare or program, misfit, bare_ns, bare_ms)
    if abs(misfit) <= MISFIT or found.why:
        return found
    doubt = max(found.doubt, MISSED * abs(misfit))
    return replace(found, doubt=doubt, doubt_why=found.doubt_why or WIDER.format(says))


def _fit_bare(bare: Program, misfit: float, bare_ns: tuple[int, ...], bare_ms: float | None) -> Fit:
    if bare_ms is None and not bare_ns:
        return Fit(misfit, _around(bare, Scenario(USUAL, worker_paced=_worker_paced(bare)), LEAST, 1.0), ranged=True)
    wanted = sum(bare_ns) / len(bare_ns) if bare_ms is None else bare_ms * 1e6

    def off_at(scenarios: list[Scenario]) -> Floats:
        steps = _steady_ns(bare, scenarios) if bare_ms is not None else _window_ns(bare, scenarios, len(bare_ns))
        off: Floats = steps / wanted - 1
        return off

    noise = NOISE if bare_ms is None else min(max(NOISE, standard_error(bare_ns)), MISFIT)
    found, missed = _nearest(bare, misfit, off_at, LEAST, noise)
    if found is None and missed > 0:
        found, _ = _nearest(bare, misfit, off_at, LEAST_EVER, noise)
    return found or _doubted(bare, misfit, off_at, wanted)


def standard_error(lengths: Sequence[int]) -> float:
    """That of the median of some lengths, as a share of it, by their quartiles; 0 where too few tell."""
    if len(lengths) < FEWEST:
        return 0.0
    low, middle, high = quantiles(lengths, (0.25, 0.5, 0.75))
    return float(MEDIAN_ERROR * (high - low) / QUARTILES / len(lengths) ** 0.5 / middle)


def _doubted(program: Program, misfit: float, off_at: Callable[[list[Scenario]], Floats], wanted: float) -> Fit:
    """The recorded steps with the usual scale, where no scale meets the bare step."""
    usual = Scenario(USUAL, worker_paced=_worker_paced(program))
    off = float(off_at([usual])[0])
    differ, share = (TOO_LONG, off) if off > 0 else (TOO_SHORT, 1 / (1 + off) - 1)
    says = differ.format(_compare(share), wanted * 1e-6)
    if abs(off) > USELESS:
        return Fit(misfit, why=says)
    return Fit(
        misfit, _around(program, usual, LEAST, USUAL + SPREAD), doubt=MISSED * abs(off),
        doubt_why=WIDER_OF_RECORDED.format(says), missed=off,
    )  # fmt: skip


def _steady_ns(program: Program, scenarios: list[Scenario]) -> Floats:
    """Mean length of a step in each scenario, in steady state."""
    order, warm = steady_steps(program)
    ends = replay(program, [{}], scenarios, order).ends[:, 0]
    length: Floats = (ends[-1] - ends[warm - 1]) / (len(order) - warm)
    return length


def _window_ns(program: Program, scenarios: list[Scenario], many: int) -> Floats:
    """Mean length of the first ``many`` steps from an idle device in each scenario. Those that are not replayed, since
    they are so many, take as long as the last round of those that are."""
    steps = program.steps
    replayed = min(many, max(MOST_BARE, WARM + steps))
    ends = replay(program, [{}], scenarios, [number % steps for number in range(replayed)]).ends[:, 0]
    rest = (many - replayed) * (ends[-1] - ends[-1 - steps]) / steps if many > replayed else 0.0
    length: Floats = (ends[-1] + rest) / many
    return length


def _grid(program: Program, least: float, host: float, copies: float) -> tuple[Floats, Floats]:
    """Scales of the host's work from ``least``, ``host`` apart, and of the time of pageable copies, where there are
    any."""
    hosts = np.linspace(least, MOST, round((MOST - least) / host) + 1)
    many = round(2 * PAGEABLE_MOST / copies) + 1 if program.items.pageable.any() else 1
    return hosts, 1 + np.linspace(-PAGEABLE_MOST, PAGEABLE_MOST, many) if many > 1 else np.ones(1)


def _worker_paced(program: Program) -> float:
    """``Scenario.worker_paced``: 1 unless the loader is known to have no workers."""
    return float(program.workers is not False)


def _nearest(
    program: Program, misfit: float, off_at: Callable[[list[Scenario]], Floats], least: float, noise: float
) -> tuple[Fit | None, float]:
    """The scenario in which the replay meets the bare step, near the usual one where that hardly matters; ``None``
    where none of ``least`` or more does. And by what share it misses.

    ``off_at`` returns the share by which the replay misses the bare step in each of some scenarios, and ``noise`` is
    the share by which the bare step itself may be off: all scales that it allows are alternatives.
    """
    worker_paced = _worker_paced(program)
    hosts, copies = _grid(program, least, COARSE_HOST, COARSE_COPIES)
    coarse = [Scenario(host, copy, worker_paced) for copy in copies for host in hosts]
    off = off_at(coarse).reshape(len(copies), len(hosts))
    # A step's length is made of sums and maxima of what is scaled, so between two scales it is close to straight.
    fine, fine_copies = _grid(program, least, COARSE_HOST / FINER, COARSE_COPIES / FINER)
    off = np.array([np.interp(fine, hosts, row) for row in off])
    off = np.array([np.interp(fine_copies, copies, column) for column in off.T]).T
    unusual = ((fine - USUAL) / SPREAD) ** 2 + ((fine_copies[:, None] - 1) / PAGEABLE) ** 2
    doubt, allowed = (off / NOISE) ** 2 + unusual, (off / noise) ** 2 + unusual
    at_copy, at_host = np.unravel_index(np.argmin(doubt), doubt.shape)
    missed = float(off[at_copy, at_host])
    if abs(missed) > MISFIT:
        return None, missed
    likely = fine[allowed[at_copy] <= allowed[at_copy, at_host] + 4]
    best = Scenario(round(float(fine[at_host]), 4), round(float(fine_copies[at_copy]), 4), worker_paced)
    return Fit(misfit, _around(program, best, float(likely.min()), float(likely.max()))), missed


def _around(program: Program, likely: Scenario, least: float, most: float) -> tuple[Scenario, ...]:
    """The likely scenario, and two alternatives for each uncertain value."""
    scenarios = [likely, likely._replace(host=least), likely._replace(host=most)]
    if program.items.pageable.any():
        scenarios += [likely._replace(pageable=likely.pageable + doubt) for doubt in (-PAGEABLE, PAGEABLE)]
    if (program.items.engine == COLLECTIVE).any():
        scenarios += [likely._replace(slowdown=likely.slowdown + doubt) for doubt in (-SLOWDOWN_DOUBT, SLOWDOWN_DOUBT)]
    if program.workers is None and (program.items.loading > 0).any():
        scenarios += [likely._replace(worker_paced=0.0)] * 2
    return tuple(scenarios)


def _compare(share: float) -> str:
    """How much longer something is, by its ``share``: ``34 % longer than``, ``2.6 times as long as``."""
    return f"{percent(share, 1.0)} longer than" if share < 1 else f"{1 + share:.2g} times as long as"
