"""How much of a program the recordings of a report show: of which phases, how many steps, counted how and how often.

A verdict says nothing of what a recording does not show. So a baseline keeps the extent of the recordings that it was
written from, and a later check says where its own show less or something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from syncscope.policy.phases import judged_phases, process_of, spoken_for
from syncscope.policy.policy import Policy
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Phase

FAR_FEWER = 4
"""A recording of less than a fourth of the steps, or one that counts four times more seldom, is another one. What
waits more seldom than its steps are many may be missed."""

Mode = Literal["counted", "windows", "full", "trace"]
"""*counted*: every wait of the run, whether or not steps were recorded too. Else recorded steps: by the windows of
``syncscope profile``, in its mode ``full``, or by another profiler."""

SHOWN: dict[str, str] = {
    "counted": "a counted run",
    "windows": "recorded steps, without a count of the run",
    "full": "recorded steps (--mode full), without a count of the run",
    "trace": "another profiler's trace",
}


class Extent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the recordings show of one kind of phase."""

    phase: str | None
    """Its kind; ``None`` where the recording does not say."""
    steps: Annotated[int, Meta(ge=0)]
    """Steps that were counted or recorded, in the process with the fewest. A phase without steps counts each time that
    the program enters it as one."""
    one_in: Annotated[float, Meta(ge=1)] = 1.0
    """One step in so many was counted, on average."""
    mode: Mode
    processes: Annotated[int, Meta(ge=1)] = 1
    """How many processes are shown: what rank 0 alone logs, the recording of rank 1 does not show."""


def measure_extent(report: Report, policy: Policy) -> tuple[Extent, ...]:
    """The extent of what is judged, one for each kind of phase, ordered by kind."""
    judged = judged_phases(report, policy)
    steps: dict[str | None, Counter[object]] = {}
    sparsest: dict[str | None, float] = {}
    modes: dict[str | None, list[Mode]] = {}
    for index, info in enumerate(report.traces):
        for kind, number, one_in in _shown(info, judged[index]):
            process = index if info.run is None else process_of(info)
            steps.setdefault(kind, Counter())[process] += number
            sparsest[kind] = max(sparsest.get(kind, 1.0), one_in)
            modes.setdefault(kind, []).append(_mode_of(info))
    return tuple(
        Extent(
            phase=kind,
            steps=min(each.values()),
            one_in=sparsest[kind],
            mode=_least(modes[kind]),
            processes=len(each),
        )
        for kind, each in sorted(steps.items(), key=lambda item: item[0] or "")
    )


def _shown(info: TraceInfo, names: frozenset[str] | None) -> Iterator[tuple[str | None, int, float]]:
    """Kind, steps and sampling of the phases that a trace speaks for and that are judged."""
    if info.run is None or names is None:
        yield None, info.steps.count, 1.0
        return
    for phase in spoken_for(info):
        if phase.name not in names:
            continue
        if "counts" in info.has:
            yield phase.kind, _counted_turns(phase), max(phase.one_in, 1.0)
        else:
            yield phase.kind, info.steps.count if phase.name == info.phase else 0, 1.0


def _counted_turns(phase: Phase) -> int:
    return phase.counted_steps if phase.steps else max(phase.times, 1)


def _mode_of(info: TraceInfo) -> Mode:
    if "counts" in info.has:
        return "counted"
    # Reports of earlier versions do not name the mode; only windows take their ops from an attribution window.
    recorded: Mode = "windows" if "attribution" in info.has else "full"
    return info.mode or (recorded if "sites" in info.has else "trace")


def _least(modes: Iterable[Mode]) -> Mode:
    """The mode that shows least."""
    order: tuple[Mode, ...] = ("trace", "windows", "full", "counted")
    return min(modes, key=order.index)


def describe_shortfall(now: Iterable[Extent], before: Iterable[Extent]) -> tuple[str, ...]:
    """How the recordings show less than those of the baseline, or something else: one phrase each."""
    known = {extent.phase: extent for extent in now}
    phrases: list[str] = []
    for was in before:
        extent = known.get(was.phase)
        if extent is None:
            others = ", ".join(map(_name, known.values())) or "no steps"
            phrases.append(f"it is of {_name(was)}, and this is of {others}")
        else:
            phrases += _differences(extent, was)
    return tuple(phrases)


def _differences(now: Extent, was: Extent) -> Iterator[str]:
    of = f"{now.phase}: " if now.phase else ""
    if now.mode not in (was.mode, "counted"):
        yield f"{of}it is of {SHOWN[was.mode]}, and this is {SHOWN[now.mode]}"
    elif now.steps * FAR_FEWER < was.steps:
        yield f"{of}it is of {was.steps:,} steps, and this shows {now.steps:,}"
    if now.processes < was.processes:
        yield f"{of}it is of {was.processes:,} processes, and this is of {now.processes:,}"
    if now.one_in > FAR_FEWER * was.one_in:
        yield f"{of}{_sampling(was)} was counted for it, and here {_sampling(now)}"


def _sampling(extent: Extent) -> str:
    return f"one step in {extent.one_in:.3g}" if extent.one_in > 1 else "each step"


def _name(extent: Extent) -> str:
    return extent.phase or "steps of no known phase"


def describe_missing(report: Report, policy: Policy) -> tuple[str, ...]:
    """What the policy demands of recordings and they do not show: one phrase each."""
    phrases = []
    if policy.phases is not None:
        spoken = {name for info in report.traces for phase in spoken_for(info) for name in (phase.name, phase.kind)}
        if silent := sum(info.run is None for info in report.traces):
            which = "the recording does" if silent == len(report.traces) == 1 else f"{silent} recordings do"
            phrases.append(f"{which} not say which phases are shown; the configuration judges {_list(policy.phases)}")
        elif missing := [name for name in policy.phases if name not in spoken]:
            phrases.append(f"no trace is of a phase that the configuration judges: {_list(missing)}")
    if policy.min_steps is not None:
        for extent in measure_extent(report, policy):
            if extent.steps < policy.min_steps:
                of = f" of {extent.phase}" if extent.phase else ""
                shows = f"{extent.steps:,} step{'' if extent.steps == 1 else 's'}{of}"
                phrases.append(f"the recording shows {shows}, and min_steps is {policy.min_steps:,}")
    return tuple(phrases)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
