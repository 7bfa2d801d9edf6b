"""Visits to a phase without steps: how much of each was counted, and what that tells of those that were not."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from syncscope.collect.count.parts import without_cost

HARDLY = 1.01
"""What lasted at most so many times as long as it was counted was counted whole."""

BINS = 4
"""Lengths of visits are told apart by such parts of a doubling, ..."""

ALIKE = (2, 4, 8)
"""... and visits are alike whose lengths differ by the first of these at most, or by a later one where none do."""

SIZES = 4
"""Waits of visits are told apart by such parts of a doubling."""

PARTS = 16
"""How much of a visit was counted is told apart by such parts of it."""

SURELY = 2.0
"""Standard deviations by which fewer visits were seen to wait than are like them."""


class Visited(NamedTuple):
    """What is known of the visits to one phase."""

    scale: float = 1.0
    """The one that is under way lasted so many times as long as it was counted."""
    whole: Mapping[int, int] = {}
    """Visits that were counted whole, by the bin of their length, ..."""
    cut: Mapping[tuple[int, int], int] = {}
    """... those that were counted in part, by how much that was as well, ..."""
    missed: Mapping[int, int] = {}
    """... and those of which nothing was counted."""
    where: int = 0
    """The bin of the one that is over, ..."""
    part: int = PARTS
    """... and how much of it was counted."""


class Visits:
    """Of one phase. Each time that the program enters it is a visit, as steps are of others: what was missed of one is
    told by others that lasted about as long."""

    def __init__(self) -> None:
        self._begun = 0, 0, 0.0
        """Time in the phase, what of it was counted and what that cost, when the visit that is under way began."""
        self._whole: defaultdict[int, int] = defaultdict(int)
        self._cut: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._missed: defaultdict[int, int] = defaultdict(int)

    def so_far(self, time_ns: int, counted_ns: int, cost_ns: float) -> Visited:
        """What is known with the visit that is under way. The phase has so much time, of which so much was counted, at
        this cost."""
        length_ns, scale = self._visit(time_ns, counted_ns, cost_ns)
        whole, cut, missed = dict(self._whole), dict(self._cut), dict(self._missed)
        if length_ns and not scale:
            missed[_bin(length_ns)] = missed.get(_bin(length_ns), 0) + 1
        return Visited(scale or 1.0, whole, cut, missed)

    def end(self, time_ns: int, counted_ns: int, cost_ns: float) -> Visited:
        """The visit is over. Returns what is known of it."""
        length_ns, scale = self._visit(time_ns, counted_ns, cost_ns)
        self._begun = time_ns, counted_ns, cost_ns
        where, part = _bin(length_ns), int(PARTS / max(scale, 1.0))
        if scale > 1:
            self._cut[where, part] += 1
        elif length_ns:  # else windows recorded all of it
            (self._whole if scale else self._missed)[where] += 1
        return Visited(scale or 1.0, where=where, part=part)

    def _visit(self, time_ns: int, counted_ns: int, cost_ns: float) -> tuple[float, float]:
        """How long the visit that is under way lasted, and how many times as long as it was counted; 0 where it was
        not."""
        before_ns, before_counted_ns, before_cost_ns = self._begun
        length_ns, counted = time_ns - before_ns, counted_ns - before_counted_ns
        if length_ns <= 0 or counted <= 0:
            return max(length_ns, 0), 0.0
        time, part = without_cost(length_ns, counted, max(cost_ns - before_cost_ns, 0.0))
        scale = time / part
        return time, scale if scale > HARDLY else 1.0


class _Seen:
    """Visits with waits that are alike."""

    __slots__ = ("by_time", "squares", "visits", "waits")

    def __init__(self) -> None:
        self.visits = self.waits = self.squares = 0
        self.by_time = 0.0
        """Waits, if what was missed of each visit was like the rest of it."""

    def add(self, waits: int, by_time: float) -> None:
        """One more."""
        self.visits += 1
        self.waits += waits
        self.squares += waits * waits
        self.by_time += by_time

    def join(self, other: _Seen) -> None:
        self.visits += other.visits
        self.waits += other.waits
        self.squares += other.squares
        self.by_time += other.by_time


class _Sum:
    """Of the waits in some visits."""

    def __init__(self) -> None:
        self.visits = self.waits = self.squares = 0.0

    def add(self, visits: float, waits: float, squares: float) -> None:
        self.visits += visits
        self.waits += waits
        self.squares += squares

    @property
    def mean(self) -> float:
        return self.waits / self.visits if self.visits else 0.0

    @property
    def variance(self) -> float:
        return max(self.squares / self.visits - self.mean**2, 0.0) if self.visits else 0.0


_ByLength = dict[int, dict[int, _Seen]]
"""Visits with waits, by the bin of their length and that of how often they waited."""


class Told(NamedTuple):
    """Waits in all visits that are over, and the variance of this number."""

    waits: float
    variance: float


class WaitsInVisits:
    """The waits at one place, by how long the visits lasted and how often each of them waited.

    A checkpoint of five hundred tensors waits five hundred times, whether counting stops at the hundredth or not. So a
    visit that was counted in part is told by those that lasted about as long, and waited as often or more. What lasted
    unlike any other is told by its own time.
    """

    def __init__(self) -> None:
        self.counted = 0
        """Waits in visits that are over."""
        self._whole: _ByLength = {}
        self._cut: _ByLength = {}
        self._least_part = PARTS
        """Of the visits with waits, the part of the one of which least was counted: they come no later."""

    def end(self, visited: Visited, waits: int, by_time: float) -> None:
        """A visit is over, in which so many ``waits`` were counted."""
        self.counted += waits
        self._least_part = min(self._least_part, visited.part)
        kind = self._cut if visited.scale > 1 else self._whole
        _of(kind, visited.where, math.floor(SIZES * math.log2(waits))).add(waits, by_time)

    def add(self, other: WaitsInVisits) -> None:
        self.counted += other.counted
        self._least_part = min(self._least_part, other._least_part)
        for mine, others in ((self._whole, other._whole), (self._cut, other._cut)):
            for where, sizes in others.items():
                for size, seen in sizes.items():
                    _of(mine, where, size).join(seen)

    def told(self, visited: Visited) -> Told:
        """What is told of all visits that are over."""
        whole = {where: dict(sizes) for where, sizes in tuple(self._whole.items())}
        cut = {where: dict(sizes) for where, sizes in tuple(self._cut.items())}
        sums = {where: _sum(sizes) for where, sizes in whole.items()}
        told = float(sum(each.waits for each in sums.values()))
        if not visited.cut and not visited.missed:
            return Told(told, 0.0)
        told_of_cut: defaultdict[int, _Sum] = defaultdict(_Sum)
        unlike, variance = 0.0, 0.0
        for where in cut:
            for seen, each, known in _by_others(where, whole, cut):
                told_of_cut[where].add(seen.visits, each.mean * seen.visits, each.mean**2 * seen.visits)
                unseen = each.mean * seen.visits - seen.waits
                unlike += unseen / math.sqrt(known) if known else 2 * unseen**2 / (seen.waits + unseen)
                variance += each.variance * seen.visits
        for where, waits in self._hidden(visited, sums).items():
            told_of_cut[where].add(0, waits, 0.0)
            unlike += waits
        told += sum(each.waits for each in told_of_cut.values())
        for where, missed in visited.missed.items():
            each, known = _of_missed(where, visited, sums, told_of_cut)
            told += missed * each.mean
            unlike += missed * each.mean / math.sqrt(known)
            variance += missed * each.variance
        return Told(told, variance + (unlike / 2) ** 2)

    def _hidden(self, visited: Visited, whole: Mapping[int, _Sum]) -> dict[int, float]:
        """The waits of visits of which too little was counted for the first of them to be seen, by the bin of the
        length: as many of these had waits as of those that were counted ``whole``, where that is no accident."""
        cut: defaultdict[int, int] = defaultdict(int)
        for (where, part), visits in visited.cut.items():
            cut[where] += visits * (part < self._least_part)
        hidden, number, variance = dict[int, float](), 0.0, 0.0
        for where, visits in cut.items():
            near = _nearest(where, visited.whole)
            if near and visits:
                known = sum(times for each, times in visited.whole.items() if abs(each - where) <= near)
                alike = [one for each, one in whole.items() if abs(each - where) <= near]
                with_waits = sum(one.visits for one in alike)
                hidden[where] = visits * sum(one.waits for one in alike) / known
                number += visits * with_waits / known
                share = (with_waits + 1) / (known + 2)
                variance += share * (1 - share) * (visits + visits**2 / known)
        return hidden if number > SURELY * math.sqrt(variance) else {}


def _bin(length_ns: float) -> int:
    return math.floor(BINS * math.log2(max(length_ns, 1.0)))


def _of(seen: _ByLength, where: int, size: int) -> _Seen:
    sizes = seen.setdefault(where, {})
    if size not in sizes:
        sizes[size] = _Seen()
    return sizes[size]


def _sum(sizes: Mapping[int, _Seen]) -> _Sum:
    found = _Sum()
    for seen in sizes.values():
        found.add(seen.visits, seen.waits, seen.squares)
    return found


def _near(where: int, near: int, seen: _ByLength) -> dict[int, _Seen]:
    """Visits with waits that lasted about as long, by how often they waited."""
    found: dict[int, dict[int, _Seen]] = {}
    for each in range(where - near, where + near + 1):
        for size, one in seen.get(each, {}).items():
            _of(found, 0, size).join(one)
    return found.get(0, {})


def _by_others(where: int, whole: _ByLength, cut: _ByLength) -> Iterator[tuple[_Seen, _Sum, int]]:
    """The visits in the bin ``where`` that were counted in part, as often as they waited alike, with what each is told,
    and how many whole ones tell it. Each is like those that waited as often or more: whole ones, and others as they are
    told. Where none is whole, the time of each tells the more the more often it was seen to wait."""
    near = _nearest(where, whole) or ALIKE[-1]
    wholes, cuts = _near(where, near, whole), _near(where, near, cut)
    others, by_time, known = _Sum(), _Sum(), 0
    for size in sorted({*wholes, *cuts}, reverse=True):
        if size in wholes:
            seen = wholes[size]
            others.add(seen.visits, seen.waits, seen.squares)
            known += seen.visits
        if size not in cuts:
            continue
        seen = cuts[size]
        time = seen.by_time / seen.visits
        by_time.add(seen.waits, seen.waits * time, seen.waits * time**2)
        like = others if known else by_time
        mean, variance = max(like.mean, seen.waits / seen.visits), like.variance
        if size in cut[where]:
            one = _Sum()
            one.add(1, mean, mean**2 + variance)
            yield cut[where][size], one, known
        if known:
            others.add(seen.visits, seen.visits * mean, seen.visits * mean**2)


def _of_missed(
    where: int, visited: Visited, whole: Mapping[int, _Sum], told_of_cut: Mapping[int, _Sum]
) -> tuple[_Sum, int]:
    """What a visit in the bin ``where`` is told of which nothing was counted, and how many others tell it: those that
    lasted about as long, or else shorter ones."""
    seen = dict(visited.whole)
    for (each, _), visits in visited.cut.items():
        seen[each] = seen.get(each, 0) + visits
    near = _nearest(where, seen)
    alike = {each for each in seen if (abs(each - where) <= near if near else each < where)}
    one = _Sum()
    for told in (whole, told_of_cut):
        for each in alike & told.keys():
            one.add(0, told[each].waits, told[each].squares)
    known = sum(seen[each] for each in alike)
    one.visits = known
    return one, max(known, 1)


def _nearest(where: int, visits: Collection[int]) -> int:
    """How far from the bin ``where`` visits are alike; 0 where none are."""
    return next((near for near in ALIKE if any(abs(each - where) <= near for each in visits)), 0)
