"""Which bytes a tensor covers, and whether two tensors share any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """Bytes from ``start`` to ``stop``: all of them, or of every ``pitch`` bytes from ``start`` the first ``width``."""

    start: int
    stop: int
    pitch: int = 0
    width: int = 0
    gaps: bool = False
    """More bytes than that may be left out."""

    @property
    def columns(self) -> bool:
        """Whether only a part of each row is meant, as in a column of a matrix."""
        return self.pitch > self.width

    def overlaps(self, other: Span) -> bool:
        """Whether a byte may be in both. Exact for whole ranges and for columns of one matrix; else assumed."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        if not (self.columns and other.columns and self.pitch == other.pitch):
            return True
        # Columns of one matrix: apart when neither reaches into the other within a row.
        shift = (other.start - self.start) % self.pitch
        return shift < self.width or shift + other.width > self.pitch

    def covers(self, other: Span) -> bool:
        """Whether every byte of ``other`` is surely in this one."""
        if self == other:
            return True
        if self.gaps or self.start > other.start or other.stop > self.stop:
            return False
        if not self.columns:
            return True
        within = (other.start - self.start) % self.pitch + other.width <= self.width
        return other.columns and self.pitch == other.pitch and within


def span(start: int, sizes: Sequence[int], strides: Sequence[int], itemsize: int) -> Span | None:
    """The bytes of a tensor at address ``start`` with ``sizes`` and ``strides`` in items; ``None`` when it has none."""
    if 0 in sizes:
        return None
    dims = sorted((stride * itemsize, size) for size, stride in zip(sizes, strides, strict=True))
    dims = [(stride, size) for stride, size in dims if size > 1 and stride > 0]
    width = _merge(dims, itemsize)
    if not dims:
        return Span(start, start + width)
    pitch = dims[0][0]
    if all(stride % pitch == 0 for stride, _ in dims):
        rows = _merge(dims, pitch)  # rows without a gap between them are one block of rows
        reach = rows - pitch + width + sum(stride * (size - 1) for stride, size in dims)
        return Span(start, start + reach, pitch, width, gaps=bool(dims))
    reach = width + sum(stride * (size - 1) for stride, size in dims)
    return Span(start, start + reach, gaps=True)


def _merge(dims: list[tuple[int, int]], width: int) -> int:
    """Take the dimensions off the front whose items leave no gap; the bytes they cover together."""
    while dims and dims[0][0] <= width:
        stride, size = dims.pop(0)
        width += stride * (size - 1)
    return width
