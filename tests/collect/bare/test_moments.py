"""Stamps of what the host does in a step of a real PyTorch program, on the CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.bare.moments import MOST, HostMoments  # noqa: E402
from syncscope.collect.patching import Patches  # noqa: E402
from syncscope.collect.paths import Paths  # noqa: E402
from syncscope.collect.sites.stacks import Stacks  # noqa: E402
from tests.collect.phases.following import X, following, learn, loader, model, sgd  # noqa: E402

STACKS = Stacks(Paths(Path(__file__).parents[3]))


@pytest.fixture
def host() -> Iterator[HostMoments]:
    with following() as run:
        one = HostMoments(torch, STACKS, run.signals)
        yield one
        one.close()
        assert run.signals.moments is None


def step(host: HostMoments, net: Any, optimizer: Any) -> list[tuple[str, str]]:
    learn(net, optimizer)
    moments, _ = host.take()
    assert all((one.begin_ns or 0) <= one.end_ns for one in moments)
    return [(one.event, one.name) for one in moments]


TRAINS = [("forward", "Sequential"), ("backward", "backward"), ("optimizer", "SGD")]


def test_forward_backward_and_the_optimizer_are_stamped_in_their_order(host: HostMoments) -> None:
    net = model()
    optimizer = sgd(net)
    host.open()
    assert [step(host, net, optimizer) for _ in range(3)] == [TRAINS] * 3
    host.close()
    assert step(host, net, optimizer) == []
    assert "moments" not in torch.autograd._engine_run_backward.__code__.co_filename


def test_the_stack_is_that_of_the_programs_line(host: HostMoments) -> None:
    net = model()
    host.open()
    net(X)
    ((moment,), _) = host.take()
    frames, stacks = STACKS.resolve()
    assert frames[stacks[moment.stack][-1]].expression == "net(X)"


def test_a_module_inside_of_another_is_no_moment(host: HostMoments) -> None:
    host.open()
    torch.nn.Sequential(model(), torch.nn.ReLU())(X)
    assert [one.name for one in host.take()[0]] == ["Sequential"]


def test_the_batches_of_a_loader_are_moments_and_tell_of_it(host: HostMoments) -> None:
    host.open()
    for _ in loader(3):
        pass
    moments, batches = host.take()
    assert {one.event for one in moments} == {"loader"} and len(moments) == len(batches) > 1
    assert host.loader is not None and host.loader.workers == 0


def test_without_stamps_only_batches_are_seen(host: HostMoments) -> None:
    net = model()
    host.open(stamps=False)
    step(host, net, sgd(net))
    next(iter(loader(3)))
    moments, batches = host.take()
    assert moments == () and len(batches) == 1


def test_other_threads_are_not_stamped(host: HostMoments) -> None:
    net = model()
    optimizer = sgd(net)
    host.open()
    thread = threading.Thread(target=learn, args=(net, optimizer))
    thread.start()
    thread.join()
    assert host.take()[0] == ()


def test_explicit_waits_are_stamped_and_their_entry_points_put_back() -> None:
    waited = []
    native = SimpleNamespace(_cuda_synchronize=lambda: waited.append(1))
    original = native._cuda_synchronize
    fake = SimpleNamespace(_C=native, cuda=SimpleNamespace(Event=type("Event", (), {})), autograd=SimpleNamespace())
    one = HostMoments(fake, STACKS, None)
    one.open()
    native._cuda_synchronize()
    ((moment,), _) = one.take()
    assert (moment.event, moment.name, waited) == ("wait", "torch.cuda.synchronize", [1])
    one.close()
    assert native._cuda_synchronize is original


def test_stamps_that_take_more_than_their_share_of_the_step_end(host: HostMoments) -> None:
    net = model()
    optimizer = sgd(net)
    host.open()
    learn(net, optimizer)
    moments, _ = host.take()
    host.afford(moments, 10_000_000)
    assert step(host, net, optimizer) == TRAINS
    host.afford(moments, 100_000)
    assert step(host, net, optimizer) == []


def test_no_step_keeps_more_than_so_many_moments(host: HostMoments) -> None:
    net = model()
    host.open()
    for _ in range(MOST + 50):
        net(X)
    moments, _ = host.take()
    assert len(moments) == MOST
    host.afford(moments, 10**12)
    net(X)
    assert host.take()[0] == ()


def test_a_module_that_raises_is_stamped_and_raises(host: HostMoments) -> None:
    class Broken(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise ValueError

    host.open()
    with pytest.raises(ValueError):
        Broken()(X)
    assert [one.name for one in host.take()[0]] == ["Broken"]


def test_where_counting_rests_its_wrappers_can_be_put_in_again() -> None:
    from syncscope.collect.sites.sync_debug import sync_debug_mode

    native = SimpleNamespace(
        _cuda_get_sync_debug_mode=lambda: 0, _cuda_set_sync_debug_mode=lambda mode: None, _cuda_synchronize=lambda: None
    )
    fake, counted = SimpleNamespace(_C=native, __version__="2.99"), Patches()
    wrapper = lambda: None  # noqa: E731
    counted.replace(native, "_cuda_synchronize", lambda original: wrapper)
    listener = lambda frame: None  # noqa: E731
    sync_debug_mode.listen(fake, listener)
    try:
        sync_debug_mode.mute(listener)
        counted.take_out()
        one = HostMoments(fake, STACKS, None)
        one.open()
        counted.put_in()
        one.close()
        assert native._cuda_synchronize is wrapper
        sync_debug_mode.unmute(listener)
    finally:
        sync_debug_mode.unlisten(listener)
        counted.restore()


def test_a_wait_that_pytorch_warns_of_is_stamped_while_waits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from syncscope.collect.sites import sync_debug

    native = SimpleNamespace(_cuda_get_sync_debug_mode=lambda: 0, _cuda_set_sync_debug_mode=lambda mode: None)
    fake = SimpleNamespace(_C=native, library=SimpleNamespace(), Tensor=torch.Tensor, __version__="2.99")
    counted: list[Any] = []
    one = HostMoments(fake, STACKS, None)
    one.open()
    assert not sync_debug.sync_debug_mode.listening  # nobody counts: nor do we
    one.close()
    sync_debug.sync_debug_mode.listen(fake, counted.append)
    try:
        one.open()
        before = time.perf_counter_ns()
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        ((moment,), _) = one.take()
        assert (moment.event, moment.begin_ns) == ("wait", None) and moment.end_ns > before
        one.close()
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        assert one.take()[0] == () and len(counted) == 2
    finally:
        sync_debug.sync_debug_mode.unlisten(counted.append)
    assert not sync_debug.sync_debug_mode.listening


def test_where_counting_rests_an_operator_runs_without_warnings_which_would_be_printed() -> None:
    from syncscope.collect.sites.sync_debug import sync_debug_mode

    mode = [0]
    native = SimpleNamespace(
        _cuda_get_sync_debug_mode=lambda: mode[0], _cuda_set_sync_debug_mode=lambda new: mode.__setitem__(0, new)
    )
    operator = type("OpOverload", (), {"__call__": lambda self: mode[0], "name": lambda self: "aten::nonzero"})
    operators = SimpleNamespace(OpOverload=operator)
    fake = SimpleNamespace(
        _C=native, _ops=operators, library=SimpleNamespace(), Tensor=torch.Tensor, __version__="2.99"
    )
    counts = lambda frame: None  # noqa: E731
    sync_debug_mode.listen(fake, counts)
    try:
        one = HostMoments(fake, STACKS, None)
        one.open()
        sync_debug_mode.mute(counts)
        assert (mode[0], operator()(), mode[0]) == (1, 0, 1)
        one.afford((), 1_000_000)
        assert mode[0] == 1
        one.afford((), 100_000)  # it takes more than its share, so nothing listens any more
        assert mode[0] == 0
        one.close()
        assert operator()() == mode[0] == 0
    finally:
        sync_debug_mode.unlisten(counts)
