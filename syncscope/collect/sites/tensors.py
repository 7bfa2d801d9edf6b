"""What may be asked of a tensor of the program's without its noticing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from syncscope.collect.features import find

Looked = TypeVar("Looked")


def plain_types(torch: Any) -> tuple[type, ...]:
    """The types of tensors that run no Python of their own."""
    return tuple(filter(None, (torch.Tensor, find(torch, "nn.Parameter"))))


def function_modes(torch: Any) -> Callable[[], int]:
    """What says how many modes of functions the program has open, which hear of each attribute of a tensor."""
    found: Callable[[], int] = find(torch, "_C._len_torch_function_stack") or (lambda: 0)
    return found


def dispatch_modes(torch: Any) -> Callable[[], int]:
    """What says how many modes of dispatch are open. They get each operator in Python, as a compiler's stand-ins for
    tensors do, and call what really runs by itself."""
    found: Callable[[], int] = find(torch, "_C._len_torch_dispatch_stack") or (lambda: 0)
    return found


def without_data(torch: Any) -> Callable[[], bool]:
    """What says whether operators run on nothing but the shapes of tensors now, as in a compiler."""
    found: Callable[[], bool] = find(torch, "_C._meta_in_tls_dispatch_include") or (lambda: False)
    return found


def unseen(torch: Any, look: Callable[..., Looked], *given: Any) -> Looked:
    """``look(*given)``, of which neither a subclass of tensors nor a mode of functions hears, where PyTorch can."""
    alone = find(torch, "_C.DisableTorchFunction") or contextlib.nullcontext
    with alone():
        return look(*given)


def is_tensor(torch: Any, value: Any) -> bool:
    """Whether it is a tensor, and does not only stand in for one: a proxy of ``torch.fx`` puts all that it is asked
    into the program's graph."""
    return issubclass(type(value), torch.Tensor)  # ``isinstance`` would ask the value


def are_apart(torch: Any, one: Any, other: Any) -> bool:
    """Whether one tensor is on the host and the other on the device. There is nothing to copy of empty ones. What
    stands in for a tensor, such as one that is not loaded yet, and one of a class that does as it likes may not say
    where they are."""
    try:
        if not (is_tensor(torch, one) and is_tensor(torch, other)):
            return False
        return bool(one.is_cuda is not other.is_cuda and one.numel())
    except Exception:  # it is the program's
        return False


def is_on_device(torch: Any, tensor: Any) -> bool:
    """Whether it is a tensor on the device. What stands in for a tensor may not say."""
    try:
        return is_tensor(torch, tensor) and bool(tensor.is_cuda)
    except Exception:  # it is the program's
        return False
