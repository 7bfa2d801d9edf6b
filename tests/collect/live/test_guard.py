"""The guard's arguments and what it reads off a waiting frame; that it catches real waits is tested on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from syncscope.collect.live.guard import (
    SyncError,
    SyncWarning,
    _note_direction,
    copy_direction,
    direction_of,
    guard,
    waiting_call,
)
from syncscope.collect.patching import Patches

exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="expressions need Python 3.11")


class Loss:
    """Every read calls ``action`` with the frame that reads."""

    def __init__(self, action: Callable[[FrameType], Any]) -> None:
        self.action = action

    def item(self) -> Any:
        return self.action(sys._getframe(1))


@exact
def test_the_call_and_its_name_are_read_from_the_source() -> None:
    loss = Loss(waiting_call)
    assert loss.item() == ("loss.item()", "item")
    assert direction_of("item") == "device-to-host"
    assert direction_of("nonzero") == "unknown"


def test_unknown_actions_and_directions_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown action 'explode': choose from raise, warn, log"):
        guard("explode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown direction 'sideways'"):
        guard(allow=["sideways"])  # type: ignore[list-item]


@exact
def test_each_action_names_the_line_and_a_way_out(caplog: pytest.LogCaptureFixture) -> None:
    loss = Loss(guard("raise").on_wait)
    with pytest.raises(
        SyncError, match=r"test_guard.py:\d+: loss.item\(\) waited for the device \(device-to-host\)\. Keep it on"
    ):
        loss.item()
    loss = Loss(guard("warn").on_wait)
    with pytest.warns(SyncWarning, match="waited for the device"):
        loss.item()
    loss = Loss(guard("log").on_wait)
    loss.item()
    assert "loss.item()" in caplog.text
    loss = Loss(guard("raise", allow=["device-to-host"]).on_wait)
    loss.item()


def test_without_a_gpu_the_block_just_runs() -> None:
    pytest.importorskip("torch", reason="the guard listens to PyTorch")

    @guard("raise")
    def step() -> int:
        return 3

    assert step() == 3


def test_a_copy_knows_its_direction_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="the guard wraps methods of PyTorch's tensors")
    seen: list[str] = []
    for name in ("to", "copy_"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: seen.append(copy_direction()))
    patches = Patches(torch)
    for name in ("to", "copy_"):
        _note_direction(torch, name, patches)
    host = torch.ones(1)
    host.to("cuda")
    host.copy_(host)
    patches.restore()
    assert seen == ["host-to-device", "device-to-host"]
    assert copy_direction() == "unknown"


@pytest.mark.slow
def test_compiled_code_that_copies_still_compiles_whole() -> None:
    torch = pytest.importorskip("torch", reason="the guard wraps methods of PyTorch's tensors")
    patches = Patches(torch)
    for name in ("to", "cuda", "copy_"):
        _note_direction(torch, name, patches)
    try:
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: x.to(torch.float64) + 1, backend="eager", fullgraph=True)
        assert compiled(torch.ones(1)).tolist() == [2]
    finally:
        patches.restore()
