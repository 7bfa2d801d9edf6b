"""What the detector has to know of the machine: where a tensor lies, and which stream works now."""

from __future__ import annotations

from typing import Any, Literal, Protocol

Side = Literal["host", "device"]


class Machine(Protocol):
    """Answers that only the device's runtime has."""

    def side(self, device: Any) -> Side | None:
        """Where tensors of a ``torch.device`` lie; ``None`` for devices that are not looked at."""

    def of(self, tensor: Any) -> Side | None:
        """Where a tensor lies; ``None`` when it has no memory of the plain kind."""

    def pinned(self, tensor: Any) -> bool:
        """Whether a tensor on the host is in page-locked memory."""

    def stream(self, device: Any) -> int | None:
        """The stream that this thread launches work of a device on; ``None`` while it only captures a graph."""


class Cuda:
    """The CUDA machine of this process. Asks nothing of CUDA before the program has initialised it."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._strided = torch.strided
        self._raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def side(self, device: Any) -> Side | None:
        kind = device.type
        return "device" if kind == "cuda" else "host" if kind == "cpu" else None

    def of(self, tensor: Any) -> Side | None:
        plain = tensor.layout is self._strided and not tensor.is_nested
        return self.side(tensor.device) if plain else None

    def pinned(self, tensor: Any) -> bool:
        return bool(tensor.is_pinned())

    def stream(self, device: Any) -> int | None:
        if self._torch.cuda.is_current_stream_capturing():
            return None  # the work is written down, not done
        index = self._torch.cuda.current_device() if device.index is None else device.index
        if self._raw is not None:
            return int(self._raw(index))
        return int(self._torch.cuda.current_stream(index).cuda_stream)
