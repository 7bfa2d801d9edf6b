"""Tensors of the host that wait where those of a device would: the loops can be run without a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from syncscope.collect.sites.sync_debug import MESSAGE

TORCH = str(Path(torch.__file__).parent)


@contextlib.contextmanager
def waiting_tensors() -> Iterator[None]:
    """``item``, ``to`` and ``cpu`` warn as PyTorch does where they wait, in its sync debug mode."""
    mode = [0]

    def get() -> int:
        return mode[0]

    def put(value: int) -> None:
        mode[0] = value

    def waiting(original: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if mode[0] and not sys._getframe(1).f_code.co_filename.startswith(TORCH):
                ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), MESSAGE.encode(), 1)
            return original(*args, **options)

        return call

    with contextlib.ExitStack() as stack:
        for name, replacement in (("get", get), ("set", put)):
            name = f"_cuda_{name}_sync_debug_mode"
            stack.enter_context(mock.patch.object(torch._C, name, replacement, create=True))
        for name in ("item", "to", "cpu"):
            stack.enter_context(mock.patch.object(torch.Tensor, name, waiting(getattr(torch.Tensor, name))))
        yield
