"""Fixtures of the tests on a real GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def nothing_left_behind() -> Iterator[None]:
    import torch

    from tests.collect.hazards.test_modes import state

    torch.cuda.init()
    before = state()
    yield
    assert state() == before


@pytest.fixture
def side() -> Any:
    import torch

    return torch.cuda.Stream()
