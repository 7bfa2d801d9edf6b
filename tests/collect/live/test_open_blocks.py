"""Watched blocks: begun once for the process, undone by the last, also when beginning fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from syncscope.collect.live.open_blocks import OpenBlocks


class Watch:
    def __init__(self, fails: bool = False) -> None:
        self.log: list[str] = []
        self._fails = fails
        self.blocks: OpenBlocks[str] = OpenBlocks(self._begin)

    def _begin(self) -> Iterator[Callable[[], None]]:
        for name in ("first", "second"):
            self.log.append(f"begin {name}")
            yield lambda name=name: self.log.append(f"end {name}")  # type: ignore[misc]
            if self._fails:
                raise RuntimeError("no device")


def test_the_first_block_begins_and_the_last_one_undoes_in_reverse() -> None:
    watch = Watch()
    watch.blocks.enter("outer")
    watch.blocks.enter("inner")
    assert watch.blocks.of_this_thread == ["outer", "inner"]
    watch.blocks.leave()
    assert (watch.blocks.of_this_thread, watch.log) == (["outer"], ["begin first", "begin second"])
    watch.blocks.leave()
    assert watch.log[2:] == ["end second", "end first"]


def test_each_thread_has_its_own_blocks() -> None:
    watch = Watch()
    watch.blocks.enter("mine")
    seen: list[list[str]] = []

    def other() -> None:
        watch.blocks.enter("theirs")
        seen.append(list(watch.blocks.of_this_thread))
        watch.blocks.leave()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert (seen, watch.blocks.of_this_thread, len(watch.log)) == ([["theirs"]], ["mine"], 2)


def test_what_had_begun_is_undone_when_the_rest_fails() -> None:
    watch = Watch(fails=True)
    with pytest.raises(RuntimeError, match="no device"):
        watch.blocks.enter("block")
    assert (watch.log, watch.blocks.of_this_thread) == (["begin first", "end first"], [])
