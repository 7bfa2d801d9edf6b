"""What the collector uses of PyTorch that PyTorch does not promise. docs/pytorch.md says what happens without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

HAZARDS = (
    "_C.DisableTorchFunction",
    "_C._disabled_torch_dispatch_impl",
    "_C._disabled_torch_function_impl",
    "_C._len_torch_dispatch_stack",
    "_C._len_torch_function_stack",
    "autograd.Variable._execution_engine",
    "overrides._pop_mode",
    "overrides._push_mode",
    "utils._python_dispatch._pop_mode",
    "utils._python_dispatch._push_mode",
)
"""Without one of these no race is looked for: operators would go unseen, or orders, which gives false races."""

SYNC_DEBUG_MODE = ("_C._cuda_get_sync_debug_mode", "_C._cuda_set_sync_debug_mode")
"""Without these no implicit wait is seen. Builds for the CPU lack them."""


class Unsupported(RuntimeError):
    """This version of PyTorch lacks what is needed; ``str`` says what for, and what is missing."""


def find(torch: Any, path: str) -> Any:
    """``torch.<path>``, or ``None`` where any part of it is missing."""
    found = torch
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def lacking(torch: Any, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of ``paths`` that ``torch`` lacks."""
    return tuple(f"torch.{path}" for path in paths if find(torch, path) is None)


def require(torch: Any, paths: Iterable[str], purpose: str) -> None:
    """Raise ``Unsupported`` where ``torch`` lacks one of ``paths``. ``purpose`` reads after "cannot"."""
    if missing := lacking(torch, paths):
        version = getattr(torch, "__version__", "")
        raise Unsupported(f"cannot {purpose}: PyTorch {version} lacks {', '.join(missing)}")
