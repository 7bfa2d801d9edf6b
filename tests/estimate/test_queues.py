"""Queues of launches that are full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.estimate.columns import Columns
from syncscope.estimate.courses import sum_from
from syncscope.estimate.program import QUEUE
from syncscope.estimate.queues import Queues
from tests.estimate.test_replay import usually


def full_queue(launches: int) -> Queues:
    """A queue with so many launches, of which the last is done at as many ns, and each one ns after the other."""
    queues = Queues(1, Columns(1, 1, 1, [0]))
    for number in range(launches):
        queues.add(0, 1, np.array([number + 1.0]), np.zeros(1))
    return queues


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(QUEUE - 10, QUEUE + 3), st.integers(0, 12))
@usually
def test_stretches_are_held_together_as_one_by_one(launches: list[int], waiting: int, host: int) -> None:
    work, now = np.arange(1.0, len(launches) + 1)[:, None] / 4, np.array([float(host)])
    alone, expected = full_queue(waiting), now
    for more, length in zip(launches, work, strict=True):
        after = expected + length
        expected = alone.add(0, more, np.array([9_999.0]), after, length) if more else after
    together = full_queue(waiting)
    held = together.hold(0, np.cumsum(launches).tolist(), now, work)
    found = now + work.sum(axis=0) if held is None else sum_from(now, held, np.add.accumulate(work))[-1]
    assert found.tolist() == pytest.approx(expected.tolist())
