"""Which line each wait and copy is at, and which findings speak of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from syncscope.report.finding_phrases import format_location
from syncscope.report.picture.lanes import KernelLine, KernelLines, Spot
from syncscope.rules import Hit
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Ints
from syncscope.timeline.kernel_lines import inner_frame


def find_lines(timeline: Timeline, names: Iterable[str]) -> tuple[KernelLines, ...]:
    """Those of the kernels among ``names``."""
    known = timeline.kernel_lines
    return tuple(
        KernelLines(name=number, lines=tuple(line for place in known[name] for line in _kernel_line(place)))
        for number, name in enumerate(names)
        if name in known
    )


def _kernel_line(place: Place) -> Iterator[KernelLine]:
    site, library = place.site, inner_frame(place)
    if site is None:
        return
    yield KernelLine(
        file=site.file, line=site.line, function=site.function, expression=site.expression,
        inside=format_location(library) if library is not None else None,
    )  # fmt: skip


class Spots:
    """The distinct spots of a timeline's waits and copies."""

    def __init__(self, timeline: Timeline, hits: Sequence[Hit]) -> None:
        self._tables, self._places = timeline, timeline.places
        self._number: dict[Spot, int] = {}
        self._of_wait = _by_row((number, (*hit.waits, *hit.waits_outside)) for number, hit in _numbered(hits))
        self._of_copy = _by_row((number, (*hit.copies, *hit.copies_outside)) for number, hit in _numbered(hits))
        self._about_waits = {number for numbers in self._of_wait.values() for number in numbers}

    @property
    def all(self) -> tuple[Spot, ...]:
        """Every spot, by its number."""
        return tuple(self._number)

    def of_waits(self) -> Ints:
        """For each wait (n,) the number of its spot. The findings of its copy come after its own."""
        waits = self._tables.waits
        numbers = []
        for row, (copy, place) in enumerate(zip(waits.copy.tolist(), waits.place.tolist(), strict=True)):
            findings = dict.fromkeys((*self._of_wait.get(row, ()), *self._of_copy.get(copy, ())))
            numbers.append(self._spot(place, tuple(findings)))
        return np.array(numbers, dtype=np.int64)

    def of_copies(self, copies: Ints, *, waits_first: bool = False) -> Ints:
        """For each of these copies (n,) the number of its spot. The findings of its wait come after its own, or first:
        in a call that blocks."""

        def order(number: int) -> tuple[bool, int]:
            return (number in self._about_waits) != waits_first, number

        places = self._tables.copies.place[copies]
        numbers = [
            self._spot(place, tuple(sorted(self._of_copy.get(copy, ()), key=order)))
            for copy, place in zip(copies.tolist(), places.tolist(), strict=True)
        ]
        return np.array(numbers, dtype=np.int64)

    def _spot(self, place: int, findings: tuple[int, ...]) -> int:
        site = self._places[place].site
        spot = Spot(file=site.file if site else None, line=site.line if site else None, findings=findings)
        return self._number.setdefault(spot, len(self._number))


def _numbered(hits: Iterable[Hit]) -> Iterable[tuple[int, Hit]]:
    return ((hit.finding.number, hit) for hit in hits if hit.finding.number is not msgspec.UNSET)


def _by_row(rows: Iterable[tuple[int, Iterable[int]]]) -> dict[int, list[int]]:
    """For each row the numbers of the findings that speak of it, in order."""
    by_row: dict[int, list[int]] = {}
    for number, mine in rows:
        for row in dict.fromkeys(mine):
            by_row.setdefault(row, []).append(number)
    return by_row
