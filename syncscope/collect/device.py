"""Calls of PyTorch's by which we wait for the device, or ask whether we may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncscope.collect.features import find


def native_sync(torch: Any) -> Callable[[], None]:
    """PyTorch's own wait for the device. Where it is missing, the call raises ``AttributeError``."""
    sync: Callable[[], None] | None = getattr(torch._C, "_cuda_synchronize", None)
    return sync or (lambda: torch._C._cuda_synchronize())


def captures_graph(torch: Any) -> bool:
    """Whether this thread captures a CUDA graph: a wait would end that, and a kernel would become a part of it."""
    capturing = find(torch, "cuda.is_current_stream_capturing")
    return capturing is not None and bool(capturing())
