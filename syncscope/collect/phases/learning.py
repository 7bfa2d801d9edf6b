"""What a module is, as far as it tells of what is done with it."""

from __future__ import annotations

from typing import Any


def learns(module: Any) -> bool:
    """Whether ``module`` learns or is a loss: a transform of pictures is no training."""
    try:
        is_loss = any(kind.__module__ == "torch.nn.modules.loss" for kind in type(module).__mro__)
    except Exception:  # of a class that does as it likes
        return True
    return is_loss or has_weights(module)


def has_weights(module: Any) -> bool:
    """Whether ``module`` has parameters to be trained."""
    try:
        return any(one.requires_grad for one in module.parameters())
    except Exception:  # of a class that does as it likes
        return True
