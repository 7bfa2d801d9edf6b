"""Thin wrappers on the Python entry points that wait or copy without PyTorch's warning.

Explicit waits, ``empty_cache``, copies (warn mode is silent about ``non_blocking`` ones), ``pin_memory`` and the
DataLoader's next batch leave one call record each: thread, begin, end, stack. So do, in a program of several ranks,
collectives and the backward that starts them. Operators called through ``torch.ops`` and TorchScript leave one when
they touch the device. Everything is put back by ``Wrappers.close``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from syncscope.collect.patching import Patches
from syncscope.collect.warn import WaitWarnings

Record = Callable[[str, int, Any], None]
"""``record(name, start_ns, frame)`` when a call has returned; its end is now."""

EXPLICIT = frozenset({"torch.cuda.synchronize", "torch.accelerator.synchronize", "Event.synchronize"})
"""Recorded names of the calls that surely wait."""

SILENT = ("eig", "eigvals", "eigh", "eigvalsh", "ldl_factor", "ldl_factor_ex", "ldl_solve")
"""Functions of ``torch.linalg`` that wait in code of MAGMA or cuSOLVER, where PyTorch has nothing to warn of."""

COLLECTIVES = (
    "allreduce", "allreduce_coalesced", "reduce", "broadcast", "barrier", "monitored_barrier",
    "allgather", "_allgather_base", "all_gather_single", "allgather_coalesced", "allgather_into_tensor_coalesced",
    "all_gather_single_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_single", "reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced", "alltoall",
    "alltoall_base", "all_to_all_single", "send", "recv", "recv_anysource", "_end_coalescing",
)  # fmt: skip
"""What a process group can be asked, under the names of several versions of PyTorch."""

_RUNS_ON_DEVICE = {"CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"}
"""Dispatch keys under which an operator written in Python runs for device tensors."""


class Wrappers:
    """Replaces entry points by thin wrappers and puts them back."""

    def __init__(self, torch: Any, record: Record, warnings: WaitWarnings) -> None:
        self._torch = torch
        self._record = record
        self._warnings = warnings
        self._patches = Patches(torch)
        self.warned = Warned()
        self._careless = Careless(torch)

    def open(self) -> None:
        torch = self._torch
        self.open_waits()
        self._always(torch._C, "_cuda_emptyCache", "torch.cuda.empty_cache")
        self._always(torch.Tensor, "pin_memory", "Tensor.pin_memory")
        for name in ("to", "cuda", "cpu"):
            self._crossing(name)
        self._copying()
        for name in SILENT:
            self._always(torch.linalg, name, f"torch.linalg.{name}")
        # All of these sort with thrust, which waits without PyTorch.
        self._always(torch._VF, "unique_dim", "torch.unique")
        self._always(torch._VF, "unique_consecutive", "torch.unique_consecutive")
        self._always(torch.Tensor, "coalesce", "Tensor.coalesce")
        self._always(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", "DataLoader")
        self._collectives()

    def open_waits(self) -> None:
        """Only the calls that wait without a warning: ``EXPLICIT``, and operators."""
        torch = self._torch
        self._always(torch._C, "_cuda_synchronize", "torch.cuda.synchronize")
        self._always(torch._C, "_accelerator_synchronizeDevice", "torch.accelerator.synchronize")
        self._always(torch.cuda.Event, "synchronize", "Event.synchronize")
        self._operator(torch._ops.OpOverload, "__call__")
        self._operator(torch._ops.OpOverloadPacket, "__call__")
        self._operator(torch._C.ScriptFunction, "__call__")
        self._operator(torch._C.ScriptMethod, "__call__")

    def close(self) -> None:
        self._patches.restore()

    def _always(self, owner: Any, name: str, label: str) -> None:
        """Record every call."""
        record, now, caller = self._record, time.time_ns, sys._getframe
        compiling = self._torch.compiler.is_compiling

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling():
                    return original(*args, **kwargs)
                start = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    record(label, start, caller(1))

            return wrapper

        self._patches.replace(owner, name, make)

    def _collectives(self) -> None:
        """Record what starts collectives: calls of a process group, and backward, where DDP and FSDP start theirs."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        self._always(self._torch.autograd, "_engine_run_backward", "backward")
        for name in COLLECTIVES:
            self._quietly(distributed.ProcessGroup, name, f"ProcessGroup.{name}")

    def _quietly(self, owner: Any, name: str, label: str) -> None:
        """Record every call, and keep C++'s line off stderr where the warning does not reach Python."""
        quiet, loud = self._warnings.quiet, self._warnings.loud

        def make(original: Any) -> Any:
            def quieted(*args: Any, **kwargs: Any) -> Any:
                quiet()
                try:
                    return original(*args, **kwargs)
                finally:
                    loud()

            return quieted

        self._patches.replace(owner, name, make)
        self._always(owner, name, label)

    def _crossing(self, name: str) -> None:
        """Record the calls of ``Tensor.to`` and its kin whose result is on the other side of the bus."""
        record, now, caller, warned = self._record, time.time_ns, sys._getframe, self.warned
        hush, loud, plain = self._warnings.hush, self._warnings.loud, (self._torch.Tensor, self._torch.nn.Parameter)
        label = f"Tensor.{name}"

        def make(original: Any) -> Any:
            def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
                # A subclass may run Python of its own, whose waits have lines of their own.
                hushed = type(self) in plain and hush()
                before, start = warned.count, now()
                try:
                    result = original(self, *args, **kwargs)
                finally:
                    if hushed:
                        loud()
                if result is not self and result.is_cuda != self.is_cuda and warned.count == before:
                    record(label, start, caller(1))
                return result

            return wrapper

        self._patches.replace(self._torch.Tensor, name, make)

    def _copying(self) -> None:
        """Record the calls of ``Tensor.copy_`` between host and device."""
        record, now, caller, warned = self._record, time.time_ns, sys._getframe, self.warned

        def make(original: Any) -> Any:
            def wrapper(self: Any, src: Any, *args: Any, **kwargs: Any) -> Any:
                before, start = warned.count, now()
                result = original(self, src, *args, **kwargs)
                if self.is_cuda != src.is_cuda and warned.count == before:
                    record("Tensor.copy_", start, caller(1))
                return result

            return wrapper

        self._patches.replace(self._torch.Tensor, "copy_", make)

    def _operator(self, owner: Any, name: str) -> None:
        """Record calls into operators whose waits have no Python warning, and keep C++'s line off stderr."""
        record, now, caller = self._record, time.time_ns, sys._getframe
        quiet, loud = self._warnings.quiet, self._warnings.loud
        known, learn = self._careless.known, self._careless.learn

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                careless = known.get(id(args[0]))
                if careless or (careless is None and learn(args[0])):
                    return original(*args, **kwargs)
                quiet()
                start = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    loud()
                    record("torch.ops", start, caller(1))

            return wrapper

        self._patches.replace(owner, name, make)


class Warned(threading.local):
    """PyTorch's warnings on this thread so far. A call that was warned needs no record."""

    count = 0


class Careless:
    """Which operators need no care: the profiler's own, and those written in Python (waits in them have frames and
    warnings)."""

    def __init__(self, torch: Any) -> None:
        self.known: dict[int, bool] = {}
        """By identity: an operator's own hash is slow."""
        implemented = (key.rpartition("/") for key in torch.library._impls)
        self._python = {name.replace("/", "::") for name, _, key in implemented if key in _RUNS_ON_DEVICE}
        custom = getattr(torch._library, "custom_ops", None)
        self._python |= set(getattr(custom, "OPDEFS", ()))
        self._kept: list[Any] = []

    def learn(self, operator: Any) -> bool:
        self._kept.append(operator)  # so that its id stays its own
        name = str(getattr(operator, "_qualified_op_name", "") or getattr(operator, "_name", "")).split(".")[0]
        answer = self.known[id(operator)] = name.startswith("profiler::") or name in self._python
        return answer
