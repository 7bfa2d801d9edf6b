"""The calls behind waits, which take less where the wait goes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from syncscope.estimate.waiting import _following


def test_the_next_call_of_the_same_thread_follows_each_wait() -> None:
    chance = random.Random(1)
    chain = np.array([chance.randrange(4) for _ in range(300)])
    study: Any = SimpleNamespace(program=SimpleNamespace(items=SimpleNamespace(chain=chain)))
    waits = [chance.randrange(300) for _ in range(60)] + [299]
    expected = [next((later for later in range(wait + 1, 300) if chain[later] == chain[wait]), None) for wait in waits]
    assert None in expected
    assert _following(study, waits) == [each for each in expected if each is not None]
    assert _following(study, []) == []
