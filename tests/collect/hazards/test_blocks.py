"""Addresses are told apart by who owns them."""

from __future__ import annotations

import gc

import pytest

from syncscope.collect.hazards.blocks import Blocks


class Storage:
    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


class Tensor:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def untyped_storage(self) -> Storage:
        return self._storage


@pytest.fixture
def freed() -> list[int]:
    return []


@pytest.fixture
def blocks(freed: list[int]) -> Blocks:
    return Blocks(freed.append)


def test_a_block_is_found_once_it_is_tracked(blocks: Blocks) -> None:
    tensor = Tensor(Storage(64))
    assert blocks.find(tensor) is None
    assert blocks.track(tensor) == blocks.find(tensor) == 64


def test_a_block_is_freed_with_its_storage(blocks: Blocks, freed: list[int]) -> None:
    tensor = Tensor(Storage(64))
    blocks.track(tensor)
    del tensor
    gc.collect()
    assert freed == [64]


def test_a_storage_that_moved_away_leaves_its_address_to_others(blocks: Blocks, freed: list[int]) -> None:
    resized, other = Storage(64), Storage(64)
    blocks.track(Tensor(resized))
    resized.address = 128
    assert blocks.find(Tensor(other)) is None
    assert blocks.track(Tensor(other)) == 64
    assert freed == [64]


def test_two_storages_at_one_address_are_one_block(blocks: Blocks, freed: list[int]) -> None:
    owner, alias = Storage(64), Storage(64)
    blocks.track(Tensor(owner))
    assert blocks.find(Tensor(alias)) == blocks.track(Tensor(alias)) == 64
    assert freed == []


def test_a_storage_that_dies_late_does_not_free_its_successor(blocks: Blocks, freed: list[int]) -> None:
    first, second = Storage(64), Storage(64)
    blocks.track(Tensor(first))
    first.address = 128
    blocks.track(Tensor(second))
    del first
    gc.collect()
    assert freed == [64]  # when it was replaced, and not again
    assert blocks.find(Tensor(second)) == 64


def test_nothing_without_memory_is_tracked(blocks: Blocks) -> None:
    assert blocks.track(Tensor(Storage(0))) is None
