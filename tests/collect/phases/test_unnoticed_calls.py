"""Modules that do as they like, and programs that look closely at their classes, get with the hooks what they get
alone."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases import modules  # noqa: E402
from syncscope.collect.phases.modules import LOOK_CALLS  # noqa: E402
from tests.collect.phases.following import X  # noqa: E402


class Other(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have compiled something in this process."""
    monkeypatch.setattr(modules, "has_compiled", lambda: False)


def call_often(net: Any) -> None:
    for _ in range(LOOK_CALLS + 1):
        net(X)


def test_a_module_that_does_not_say_whether_it_trains_is_called_as_without_us(run: Any) -> None:
    class Silent(Other):
        @property
        def training(self) -> bool:
            raise RuntimeError("does not say")

        @training.setter
        def training(self, mode: bool) -> None: ...

    net = Silent()
    call_often(net)
    assert net(X) is X and net.eval() is net


def test_a_class_without_a_hash_costs_the_phases_and_not_the_program(run: Any) -> None:
    class Kind(type):
        def __hash__(cls) -> int:
            raise RuntimeError("has none")

    net = Kind("Hashless", (Other,), {})()
    assert net(X) is X
    assert "has none" in run.signals.failure
    run.signals.failure = ""


def test_a_module_is_described_as_without_us(run: Any) -> None:
    assert list(inspect.signature(Other()).parameters) == ["args", "kwargs"]


def test_a_class_of_the_program_is_pickled_as_without_us(run: Any) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="it pickles classes")

    class Net(Other):
        """No module has it by its name."""

    net = Net()
    alone = cloudpickle.dumps(net)
    call_often(net)
    assert "__call__" in vars(Net)
    assert cloudpickle.dumps(net) == alone
    assert "__call__" in vars(Net)
    assert pickle.loads(alone)(X) is X
