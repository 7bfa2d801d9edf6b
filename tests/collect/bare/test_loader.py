"""What a recording says of the loader that feeds the steps."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.bare.loader import describe, interval_ns, median_ready, ready_batches
from syncscope.collect.bare.steps import Batch, Step
from syncscope.collect.bare.window import is_calm


def test_a_loader_with_workers_is_described_and_its_ready_batches_are_counted() -> None:
    torch = pytest.importorskip("torch", reason="the loader is PyTorch's")
    loader = torch.utils.data.DataLoader(
        list(range(64)), batch_size=4, num_workers=2, prefetch_factor=3, collate_fn=list
    )
    iterator = iter(loader)
    next(iterator)
    told = describe(iterator)
    assert (told.workers, told.prefetch, told.batch_size, told.pinned) == (2, 3, 4, False)
    until = time.monotonic() + 60
    while (ready := ready_batches(iterator)) != 6 and time.monotonic() < until:
        time.sleep(0.01)
    assert ready == 6
    assert len(list(iterator)) == 15


def test_a_loader_without_workers_has_nothing_ready() -> None:
    torch = pytest.importorskip("torch", reason="the loader is PyTorch's")
    iterator = iter(torch.utils.data.DataLoader(list(range(8)), batch_size=None))
    told = describe(iterator)
    assert (told.workers, told.prefetch, told.batch_size) == (0, None, None)
    assert ready_batches(iterator) is None


@pytest.mark.parametrize(
    "queue",
    [None, SimpleNamespace(), SimpleNamespace(qsize=lambda: 1 / 0), SimpleNamespace(qsize=lambda: "many")],
)
def test_an_iterator_of_another_make_is_left_alone(queue: Any) -> None:
    iterator = SimpleNamespace(_data_queue=queue, _num_workers="two", _pin_memory=None, _task_info={})
    assert ready_batches(iterator) is None
    assert (describe(iterator).workers, describe(iterator).pinned) == (0, None)


def test_a_batch_that_came_before_its_turn_is_ready() -> None:
    iterator = SimpleNamespace(_data_queue=SimpleNamespace(qsize=lambda: 1), _task_info={5: (0,), 6: (1, "data")})
    assert ready_batches(iterator) == 2


def fed(*batches: tuple[int | None, int], gap: dict[int, int] | None = None) -> list[Step]:
    """Steps that end when they have their batch: how many were ready, and when it came."""
    made, begin = [], 0
    for number, (ready, end) in enumerate(batches):
        begin += (gap or {}).get(number, 0)
        made.append(Step(begin, end - begin, batches=(Batch(ready, begin, end),)))
        begin = end
    return made


def test_the_workers_interval_is_that_between_batches_the_host_waited_for() -> None:
    assert interval_ns(fed((0, 10), (0, 20), (0, 31), (0, 40))) == 10
    assert interval_ns(fed((0, 10), (2, 11), (1, 12), (0, 40), (0, 50))) == 10  # three came in one go
    assert interval_ns(fed((3, 10), (2, 20), (3, 30))) is None
    assert interval_ns(fed((None, 10), (None, 20))) is None


def test_a_step_that_was_set_aside_is_no_interval() -> None:
    assert interval_ns(fed((0, 10), (0, 20), (0, 530), (0, 540), gap={2: 500})) == 10


def test_ready_batches_are_those_of_the_median_step() -> None:
    assert median_ready(fed((0, 10), (0, 20), (2, 30))) == 0
    assert median_ready(fed((None, 10))) is None


def test_a_queue_is_calm_when_it_is_empty_or_shrinks_no_more() -> None:
    assert is_calm([], 0)
    assert not is_calm([], 2) and not is_calm([2], 2)
    assert is_calm([2, 1, 0, 0], 2)
    assert is_calm([6, 6, 5, 6, 6, 6, 6], 6)
    assert not is_calm([6, 6, 5, 5, 4, 4, 3], 6)


def test_a_sampler_that_does_not_say_how_large_its_batches_are_is_passed_over() -> None:
    class Sampler:
        @property
        def batch_size(self) -> int:
            raise RuntimeError("it depends")

    assert describe(SimpleNamespace(_num_workers=2, _index_sampler=Sampler())).batch_size is None
