"""Idle time of a device whose host sleeps, or waits for a thread or another process."""

from __future__ import annotations

import pytest

from tests.builders import TraceBuilder
from tests.timeline.test_bubbles import base, gap


def test_a_host_that_sleeps_does_not_work() -> None:
    assert gap(base().builtin("sleep", 105, 200), 100) == {
        "host idle": 200, "host work": 90, "launch latency": 10, "wait row": -1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("/usr/lib/python3.12/queue.py", "get"),
        ("/usr/lib/python3.12/threading.py", "wait"),
        ("/usr/lib/python3/site-packages/vllm/distributed/device_communicators/shm_broadcast.py", "acquire_read"),
    ],
)
def test_a_host_that_waits_for_others_does_not_work(file: str, function: str) -> None:
    assert gap(base().frame(file, 10, function, 105, 200), 100)["host idle"] == 200


def test_a_function_of_the_program_may_be_called_like_one_that_waits() -> None:
    assert "host idle" not in gap(base().frame("train.py", 10, "wait", 105, 200), 100)


def test_a_thread_that_launches_little_may_wait() -> None:
    builder = TraceBuilder().on(77).launch("other", call=(0, 1), runs=(2, 3)).builtin("sleep", 105, 200).on(1)
    builder.launch("a", call=(0, 5), runs=(10, 90)).launch("b", call=(380, 10), runs=(400, 100))
    assert gap(builder, 100) == {"host work": 290, "launch latency": 10, "wait row": -1}


def test_a_host_that_waits_for_the_next_batch_loads_data() -> None:
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    found = gap(base().annotation(loader, 105, 200).builtin("acquire", 110, 190), 100)
    assert (found["data loading"], "host idle" in found) == (200, False)
