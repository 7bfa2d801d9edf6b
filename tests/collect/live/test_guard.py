"""What a guard does with each kind of wait, with PyTorch for the CPU; ``test_guard_gpu.py`` has real waits."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import syncscope
from syncscope.collect.live.guard import SyncError, SyncWarning, guard
from syncscope.collect.live.waits import direction_of, waiting_call
from syncscope.collect.sites.sync_debug import MESSAGES, sync_debug_mode
from tests.collect.live.conftest import Device

exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="expressions need Python 3.11")


class Loss:
    def item(self) -> Any:
        return waiting_call(sys._getframe(1))


@exact
def test_the_call_and_its_name_are_read_from_the_source() -> None:
    loss = Loss()
    assert loss.item() == ("loss.item()", "item")
    assert direction_of("item") == "device-to-host"
    assert direction_of("nonzero") == "unknown"


def test_unknown_actions_directions_and_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown action 'explode': choose from raise, warn, log"):
        guard("explode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown direction 'sideways'"):
        guard(allow=["sideways"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match='threads is "own" or "all", not \'some\''):
        guard(threads="some")  # type: ignore[arg-type]


@exact
def test_each_action_names_the_line_and_a_way_out(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    with (
        guard("raise"),
        pytest.raises(
            SyncError, match=r"test_guard.py:\d+: device.wait\(\) waited for the device \(unknown\)\. Keep the value"
        ),
    ):
        device.wait()
    with guard("warn"), pytest.warns(SyncWarning, match="waited for the device"):
        device.wait()
    with guard("log"):
        device.wait()
    assert "device.wait()" in caplog.text
    with guard("raise", allow=["unknown"]):
        device.wait()


@pytest.mark.parametrize("message", MESSAGES)
def test_the_warning_is_known_as_cuda_and_as_rocm_say_it(device: Device, message: str) -> None:
    with guard("raise"), pytest.raises(SyncError):
        warnings.warn(message, stacklevel=1)


EXPLICIT: dict[str, Callable[[Any, Device], Any]] = {
    "synchronize": lambda torch, device: torch.cuda.synchronize(),
    "accelerator": lambda torch, device: torch._C._accelerator_synchronizeDevice(None),
    "event": lambda torch, device: torch.cuda.Event().synchronize(),
    "stream": lambda torch, device: torch.cuda.Stream().synchronize(),
    "empty_cache": lambda torch, device: torch.cuda.empty_cache(),
    "eigh": lambda torch, device: torch.linalg.eigh(device.put(torch.ones(2, 2))),
    "unique_dim": lambda torch, device: torch._VF.unique_dim(device.put(torch.ones(2, 2)), 0),
    "to": lambda torch, device: torch.ones(2).to("cuda"),
    "cuda": lambda torch, device: torch.ones(2).cuda(),
    "cpu": lambda torch, device: device.put(torch.ones(2)).cpu(),
    "copy_": lambda torch, device: device.put(torch.ones(2)).copy_(torch.ones(2)),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_a_wait_by_a_wrapped_entry_point_is_stopped_before_it_happens(device: Device, name: str) -> None:
    with guard("raise"), pytest.raises(SyncError, match="waits for the device"):
        EXPLICIT[name](device.torch, device)
    assert device.ran == []
    with guard("warn"), pytest.warns(SyncWarning) as caught:
        EXPLICIT[name](device.torch, device)
    assert device.ran == [name] and len(caught) == 1
    EXPLICIT[name](device.torch, device)
    assert device.ran == [name, name]


COPIES: dict[str, tuple[Callable[[Any, Device], Any], str]] = {
    "pageable to": (lambda t, d: t.ones(2).to("cuda", non_blocking=True), "the memory is pageable"),
    "pageable to, other": (lambda t, d: t.ones(2).to(device="cuda:0", dtype=t.float16, non_blocking=True), "pageable"),
    "pageable cuda": (lambda t, d: t.ones(2).cuda(None, True), "the memory is pageable"),
    "to pageable": (lambda t, d: t.ones(2).copy_(d.put(t.ones(2)), non_blocking=True), "the memory is pageable"),
    "from pageable": (lambda t, d: d.put(t.ones(2)).copy_(t.ones(2), True), "the memory is pageable"),
    "gaps": (lambda t, d: d.pin(t.ones(4)[::2]).to("cuda", non_blocking=True), "the memory is not contiguous"),
    "transposed": (
        lambda t, d: d.put(t.ones(2, 3)).copy_(d.pin(t.ones(3, 2).t()), non_blocking=True), "the memory is not contig",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_that_only_looks_asynchronous_is_stopped_and_says_why(device: Device, name: str) -> None:
    run, why = COPIES[name]
    with guard("raise"), pytest.raises(SyncError, match=rf": {why}|pageable\. Pin"):
        run(device.torch, device)
    assert device.ran == []


FREE: dict[str, Callable[[Any, Device], Any]] = {
    "pinned to": lambda t, d: d.pin(t.ones(2)).to("cuda", non_blocking=True),
    "pinned, transposed to": lambda t, d: d.pin(t.ones(3, 2).t()).to("cuda", non_blocking=True),
    "to the host": lambda t, d: d.put(t.ones(2)).to("cpu", non_blocking=True),
    "pinned copy": lambda t, d: d.put(t.ones(2)).copy_(d.pin(t.ones(2)), non_blocking=True),
    "another type": lambda t, d: d.put(t.ones(2)).to(t.float16),
    "on the host": lambda t, d: t.ones(2).to("cpu"),
    "on the device": lambda t, d: d.put(t.ones(2)).copy_(d.put(t.ones(2))),
    "nothing": lambda t, d: t.ones(0).to("cuda"),
    "host's eigenvalues": lambda t, d: t.linalg.eigh(t.ones(2, 2)),
    "wrong": lambda t, d: t.ones(2).to("cuda", nonsense=1),
}


@pytest.mark.parametrize("name", FREE)
def test_a_call_that_does_not_wait_passes(device: Device, name: str) -> None:
    with guard("raise"):
        FREE[name](device.torch, device)
    assert len(device.ran) == 1


def test_a_copy_of_a_subclass_without_operators_of_its_own_is_judged_too(device: Device) -> None:
    torch = device.torch
    weights = type("Weights", (torch.nn.Parameter,), {})(torch.ones(2))
    with guard("raise"), pytest.raises(SyncError, match="the memory is pageable"):
        weights.to("cuda", non_blocking=True)
    wrapped = type("Wrapped", (torch.Tensor,), {"__torch_dispatch__": classmethod(lambda *given: None)})
    with guard("raise"):
        torch.ones(2).as_subclass(wrapped).to("cuda", non_blocking=True)
    assert device.ran == ["to"]


def test_a_copy_has_its_direction(device: Device) -> None:
    with guard("raise", allow=["host-to-device"]):
        device.torch.ones(2).to("cuda")
        with pytest.raises(SyncError, match="device-to-host"):
            device.put(device.torch.ones(2)).cpu()


def test_a_wait_that_is_expected_passes(device: Device) -> None:
    with guard("raise"), syncscope.expected("metrics"):
        device.wait()
        device.torch.cuda.synchronize()
    assert device.ran == ["synchronize"]


def warn_in_c(torch: Any) -> None:
    """An operator that warns in C++, where no Python handler listens unless we put one there."""
    torch.ops.aten.add.out(torch.ones(3), torch.ones(3), out=torch.empty(2))


def test_the_warnings_of_operators_reach_python_at_their_line(
    device: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with guard("raise"), pytest.warns(UserWarning, match="was resized") as caught:
        warn_in_c(device.torch)
    assert caught[0].filename == __file__
    assert capfd.readouterr().err == ""


def test_operators_of_subclasses_and_modes_run_as_they_do_alone(device: Device) -> None:
    torch = device.torch
    seen: list[str] = []

    class Sub(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append("function")
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append("dispatch")
            return func(*args, **(kwargs or {}))

    x = torch.ones(2).as_subclass(Sub)

    def run() -> list[str]:
        seen.clear()
        assert type(torch.ops.aten.relu(x)) is Sub
        with Mode():
            torch.ops.aten.relu(torch.ones(2))
        with torch.inference_mode():
            assert torch.ops.aten.relu(torch.ones(2)).is_inference()
        return list(seen)

    alone = run()
    with guard("raise"):
        assert run() == alone


def test_nothing_is_left_behind(device: Device) -> None:
    torch = device.torch
    names = ("to", "cuda", "cpu", "copy_", "coalesce")
    before = [getattr(torch.Tensor, name) for name in names]
    before += [torch._ops.OpOverload.__call__, torch.autograd._engine_run_backward, torch.cuda.Stream.synchronize]
    with guard("raise", threads="all"):
        assert device.mode == 1
    after = [getattr(torch.Tensor, name) for name in names]
    after += [torch._ops.OpOverload.__call__, torch.autograd._engine_run_backward, torch.cuda.Stream.synchronize]
    assert after == before and device.mode == 0 and not sync_debug_mode.listening


def test_without_a_gpu_the_block_just_runs() -> None:
    pytest.importorskip("torch", reason="the guard listens to PyTorch")

    @guard("raise")
    def step() -> int:
        return 3

    assert step() == 3
