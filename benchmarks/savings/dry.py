"""The pairs without a GPU: both versions of each, small, a few steps on the CPU.

``python -m benchmarks.savings.dry`` says where a program does not run, or where its two versions do not return the
same. It says nothing about time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

from benchmarks.savings.catalogue import Pair, different_on_cpu, pairs
from benchmarks.savings.ranks import environment, free_port

STEPS = 4


class OnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Makes on the CPU what the program wants on the GPU or in pinned memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = {name: _cpu(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return func(*map(_cpu, args), **options)


def _cpu(value: Any) -> Any:
    return "cpu" if isinstance(value, (str, torch.device)) and str(value).startswith("cuda") else value


@contextlib.contextmanager
def without_gpu() -> Iterator[None]:
    """``torch.cuda``'s streams, events and graphs do nothing, nothing is compiled, and every tensor is on the CPU."""
    nothing: dict[str, Any] = {
        name: mock.MagicMock()
        for name in ("Stream", "Event", "CUDAGraph", "synchronize", "current_stream", "set_device")
    }
    scopes: dict[str, Any] = {name: lambda *_: contextlib.nullcontext() for name in ("stream", "graph")}
    tensors: dict[str, Any] = {"pin_memory": lambda tensor: tensor, "record_stream": lambda tensor, stream: None}
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment(0, 1, free_port())))
        stack.callback(_leave)
        stack.enter_context(mock.patch.multiple(torch.cuda, **nothing, **scopes))
        stack.enter_context(mock.patch.object(torch, "compile", uncompiled))
        stack.enter_context(mock.patch.multiple(torch.Tensor, **tensors))  # in every thread, as OnCpu is not
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # that there is no GPU
        stack.enter_context(OnCpu())
        yield


def uncompiled(function: Any = None, **options: Any) -> Any:
    """In place of ``torch.compile``: the function as it is, whichever way it is asked for."""
    return uncompiled if function is None else function


def _leave() -> None:
    """No process group that a program joined outlives it."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def results(pair: Pair, version: str) -> list[Any]:
    """What the last of a few steps returns, as plain numbers."""
    step = getattr(pair.load(), version)(*pair.sizes_on_cpu)
    for _ in range(STEPS):
        result = step()
    return torch.as_tensor(result).detach().flatten().tolist()  # type: ignore[no-any-return]


def main() -> int:
    failed = 0
    with without_gpu():
        for pair in different_on_cpu(pairs()):
            try:
                before, after = results(pair, "before"), results(pair, "after")
                said = "the same" if before == after else f"before {before[:3]}, after {after[:3]}"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            failed += said != "the same"
            print(f"{pair.name:28} {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
