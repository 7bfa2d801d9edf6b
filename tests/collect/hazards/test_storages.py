"""Addresses are told apart by who owns them."""

from __future__ import annotations

import gc

import pytest

from syncscope.collect.hazards.memory import Storages


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
def storages(freed: list[int]) -> Storages:
    return Storages(freed.append)


def test_a_storage_is_found_once_it_is_tracked(storages: Storages) -> None:
    tensor = Tensor(Storage(64))
    assert storages.find(tensor) is None
    assert storages.track(tensor) == storages.find(tensor) == 64


def test_a_storage_is_forgotten_when_it_is_freed(storages: Storages, freed: list[int]) -> None:
    tensor = Tensor(Storage(64))
    storages.track(tensor)
    del tensor
    gc.collect()
    assert freed == [64]


def test_a_storage_that_moved_away_leaves_its_address_to_others(storages: Storages, freed: list[int]) -> None:
    resized, other = Storage(64), Storage(64)
    storages.track(Tensor(resized))
    resized.address = 128
    assert storages.find(Tensor(other)) is None
    assert storages.track(Tensor(other)) == 64
    assert freed == [64]


def test_two_storages_at_one_address_are_one(storages: Storages, freed: list[int]) -> None:
    owner, alias = Storage(64), Storage(64)
    storages.track(Tensor(owner))
    assert storages.find(Tensor(alias)) == storages.track(Tensor(alias)) == 64
    assert freed == []


def test_a_storage_that_dies_late_does_not_free_its_successor(storages: Storages, freed: list[int]) -> None:
    first, second = Storage(64), Storage(64)
    storages.track(Tensor(first))
    first.address = 128
    storages.track(Tensor(second))
    del first
    gc.collect()
    assert freed == [64]  # when it was replaced, and not again
    assert storages.find(Tensor(second)) == 64


def test_nothing_without_memory_is_tracked(storages: Storages) -> None:
    assert storages.track(Tensor(Storage(0))) is None
