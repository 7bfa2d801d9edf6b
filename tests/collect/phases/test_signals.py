"""The hooks on PyTorch tell what happens, once, and leave nothing behind."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import Followed, X, following, learn, loader, model, sgd  # noqa: E402


def test_a_bound_call_that_the_program_kept_is_told_once(run: Any) -> None:
    net = model().eval()
    call = net.__call__
    for _ in range(5):
        call(X)
    assert run.steps == {"evaluate": 5}


def test_a_bound_call_works_after_the_hooks_are_gone() -> None:
    with following() as run:
        call = model().eval().__call__
        for _ in range(3):
            call(X)
    before = run.steps
    for _ in range(3):
        assert call(X).shape == (3, 1)
    assert run.steps == before == {"evaluate": 3}


def test_attaching_again_after_detaching_works() -> None:
    run = Followed()
    net = model().eval()
    for _ in range(2):
        run.signals.attach(torch)
        for _ in range(3):
            net(X)
        run.signals.detach()
        run.signals.detach()
    assert run.steps == {"evaluate": 6}


def test_a_module_that_raises_does_not_confuse_what_is_outermost(run: Any) -> None:
    class Broken(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise ValueError

    broken, net = Broken(), model().eval()
    with pytest.raises(ValueError):
        broken(X)
    assert not run.tracker.expected.inside_call
    for _ in range(3):
        net(X)
    assert run.steps == {"evaluate": 3}


def test_tells_whether_optimizers_were_made(run: Any) -> None:
    class Mine(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

        def step(self, closure: Any = None) -> None:
            pass

    made = [kind for kind in torch.optim.Optimizer.__subclasses__() if hasattr(vars(kind).get("step"), "hooked")]
    assert run.signals.optimizers_made == bool(made)
    Mine(model().parameters())
    assert run.signals.optimizers_made


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_not_followed(run: Any) -> None:
    net = model().eval()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with torch.no_grad():
                for _ in range(5):
                    net(X)
            os.write(write, repr(run.sequence).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"[]"
    os.close(read)
    os.close(write)
    for _ in range(3):
        net(X)
    assert run.steps == {"evaluate": 3}


def test_the_programs_random_numbers_stay(run: Any) -> None:
    before = random.getstate(), torch.random.get_rng_state()
    net = model()
    middle = torch.random.get_rng_state()
    optimizer = sgd(net)
    for _ in range(600):
        learn(net, optimizer)
    assert random.getstate() == before[0]
    assert torch.equal(torch.random.get_rng_state(), middle)


def test_a_loader_inside_of_a_loader_is_told_once(run: Any) -> None:
    class Nested(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            for x in loader(2):
                yield x[0]

    net = model().eval()
    for x in torch.utils.data.DataLoader(Nested(), batch_size=1):
        net(x)
    assert run.steps == {"evaluate": 2}
    assert run.tracker.phases[1].batches == 1


def test_a_loader_that_fails_passes_its_error_on(run: Any) -> None:
    class Bad(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            raise KeyError(index)

    with pytest.raises(KeyError):
        next(iter(torch.utils.data.DataLoader(Bad())))
    net = model().eval()
    for x in loader(4):
        net(x)
    assert run.steps == {"evaluate": 4}


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_module_is_compiled_once_and_without_a_warning(run: Any, in_place: bool) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = model()

        def forward(self, x: Any) -> Any:
            return self.layers(x) + 1

    net = Net()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    if in_place:
        net.compile(backend="eager", fullgraph=True)
    called = net if in_place else torch.compile(net, backend="eager", fullgraph=True)
    optimizer = sgd(net)
    for x in loader(6):
        learn(called, optimizer, x)
    assert run.steps == {"train": 6}
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_a_module_inside_of_another_is_called_with_its_hooks(run: Any) -> None:
    net = model()
    seen: list[str] = []
    net[0].register_forward_pre_hook(lambda *given: seen.append("before"))
    net[0].register_forward_hook(lambda *given: seen.append("after"))
    wanted = net.forward(X)
    seen.clear()
    assert torch.equal(net(X), wanted)
    assert seen == ["before", "after"]


def test_a_failure_of_ours_is_noted_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(phase: Any) -> None:
        raise ValueError("ours")

    with following() as run:
        monkeypatch.setattr(run, "stepped", fail)
        net = model().eval()
        for _ in range(4):
            assert net(X).shape == (3, 1)
        assert run.signals.failure == "Phases were no longer followed (ValueError: ours)."
        assert run.steps == {"evaluate": 2}


@pytest.mark.parametrize("by_time", [False, True])
def test_a_failure_of_ours_at_a_step_that_the_program_says_is_noted_too(
    monkeypatch: pytest.MonkeyPatch, by_time: bool
) -> None:
    def fail(phase: Any) -> None:
        raise ValueError("ours")

    with following() as run:
        monkeypatch.setattr(run, "stepped", fail)
        say = run.signals.tick if by_time else run.signals.user_step
        for _ in range(3):
            say()
        assert run.signals.failure == "Phases were no longer followed (ValueError: ours)."


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_what_ends_the_program_passes(monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]) -> None:
    def end(phase: Any) -> None:
        raise stop

    with following() as run:
        monkeypatch.setattr(run, "stepped", end)
        with pytest.raises(stop):
            run.signals.user_step()
        net = model().eval()
        with pytest.raises(stop):
            [net(X) for _ in range(4)]
        assert not run.signals.failure
