"""What the program has made so far, as PyTorch tells it without a hook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def optimizers_made(torch: Any) -> bool:
    """Whether the program has made an optimiser."""
    optim = getattr(torch, "optim", None)
    classes = [optim.Optimizer] if optim is not None else []
    for kind in classes:  # grows
        if "step" in vars(kind) and getattr(vars(kind)["step"], "hooked", False):
            return True
        classes += kind.__subclasses__()
    return False


def modules_defined(torch: Any, is_user: Callable[[str], bool]) -> bool:
    """Whether a file of the user's, or what has no file, defines a class of modules."""
    kinds, seen = [torch.nn.Module], {torch.nn.Module}
    for kind in kinds:  # grows
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if kind.__module__.partition(".")[0] != "torch" and (is_user(file) if file else kind.__module__ == "__main__"):
            return True
        new = [each for each in type.__subclasses__(kind) if each not in seen]
        seen.update(new)
        kinds += new
    return False


def allocations(torch: Any) -> int | None:
    """How often memory of the current device was allocated so far; ``None`` where PyTorch does not know."""
    try:
        return int(torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["allocated"])
    except Exception:  # another allocator, or another PyTorch
        return None
