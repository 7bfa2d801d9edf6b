"""Blocks of memory known by their address, as long as the storage that owns it lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from syncscope.collect.hazards.spans import Span, span


class Blocks:
    """Names a tensor's storage by its address. An address that another storage got later is a new block.

    ``freed`` is called with the address when a block's storage is gone.
    """

    def __init__(self, freed: Callable[[int], None]) -> None:
        self._freed = freed
        self._owners: dict[int, weakref.ref[Any]] = {}

    def find(self, tensor: Any) -> int | None:
        """The block of a tensor if it was tracked before."""
        if not self._owners:
            return None
        storage = tensor.untyped_storage()
        address = int(storage.data_ptr())
        return address if address in self._owners and self._owned(address, storage) else None

    def track(self, tensor: Any) -> int | None:
        """The block of a tensor, followed from now on; ``None`` for one without memory."""
        storage = tensor.untyped_storage()
        address = int(storage.data_ptr())
        if not address:
            return None
        if address not in self._owners or not self._owned(address, storage):
            self._forget(address)
            self._owners[address] = weakref.ref(storage, lambda owner: self._gone(address, owner))
        return address

    def _owned(self, address: int, storage: Any) -> bool:
        """Whether the block's owner still lies there: ``storage`` itself, or one that ``storage`` is an alias of."""
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
    """Whether a tensor's bytes have no gaps and no item twice, in whatever order of dimensions."""
    found = span_of(tensor)
    return found is not None and found.stop - found.start == tensor.numel() * tensor.element_size()
