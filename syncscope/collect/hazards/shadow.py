"""Shadow memory: the accesses of streams that may not be over yet, by storage, and which accesses race with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from syncscope.collect.hazards.memory import Span
from syncscope.collect.hazards.vector_clocks import Clocks

MOST = 256
"""Accesses kept of one storage. Beyond that the oldest are forgotten, and races with them are missed."""

What = TypeVar("What")


@dataclass(slots=True)
class Access(Generic[What]):
    """A stream reads or writes bytes of a storage."""

    stream: int
    tick: int
    span: Span
    writes: bool
    what: What
    """Whatever the caller wants to know about it later."""


class ShadowMemory(Generic[What]):
    """Remembers what streams do to storages. A storage is named by any number."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._storages: dict[int, list[Access[What]]] = {}

    def __contains__(self, storage: int) -> bool:
        return storage in self._storages

    def __len__(self) -> int:
        return len(self._storages)

    def drop(self, storage: int) -> None:
        """The storage is freed."""
        self._storages.pop(storage, None)

    def races_with_host(self, storage: int, span: Span, writes: bool) -> list[Access[What]]:
        """Accesses that conflict with an access of the host now and that the host has not waited for."""
        return [access for access in self._unfinished(storage) if _conflict(access, span, writes)]

    def races(self, storage: int, stream: int, span: Span, writes: bool) -> list[Access[What]]:
        """Accesses that conflict with work launched on ``stream`` now and that may not be over when it begins."""
        before = self._clocks.before
        return [
            access
            for access in self._unfinished(storage)
            if _conflict(access, span, writes) and not before(access.stream, access.tick, stream)
        ]

    def add(self, storage: int, access: Access[What]) -> None:
        """Remember an access. Earlier accesses that it covers are forgotten: what races with them races with it too."""
        kept = [old for old in self._unfinished(storage) if not self._covers(access, old)]
        self._storages[storage] = [*kept, access][-MOST:]

    def _covers(self, new: Access[What], old: Access[What]) -> bool:
        strong = new.writes or not old.writes
        return strong and new.span.covers(old.span) and self._clocks.before(old.stream, old.tick, new.stream)

    def _unfinished(self, storage: int) -> list[Access[What]]:
        """The accesses to a storage that the host does not know to be over."""
        accesses = self._storages.get(storage)
        if not accesses:
            return []
        over = self._clocks.over
        left = [access for access in accesses if not over(access.stream, access.tick)]
        if not left:
            self.drop(storage)
        elif len(left) < len(accesses):
            self._storages[storage] = left
        return left


def _conflict(access: Access[What], span: Span, writes: bool) -> bool:
    return (writes or access.writes) and access.span.overlaps(span)
