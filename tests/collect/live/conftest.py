"""PyTorch for the CPU that takes itself for one with a GPU: what copies and waits says so, and does nothing."""

from __future__ import annotations

import ctypes
import functools
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.sites.sync_debug import MESSAGE


class Device:
    """Tensors that count as the device's, and what was called."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensors: list[Any] = []
        self.pinned: list[Any] = []
        self.ran: list[str] = []
        self.mode = 0

    def put(self, tensor: Any) -> Any:
        self.tensors.append(tensor)
        return tensor

    def pin(self, tensor: Any) -> Any:
        self.pinned.append(tensor)
        return tensor

    def has(self, tensor: Any) -> bool:
        return any(tensor is one for one in self.tensors)

    def set_mode(self, mode: int) -> None:
        self.mode = mode

    def call(self, name: str) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.ran.append(name)
            return args[0] if args else None

        return called

    @property
    def wait(self) -> Any:
        """Waits, as an operation that PyTorch warns of: from C, in the frame that calls."""
        if self.mode != 1:
            return lambda: None
        warn = ctypes.pythonapi.PyErr_WarnEx
        return functools.partial(warn, ctypes.py_object(UserWarning), MESSAGE.encode(), 1)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    torch: Any = pytest.importorskip("torch", reason="watched blocks listen to PyTorch")
    device = Device(torch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    native = {
        "_cuda_get_sync_debug_mode": lambda: device.mode,
        "_cuda_set_sync_debug_mode": device.set_mode,
        "_cuda_synchronize": device.call("synchronize"),
        "_cuda_emptyCache": device.call("empty_cache"),
        "_accelerator_synchronizeDevice": device.call("accelerator"),
    }
    for name, function in native.items():
        monkeypatch.setattr(torch._C, name, function, raising=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: torch._C._cuda_synchronize())
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: torch._C._cuda_emptyCache())
    monkeypatch.setattr(torch.cuda, "Event", type("Event", (), {"synchronize": device.call("event")}))
    monkeypatch.setattr(torch.cuda, "Stream", type("Stream", (), {"synchronize": device.call("stream")}))
    for name in ("to", "cuda", "cpu", "copy_", "coalesce"):
        monkeypatch.setattr(torch.Tensor, name, device.call(name))
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(device.has), raising=False)
    monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda tensor: not device.has(tensor)), raising=False)
    pinned = lambda tensor: any(tensor is one for one in device.pinned)  # noqa: E731
    monkeypatch.setattr(torch.Tensor, "is_pinned", pinned)
    monkeypatch.setattr(torch.linalg, "eigh", device.call("eigh"))
    monkeypatch.setattr(torch, "_VF", SimpleNamespace(unique_dim=device.call("unique_dim")))
    return device
