"""Which collectives of several ranks are one and the same.

Ranks run those of a kind and process group in one order. Where a trace does not name the group, as for kernels in CUDA
graphs and those that write to the memory of other devices, ranks of several groups look alike: those that end together
most of the time are taken for one group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from syncscope.ranks.clocks import FEWEST, TOGETHER_MS, Meeting, compare_pairs, differences, find_offset
from syncscope.schema.report import Collective, TraceInfo

Rows = dict[int, list[Collective]]
"""Collectives of one kind by the number of their step, in the order in which a rank runs them."""

GROUP = " of group "
"""Stands between a kind of collectives and its process group."""


AS_OFTEN, AS_CLOSE = 0.9, 3
"""Ranks are of two groups if they end collectives together for less than this share of what each does with the best of
the others, and more than this many times as far apart."""


MOST_EARLY = 2
"""Collectives that a rank may leave early, one after the other."""


class Fit(NamedTuple):
    """How two ranks end their collectives."""

    near: float
    """The share that they end together."""
    spread: float
    """As ``Offset.spread``."""


def find_meetings(ranks: dict[int, TraceInfo]) -> list[Meeting]:
    """The collectives that several of the ranks have in common, and that they end together."""
    return _ended_together(list(_match(ranks)))


def _match(ranks: dict[int, TraceInfo]) -> Iterator[Meeting]:
    """The collectives of a step and a kind by their order, where the ranks that have any have as many."""
    by_kind: defaultdict[tuple[str, bool], dict[int, Rows]] = defaultdict(dict)
    for trace, info in ranks.items():
        for one in info.meetings.collectives if info.meetings else ():
            by_kind[one.name, one.in_graph].setdefault(trace, {}).setdefault(one.step, []).append(one)
    companies = [
        company
        for kind, graph in sorted(by_kind)
        for company in ([by_kind[kind, graph]] if GROUP in kind else _part(by_kind[kind, graph]))
    ]
    found = [meeting for company in companies for meeting in _in_order(company)]
    return iter(sorted(found, key=lambda meeting: next(iter(meeting.values())).step))


def _in_order(company: dict[int, Rows]) -> Iterator[Meeting]:
    for step in sorted({step for rows in company.values() for step in rows}):
        rows = {trace: own[step] for trace, own in company.items() if step in own}
        if len(rows) > 1 and len({len(row) for row in rows.values()}) == 1:
            yield from (dict(zip(rows, together, strict=True)) for together in zip(*rows.values(), strict=True))


def _part(kind: dict[int, Rows]) -> list[dict[int, Rows]]:
    """Part ranks into those that end these collectives together. Groups that only work in step end theirs together
    less often, and less closely, than each of them does.

    Two ranks are compared where it matters: of many that end nearly all together, each with the first of them.
    """

    @cache
    def beside(one: int, other: int) -> Fit | None:
        return _compare(kind[one], kind[other])

    @cache
    def best(rank: int) -> Fit:
        fits = [fit for other in kind if other != rank and (fit := beside(min(rank, other), max(rank, other)))]
        return Fit(max((fit.near for fit in fits), default=0.0), min((fit.spread for fit in fits), default=0.0))

    def are_one(one: int, other: int) -> bool:
        fit = beside(min(one, other), max(one, other))
        if fit is None or fit.near >= AS_OFTEN:
            return fit is not None
        return not any(
            fit.near < AS_OFTEN * most.near and fit.spread > AS_CLOSE * most.spread for most in (best(one), best(other))
        )

    companies: list[dict[int, Rows]] = []
    for rank, rows in kind.items():
        mine = next((company for company in companies if are_one(next(iter(company)), rank)), None)
        if mine is None:
            companies.append(mine := {})
        mine[rank] = rows
    return companies


def _compare(one: Rows, other: Rows) -> Fit | None:
    """How the collectives of two ranks end beside each other; ``None`` where most end at other times, or there are not
    as many in any step."""
    steps = [step for step in one if len(one[step]) == len(other.get(step, ()))]
    apart = [its.end_ms - own.end_ms for step in steps for own, its in zip(one[step], other[step], strict=True)]
    if not apart:
        return None
    if len(apart) < FEWEST:
        return Fit(1.0, 0.0)
    offset = find_offset(apart)
    near = sum(abs(ms - offset.median) <= TOGETHER_MS for ms in apart) / len(apart)
    return Fit(near, offset.spread) if offset.agrees else None


def _ended_together(meetings: list[Meeting]) -> list[Meeting]:
    """The collectives that ended at one moment on all ranks, once the offset of the clocks is subtracted. If that is
    less than half of what two ranks have in common, none of it is compared.

    A rank that has sent what it gives, and got what it gets, may leave before the others have. The next collective
    makes that good, so the two are taken together.
    """
    pairs = compare_pairs(meetings)

    def together(meeting: Meeting) -> bool:
        shortest = _shortest(meeting)
        return all(pairs[pair].near(ms, shortest) for pair, ms in differences(meeting).items())

    rows: dict[object, list[Meeting]] = {}
    for meeting in meetings:
        first = next(iter(meeting.values()))
        if all(pairs[pair].agrees for pair in differences(meeting)):
            rows.setdefault((first.step, first.name, first.in_graph, tuple(meeting)), []).append(meeting)
    found = []
    for row in rows.values():
        early: list[Meeting] = []
        for meeting in row:
            early.append(meeting)
            if together(meeting):
                found.append(_joined(early))
                early = []
            early = early[-MOST_EARLY:]
    return sorted(found, key=lambda meeting: next(iter(meeting.values())).step)


def _joined(meetings: list[Meeting]) -> Meeting:
    """Several meetings of the same ranks as one."""
    if len(meetings) == 1:
        return meetings[0]
    return {trace: _sum([meeting[trace] for meeting in meetings]) for trace in meetings[-1]}


def _sum(parts: list[Collective]) -> Collective:
    idle: dict[int, float] = {}
    for part in parts:
        for number, ms in zip(part.delays, part.idle_ms, strict=False):
            idle[number] = idle.get(number, 0.0) + ms
    return msgspec.structs.replace(
        parts[-1],
        ms=sum(part.ms for part in parts),
        exposed_ms=sum(part.exposed_ms for part in parts),
        idle_ms=tuple(idle.values()),
        delays=tuple(idle),
        each_ms=tuple(ms for part in parts for ms in part.each_ms or (part.ms,)),
        each_exposed_ms=tuple(ms for part in parts for ms in part.each_exposed_ms),
        found_in=tuple(one for part in parts for one in part.findings),
        each_last_ms=tuple(row for part in parts for row in part.each_last_ms or ((),) * len(part.each_ms or (0,))),
    )


def _shortest(meeting: Meeting) -> float:
    """How long the rank ran a collective that came last, in ms; the last of several in a row."""
    return min((one.each_ms or (one.ms,))[-1] for one in meeting.values())
