"""The accesses of streams to memory that may not be over yet, block by block, and who races with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from syncscope.collect.hazards.clocks import Clocks
from syncscope.collect.hazards.spans import Span

MOST = 256
"""Accesses kept of one block; beyond that the oldest are forgotten, and races with them missed."""

What = TypeVar("What")


@dataclass(slots=True)
class Access(Generic[What]):
    """A stream reads or writes bytes of a block."""

    stream: int
    tick: int
    span: Span
    writes: bool
    what: What
    """Whatever the caller wants to know of it later."""
    accused: set[int] = field(default_factory=set)
    """Stacks of accesses that raced with this one: each is counted once."""


class Shadow(Generic[What]):
    """Remembers what streams do to blocks of memory. A block is any number."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._blocks: dict[int, list[Access[What]]] = {}

    def __contains__(self, block: int) -> bool:
        return block in self._blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def drop(self, block: int) -> None:
        """The block is freed."""
        self._blocks.pop(block, None)

    def races_with_host(self, block: int, span: Span, writes: bool) -> list[Access[What]]:
        """Accesses that conflict with one of the host now, and that it has not waited for."""
        return [access for access in self._unfinished(block) if _conflict(access, span, writes)]

    def races(self, block: int, stream: int, span: Span, writes: bool) -> list[Access[What]]:
        """Accesses that conflict with work launched on ``stream`` now, and that may not be over when it begins."""
        before = self._clocks.before
        return [
            access
            for access in self._unfinished(block)
            if _conflict(access, span, writes) and not before(access.stream, access.tick, stream)
        ]

    def add(self, block: int, access: Access[What]) -> None:
        """Remember an access. Those before it that it stands for are forgotten: who races with them races with it."""
        kept = [old for old in self._unfinished(block) if not self._stands_for(access, old)]
        self._blocks[block] = [*kept, access][-MOST:]

    def _stands_for(self, new: Access[What], old: Access[What]) -> bool:
        strong = new.writes or not old.writes
        return strong and new.span.covers(old.span) and self._clocks.before(old.stream, old.tick, new.stream)

    def _unfinished(self, block: int) -> list[Access[What]]:
        """The accesses to a block that the host does not know to be over."""
        accesses = self._blocks.get(block)
        if not accesses:
            return []
        over = self._clocks.over
        left = [access for access in accesses if not over(access.stream, access.tick)]
        if not left:
            self.drop(block)
        elif len(left) < len(accesses):
            self._blocks[block] = left
        return left


def _conflict(access: Access[What], span: Span, writes: bool) -> bool:
    return (writes or access.writes) and access.span.overlaps(span)
