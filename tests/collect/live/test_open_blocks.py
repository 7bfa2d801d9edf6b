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

    def seen_by_another_thread(self) -> tuple[str, ...]:
        seen: list[tuple[str, ...]] = []
        thread = threading.Thread(target=lambda: seen.append(self.blocks.here))
        thread.start()
        thread.join()
        return seen[0]


def test_the_first_block_begins_and_the_last_one_undoes_in_reverse() -> None:
    watch = Watch()
    watch.blocks.enter("outer")
    watch.blocks.enter("inner")
    assert watch.blocks.here == ("outer", "inner")
    watch.blocks.leave("inner")
    assert (watch.blocks.here, watch.log) == (("outer",), ["begin first", "begin second"])
    watch.blocks.leave("outer")
    assert watch.log[2:] == ["end second", "end first"]


def test_each_thread_has_its_own_blocks_inside_of_those_of_all() -> None:
    watch = Watch()
    watch.blocks.enter("mine")
    assert watch.seen_by_another_thread() == ()
    watch.blocks.enter("all", everywhere=True)
    watch.blocks.enter("inner")
    assert watch.seen_by_another_thread() == ("all",)
    assert watch.blocks.here == ("mine", "all", "inner")
    for block in ("inner", "all", "mine"):
        watch.blocks.leave(block)
    assert watch.seen_by_another_thread() == watch.blocks.here == ()
    assert len(watch.log) == 4


def test_the_same_block_may_be_open_twice() -> None:
    watch = Watch()
    watch.blocks.enter("block")
    watch.blocks.enter("block")
    watch.blocks.leave("block")
    assert watch.blocks.here == ("block",)
    watch.blocks.leave("block")
    assert watch.log[2:] == ["end second", "end first"]


def test_a_block_of_a_thread_is_none_of_the_next_one_with_its_ident() -> None:
    watch = Watch()
    seen: dict[int, tuple[str, ...]] = {}

    def enter() -> None:
        watch.blocks.enter_thread("block", threading.get_ident())
        seen[threading.get_ident()] = watch.blocks.here

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    ((ident, inside),) = seen.items()
    assert inside == ("block",)
    for _ in range(20):  # one of them gets the ident, as a rule the first
        later = threading.Thread(target=lambda: seen.update({threading.get_ident(): watch.blocks.here}))
        later.start()
        later.join()
    assert seen[ident] == ()
    watch.blocks.leave("block")


def test_what_had_begun_is_undone_when_the_rest_fails() -> None:
    watch = Watch(fails=True)
    with pytest.raises(RuntimeError, match="no device"):
        watch.blocks.enter("block")
    assert (watch.log, watch.blocks.here) == (["begin first", "end first"], ())
