"""Functions that torch.compile has something to say about. Tests name their lines by the comments."""

from __future__ import annotations

from typing import Any

import torch


def scaled(x: Any, n: int) -> Any:
    return x * n  # guard on n


def broken(x: Any) -> Any:
    y = x * 2
    if y.sum().item() > 1e9:  # break
        y = y + 1
    return torch.sin(y)


def reading(x: Any) -> Any:
    return x.sum().item()  # break in a call


def calls(x: Any) -> Any:
    return torch.sin(x * reading(x))


def looping(x: Any) -> Any:
    total = x
    for _ in range(2):
        total = total + x.sum().item()  # break in a loop
    return total


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:  # def of forward
        return self.layer(x).relu()


def whole(x: Any) -> Any:
    return torch.sin(x) + 1
