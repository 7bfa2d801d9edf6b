"""What all watched blocks of the process share: one listener, one set of wrappers, and who hears of which wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Literal, Protocol

from syncscope.collect.annotations import expectation
from syncscope.collect.live.open_blocks import OpenBlocks
from syncscope.collect.live.waits import LiveWait, prepares
from syncscope.collect.live.wrappers import Call, LiveWrappers
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import live_threads

Threads = Literal["own", "all"]


class Block(Protocol):
    decides: bool
    """Only the innermost of those that decide hears of a wait."""
    hears_expected: bool
    """It hears of waits that are expected too, and of those that PyTorch makes on its own account."""

    def on_wait(self, wait: LiveWait) -> None: ...


def check_threads(threads: str) -> None:
    """Raises ``ValueError``."""
    if threads not in ("own", "all"):
        raise ValueError(f'threads is "own" or "all", not {threads!r}')


class _Backward:
    """A backward under way: the blocks around it, and whether its waits are expected."""

    def __init__(self, blocks: tuple[Block, ...], is_expected: bool) -> None:
        self.blocks, self.expected = blocks, is_expected


class Watch:
    """Tells the blocks of the waits of their threads."""

    def __init__(self) -> None:
        self._backwards: list[_Backward] = []
        """Those under way: their waits on threads of the engine are those of the blocks around them."""
        self.call = Call()

    def blocks(self) -> tuple[Block, ...]:
        """Those that hear of this thread's waits, the innermost last."""
        return self._heard_and_expected()[0]

    def _heard_and_expected(self) -> tuple[tuple[Block, ...], bool]:
        """The blocks that hear of this thread's waits, and whether its waits are expected."""
        here, reason = open_blocks.here, expectation.get()
        backwards = tuple(self._backwards)
        if not backwards or reason is not None:
            return here, reason is not None
        thread = live_threads.get(threading.get_ident())
        if thread is not None and not isinstance(thread, threading._DummyThread):
            return here, False
        return here or backwards[-1].blocks, backwards[-1].expected

    @property
    def on(self) -> bool:
        return bool(self.blocks())

    def tell(self, wait: LiveWait) -> None:
        blocks, is_expected = self._heard_and_expected()
        if not blocks:
            return
        if is_expected or prepares(wait):
            for block in blocks:
                if block.hears_expected:
                    block.on_wait(wait)
            return
        for block in blocks:
            if not block.decides:
                block.on_wait(wait)
        deciding = [block for block in blocks if block.decides]
        if deciding:
            deciding[-1].on_wait(wait)

    def on_warning(self, frame: FrameType) -> None:
        """PyTorch warned at ``frame``: the wait is over."""
        if not self.call.told:
            self.tell(LiveWait(frame, direction=self.call.direction))

    def backward(self, run: Callable[[], Any]) -> Any:
        blocks, is_expected = self._heard_and_expected()
        backward = _Backward(blocks, is_expected)
        self._backwards.append(backward)
        try:
            return run()
        finally:
            self._backwards.remove(backward)


def _start() -> Iterator[Callable[[], None]]:
    import torch

    torch.cuda.init()
    sync_debug_mode.listen(torch, watch.on_warning)
    yield lambda: sync_debug_mode.unlisten(watch.on_warning)
    wrappers = LiveWrappers(torch, watch, sync_debug_mode)
    watch.call = wrappers.call
    yield wrappers.close
    wrappers.open()


watch = Watch()
open_blocks: OpenBlocks[Block] = OpenBlocks(_start)
