"""A machine without a device: plain CPU tensors, some of which are declared to lie on one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from syncscope.collect.hazards import HazardWindow
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import HazardEvent

MAIN, SIDE = 0, 0x5EED
EVENT = 0xE7


class FakeRuntime:
    """Host memory is pinned unless it is declared pageable. The ``meta`` device is on the device too."""

    def __init__(self) -> None:
        self.current: int | None = MAIN
        self._device: list[Any] = []
        self._pageable: list[Any] = []

    def on_device(self, tensor: torch.Tensor) -> torch.Tensor:
        self._device.append(tensor.untyped_storage())
        return tensor

    def pageable(self, tensor: torch.Tensor) -> torch.Tensor:
        self._pageable.append(tensor.untyped_storage())
        return tensor

    @contextlib.contextmanager
    def on_stream(self, stream: int | None) -> Iterator[None]:
        outer, self.current = self.current, stream
        yield
        self.current = outer

    def side_of_device(self, device: Any) -> Any:
        return "device" if device.type == "meta" else "host"

    def side(self, tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        flagged = any(storage is one for one in self._device)
        return "device" if flagged else self.side_of_device(tensor.device)

    def pinned(self, tensor: Any) -> bool:
        storage = tensor.untyped_storage()
        return not any(storage is one for one in self._pageable)

    def launch_stream(self, device: Any) -> int | None:
        return self.current

    def current_streams(self) -> frozenset[int]:
        return frozenset() if self.current is None else frozenset({self.current})


class Bench:
    """A detector on a fake machine. ``events`` closes it and says what it found."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.stacks = Stacks(Paths(Path(__file__).parent))
        self.hazards = HazardWindow(torch, self.stacks, Threads(), self.runtime)

    def __enter__(self) -> Bench:
        self.hazards.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.hazards.close()

    def events(self) -> list[HazardEvent]:
        self.hazards.close()
        assert self.hazards.notes == []
        return list(self.hazards.take())

    def rules(self) -> list[str]:
        return [event.rule for event in self.events()]

    def lines(self, event: HazardEvent) -> tuple[str | None, str | None]:
        """The expressions of the access and of the earlier one."""
        frames, stacks = self.stacks.resolve()
        one, other = (stacks[access.stack] for access in (event.access, event.earlier))
        return frames[one[-1]].expression, frames[other[-1]].expression

    # Waits, as the hooks in PyTorch report them.

    def record(self, event: int = EVENT, stream: int = MAIN) -> None:
        self.hazards.clocks.record(event, stream)

    def wait(self, stream: int, event: int = EVENT) -> None:
        self.hazards.clocks.wait(stream, event)

    def wait_stream(self, stream: int, other: int) -> None:
        self.record(EVENT + 1, other)
        self.wait(stream, EVENT + 1)

    def synchronize_event(self, event: int = EVENT) -> None:
        self.hazards.clocks.host_waits_for_event(event)

    def synchronize_stream(self, stream: int = MAIN) -> None:
        self.hazards.clocks.host_waits_for_stream(stream)

    def synchronize(self) -> None:
        self.hazards.clocks.host_waits_for_all()
