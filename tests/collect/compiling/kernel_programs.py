"""Functions that become kernels. Tests name their lines by the comments."""

from __future__ import annotations

from typing import Any

import torch


def helper(x: Any) -> Any:
    return x.tanh() * 3  # in a helper


def fused(x: Any) -> Any:
    y = helper(x)
    return torch.sin(y)  # the sine


def squared(x: Any) -> Any:
    return x.square().sum()  # squared


def decorated(function: Any) -> Any:
    return function


@decorated
@decorated
def add_kernel(x: Any) -> None:  # def of add_kernel
    pass


@decorated
def idle_kernel(x: Any) -> None:
    pass
