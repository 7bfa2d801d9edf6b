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
        if "step" in vars(kind) and _is_hooked(vars(kind)["step"]):
            return True
        classes += type.__subclasses__(kind)
    return False


def _is_hooked(step: Any) -> bool:
    try:
        return getattr(step, "hooked", False) is True
    except Exception:  # an object that does as it likes
        return False


def modules_defined(torch: Any, is_user: Callable[[str], bool]) -> bool:
    """Whether a file of the user's, or what has no file, defines a class of modules."""
    kinds, seen = [torch.nn.Module], {id(torch.nn.Module)}  # a class of classes may have a hash of its own
    for kind in kinds:  # grows
        try:
            name = str(kind.__module__)
            file = getattr(sys.modules.get(name), "__file__", None)
            if name.partition(".")[0] != "torch" and (is_user(file) if file else name == "__main__"):
                return True
        except Exception:  # a class or a module that does as it likes
            continue
        finally:
            new = [each for each in type.__subclasses__(kind) if id(each) not in seen]
            seen.update(map(id, new))
            kinds += new
    return False


def allocations(torch: Any) -> int | None:
    """How often memory of the current device was allocated so far; ``None`` where PyTorch does not know."""
    try:
        return int(torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["allocated"])
    except Exception:  # another allocator, or another PyTorch
        return None
