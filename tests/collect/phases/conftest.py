from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(params=[0, 1000], ids=["heard", "unheard"])
def run(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Follows this test's program, whose steps must all be heard, or none; afterwards nothing of it is left in
    PyTorch."""
    torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")
    from tests.collect.phases.following import following

    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    places = (
        (torch.nn.Module, "__call__"), (torch.amp.GradScaler, "step"), (iterator, "__next__"), (torch, "save"),
        (torch, "load"),
    )  # fmt: skip
    before = [getattr(owner, name) for owner, name in places]
    with following(unheard=request.param) as followed:
        yield followed
        assert not followed.signals.failure
    assert [getattr(owner, name) for owner, name in places] == before
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have compiled something in this process."""
    from syncscope.collect.phases import modules

    monkeypatch.setattr(modules, "has_compiled", lambda: False)


@pytest.fixture
def time() -> Any:
    """A clock that the test turns on."""
    pytest.importorskip("torch", reason="the hooks are PyTorch's")
    from tests.collect.phases.following import Time

    return Time()


@pytest.fixture
def run_in_time(time: Any) -> Iterator[Any]:
    """Follows this test's program by ``time``. A hundred steps may pass unheard."""
    from tests.collect.phases.following import following

    with following(unheard=100, clock=time) as followed:
        yield followed
