"""What the race detector needs from the device's runtime: where a tensor lies, and which stream is current."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from syncscope.collect import features

Side = Literal["host", "device"]


class Runtime(Protocol):
    """Answers that depend on the device. Streams are named by their raw handle."""

    def side_of_device(self, device: Any) -> Side | None:
        """The side that tensors of a ``torch.device`` lie on, ``None`` for devices that are not followed."""

    def side(self, tensor: Any) -> Side | None:
        """The side that a tensor lies on, ``None`` when it has no plain memory (sparse and nested tensors)."""

    def pinned(self, tensor: Any) -> bool:
        """Whether a tensor on the host is in page-locked memory."""

    def launch_stream(self, device: Any) -> int | None:
        """The stream on which this thread launches work for a device, ``None`` while it captures a graph."""

    def current_streams(self) -> frozenset[int]:
        """The current stream of each device on this thread; empty before the device is initialised."""


class CudaRuntime:
    """The CUDA runtime of this process. Does nothing with CUDA before the program has initialised it.

    Raises ``features.Unsupported`` where PyTorch does not tell of its implicit waits: what they order would be a race.
    """

    def __init__(self, torch: Any) -> None:
        features.require(torch, features.SYNC_DEBUG_MODE, "look for races")
        self._torch = torch
        self._strided = torch.strided
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def side_of_device(self, device: Any) -> Side | None:
        kind = device.type
        return "device" if kind == "cuda" else "host" if kind == "cpu" else None

    def side(self, tensor: Any) -> Side | None:
        plain = tensor.layout is self._strided and not tensor.is_nested
        return self.side_of_device(tensor.device) if plain else None

    def pinned(self, tensor: Any) -> bool:
        return bool(tensor.is_pinned())

    def launch_stream(self, device: Any) -> int | None:
        if self._torch.cuda.is_current_stream_capturing():
            return None  # captured work is only written down
        return self._stream(self._torch.cuda.current_device() if device.index is None else device.index)

    def current_streams(self) -> frozenset[int]:
        cuda = self._torch.cuda
        if not cuda.is_initialized():
            return frozenset()
        return frozenset(self._stream(index) for index in range(cuda.device_count()))

    def _stream(self, index: int) -> int:
        if self._raw_stream is not None:
            return int(self._raw_stream(index))
        return int(self._torch.cuda.current_stream(index).cuda_stream)
