"""The memory of tensors: storages, known by their address, and the bytes of them that a tensor covers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Bytes from ``start`` to ``stop``: all of them, or the first ``width`` of every ``pitch`` bytes."""

    start: int
    stop: int
    pitch: int = 0
    width: int = 0
    gaps: bool = False
    """Whether further bytes may be left out."""

    @property
    def columns(self) -> bool:
        """Whether it covers only a part of each row, as a column of a matrix does."""
        return self.pitch > self.width

    def overlaps(self, other: Span) -> bool:
        """Whether the two may share a byte: exact for whole ranges and for columns of one matrix, else assumed."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        if not (self.columns and other.columns and self.pitch == other.pitch):
            return True
        # Columns of one matrix: apart when neither reaches into the other within a row.
        shift = (other.start - self.start) % self.pitch
        return shift < self.width or shift + other.width > self.pitch

    def covers(self, other: Span) -> bool:
        """Whether every byte of ``other`` is certainly in this one."""
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
    """Remove leading dimensions whose items leave no gap, and return how many bytes they cover together."""
    while dims and dims[0][0] <= width:
        stride, size = dims.pop(0)
        width += stride * (size - 1)
    return width


class Storages:
    """Identifies a tensor's storage by its address for as long as the storage lives.

    An address that is reused by a later storage counts as new. ``freed`` is called with the address when its storage
    is gone; it may run while an exception is being raised, so it must not raise.
    """

    def __init__(self, freed: Callable[[int], None]) -> None:
        self._freed = freed
        self._owners: dict[int, weakref.ref[Any]] = {}

    def find(self, tensor: Any) -> int | None:
        """The address of a tensor's storage, ``None`` unless ``track`` has seen it."""
        if not self._owners:
            return None
        storage = tensor.untyped_storage()
        address = int(storage.data_ptr())
        return address if address in self._owners and self._owned(address, storage) else None

    def track(self, tensor: Any) -> int | None:
        """The address of a tensor's storage, which is followed from now on; ``None`` for one without memory."""
        storage = tensor.untyped_storage()
        address = int(storage.data_ptr())
        if not address:
            return None
        if address not in self._owners or not self._owned(address, storage):
            self._forget(address)
            self._owners[address] = weakref.ref(storage, lambda owner: self._gone(address, owner))
        return address

    def _owned(self, address: int, storage: Any) -> bool:
        """Whether the storage at ``address`` is still ``storage``, or one that ``storage`` is an alias of."""
        owner = self._owners[address]()
        return owner is storage or (owner is not None and owner.data_ptr() == address)

    def _gone(self, address: int, owner: weakref.ref[Any]) -> None:
        if self._owners.get(address) is owner:
            self._forget(address)

    def _forget(self, address: int) -> None:
        if self._owners.pop(address, None) is not None:
            self._freed(address)


def span_of(tensor: Any) -> Span | None:
    """The bytes of a tensor; ``None`` when it has none."""
    if tensor.is_contiguous():
        size = tensor.numel() * tensor.element_size()
        return Span(start := tensor.data_ptr(), start + size) if size else None
    return span(tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.element_size())


def is_dense(tensor: Any) -> bool:
    """Whether a tensor's bytes have no gaps and no item twice, with its dimensions in any order."""
    covered = span_of(tensor)
    return covered is not None and covered.stop - covered.start == tensor.numel() * tensor.element_size()
