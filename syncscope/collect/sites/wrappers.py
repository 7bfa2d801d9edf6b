"""Thin wrappers around the Python entry points that wait or copy without PyTorch's warning.

Explicit waits, ``empty_cache``, copies (the mode *warn* is silent about ``non_blocking`` ones), ``pin_memory`` and the
DataLoader's start and next batch leave one call record each: thread, begin, end, stack. In a program of several ranks,
so do collectives and the backward that starts them. Operators called through ``torch.ops`` and TorchScript leave one
too.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.features import find
from syncscope.collect.patching import Patches
from syncscope.collect.sites.sync_debug import SyncDebugMode
from syncscope.collect.sites.tensors import are_apart, function_modes, is_on_device, plain_types, unseen
from syncscope.schema.recording import LOADER_START

Record = Callable[[str, int, Any], None]
"""``record(name, start_ns, frame)``, called when a wrapped call returns. The call ends now."""

EXPLICIT = frozenset({"torch.cuda.synchronize", "torch.accelerator.synchronize", "Event.synchronize"})
"""Recorded names of the calls that surely wait."""

LINALG_WITHOUT_WARNING = ("eig", "eigvals", "eigh", "eigvalsh", "ldl_factor", "ldl_factor_ex", "ldl_solve")
"""Functions of ``torch.linalg`` that wait inside MAGMA or cuSOLVER, where PyTorch does not warn."""

COLLECTIVES = (
    "allreduce", "allreduce_coalesced", "reduce", "broadcast", "barrier", "monitored_barrier",
    "allgather", "_allgather_base", "all_gather_single", "allgather_coalesced", "allgather_into_tensor_coalesced",
    "all_gather_single_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_single", "reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced", "alltoall",
    "alltoall_base", "all_to_all_single", "send", "recv", "recv_anysource", "_end_coalescing",
)  # fmt: skip
"""The collectives of a process group, under their names in several versions of PyTorch."""

COMPILED_AUTOGRAD = "torch._dynamo.compiled_autograd"

_RUNS_ON_DEVICE = {"CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"}
"""Dispatch keys under which an operator written in Python runs for device tensors."""


class CallWrappers:
    """Wraps entry points, and puts them back on ``close``."""

    def __init__(self, torch: Any, record: Record, mode: SyncDebugMode, *, hears_copies: bool = False) -> None:
        """``hears_copies``: a copy that waits leaves its warning, which takes longer than a record of the call, and
        tells that it waited."""
        self._torch = torch
        self._record = record
        self._mode = mode
        self._hears_copies = hears_copies
        self._patches = Patches(torch)
        self.warnings = WarningCount()
        self._operators = OperatorFilter(torch)
        self._plain = plain_types(torch)
        self._function_modes = function_modes(torch)
        self.groups: dict[int, str] = {}
        """The process group of a recorded call that starts collectives, by when it began."""
        self.missing: list[str] = []
        """The owners of entry points that this version of PyTorch lacks."""

    def open(self) -> None:
        """Wrap everything that waits or copies without a warning."""
        torch = self._torch
        self.open_waits()
        self._record_calls(torch._C, "_cuda_emptyCache", "torch.cuda.empty_cache")
        self._record_calls(torch.Tensor, "pin_memory", "Tensor.pin_memory")
        for name in ("to", "cuda", "cpu"):
            self._record_conversions(name)
        self._record_copies()
        for name in LINALG_WITHOUT_WARNING:
            self._record_device_calls(torch.linalg, name, f"torch.linalg.{name}")
        # These sort with thrust, which waits without PyTorch's knowledge.
        self._record_device_calls(self._owner("_VF"), "unique_dim", "torch.unique")
        self._record_device_calls(self._owner("_VF"), "unique_consecutive", "torch.unique_consecutive")
        self._record_device_calls(torch.Tensor, "coalesce", "Tensor.coalesce")
        self._record_calls(self._owner("utils.data.dataloader._BaseDataLoaderIter"), "__next__", "DataLoader")
        self._record_calls(self._owner("utils.data.dataloader.DataLoader"), "__iter__", LOADER_START)
        self._record_collectives()

    def open_waits(self) -> None:
        """Wrap only the calls that wait without a warning: those in ``EXPLICIT``, and operators."""
        torch = self._torch
        self._record_calls(torch._C, "_cuda_synchronize", "torch.cuda.synchronize")
        self._record_calls(torch._C, "_accelerator_synchronizeDevice", "torch.accelerator.synchronize")
        self._record_calls(torch.cuda.Event, "synchronize", "Event.synchronize")
        self.open_operators()

    def open_operators(self) -> None:
        """Wrap only operators and TorchScript, whose waits C++ would print on stderr."""
        self._record_operators(self._owner("_ops.OpOverload"))
        self._record_operators(self._owner("_ops.OpOverloadPacket"))
        self._record_operators(self._owner("_C.ScriptFunction"))
        self._record_operators(self._owner("_C.ScriptMethod"))

    def close(self) -> None:
        self._patches.restore()

    def _owner(self, path: str) -> Any:
        """``torch.<path>``, whose entry points are wrapped. ``None``, and noted, where PyTorch no longer has it."""
        owner = find(self._torch, path)
        if owner is None and f"torch.{path}" not in self.missing:
            self.missing.append(f"torch.{path}")
        return owner

    def _record_calls(
        self, owner: Any, name: str, label: str, group_of: Callable[[Any], str | None] | None = None
    ) -> None:
        """Record every call of ``owner.name`` as ``label``. ``group_of`` its first argument is the process group whose
        collectives it starts."""
        record, now, caller, groups = self._record, time.time_ns, calling_frame, self.groups
        compiling = self._torch.compiler.is_compiling

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling():
                    return original(*args, **kwargs)
                start = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    if group_of is not None and (group := group_of(args[0] if args else None)):
                        groups[start] = group
                    record(label, start, caller())

            return wrapper

        self._patches.replace(owner, name, make)

    def _record_device_calls(self, owner: Any, name: str, label: str) -> None:
        """Record the calls of ``owner.name`` on a tensor of the device, also where PyTorch warns of one of their waits.
        A tensor that is coalesced is returned as it is."""
        record, now, caller, torch = self._record, time.time_ns, calling_frame, self._torch
        compiling = torch.compiler.is_compiling

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling():
                    return original(*args, **kwargs)
                start, result = now(), None
                try:
                    result = original(*args, **kwargs)
                    return result
                finally:
                    first = args[0] if args else next(iter(kwargs.values()), None)
                    if result is not first and unseen(torch, is_on_device, torch, first):
                        record(label, start, caller())

            return wrapper

        self._patches.replace(owner, name, make)

    def _record_collectives(self) -> None:
        """Record the calls that start collectives: those of a process group, and backward, where DDP and FSDP do."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        self._suspend_end_of_backward(lambda start_ns, frame: None)
        alone = _only_group(distributed)
        self._record_calls(self._torch.autograd, "_engine_run_backward", "backward", lambda called_with: alone)
        for name in COLLECTIVES:
            self._suspend_warnings(distributed.ProcessGroup, name)
            self._record_calls(distributed.ProcessGroup, name, f"ProcessGroup.{name}", _name_of_group)

    def _suspend_warnings(self, owner: Any, name: str) -> None:
        """Keep C++'s line off stderr during ``owner.name``, whose warning does not reach Python."""
        suspend, resume = self._mode.suspend, self._mode.resume

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                suspend()
                try:
                    return original(*args, **kwargs)
                finally:
                    resume()

            return wrapper

        self._patches.replace(owner, name, make)

    def _suspend_end_of_backward(self, record: Callable[[int, Any], None]) -> None:
        """Keep C++'s line off stderr where DDP has parameters that this rank did not use.

        It asks the other ranks at the end of backward, and reads their answer, which waits. That is in a callback of
        the engine, on a thread of its own after its last operator: no warning from there reaches Python. So the mode is
        off from the first of these callbacks to the end of backward. Then ``record(start_ns, frame)`` is called if DDP
        looks for such parameters in each step (``find_unused_parameters``).
        """
        reducer = find(self._torch, "_C._distributed_c10d.Reducer")
        engine = find(self._torch, "autograd.Variable._execution_engine")
        if reducer is None or engine is None:
            return
        patches, autograd = self._patches, self._torch.autograd
        searches: list[bool] = []
        """Whether it looks for them, of the last forward of DDP."""
        make_run = _end_of_backward(self._mode, engine, searches, record)

        def make_prepare(original: Any) -> Any:
            def prepare_for_backward(self: Any, outputs: Any) -> Any:
                if not searches:  # a program without DDP runs backward as PyTorch made it
                    patches.replace(autograd, "_engine_run_backward", make_run)
                searches[:] = [bool(outputs)]
                return original(self, outputs)

            return prepare_for_backward

        self._patches.replace(reducer, "prepare_for_backward", make_prepare)

    def _record_conversions(self, name: str) -> None:
        """Record the calls of ``Tensor.to``, ``cuda`` and ``cpu`` that copy between host and device."""
        record, now, caller, warnings = self._record, time.time_ns, calling_frame, self.warnings
        suspend, resume, heard = self._mode.suspend_if_unnoticed, self._mode.resume, self._hears_copies
        plain, modes, torch = self._plain, self._function_modes, self._torch
        label = f"Tensor.{name}"

        def make(original: Any) -> Any:
            def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
                # A subclass may run Python of its own, whose waits have lines of their own.
                suspended = not heard and type(self) in plain and suspend()
                before, start = warnings.count, now()
                try:
                    result = original(self, *args, **kwargs)
                finally:
                    if suspended:
                        resume()
                if result is not self and warnings.count == before:
                    if modes() or type(self) not in plain or type(result) not in plain:
                        moved = unseen(torch, are_apart, torch, self, result)
                    else:
                        moved = result.is_cuda != self.is_cuda and result.numel() > 0
                    if moved:
                        record(label, start, caller())
                return result

            return wrapper

        self._patches.replace(self._torch.Tensor, name, make)

    def _record_copies(self) -> None:
        """Record the calls of ``Tensor.copy_`` between host and device."""
        record, now, caller, warnings = self._record, time.time_ns, calling_frame, self.warnings
        plain, modes, torch = self._plain, self._function_modes, self._torch

        def make(original: Any) -> Any:
            def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
                before, start = warnings.count, now()
                result = original(self, *args, **kwargs)
                if warnings.count == before:
                    src: Any = args[0] if args else kwargs.get("other")
                    if modes() or type(self) not in plain or type(src) not in plain:
                        moved = unseen(torch, are_apart, torch, self, src)
                    else:
                        moved = self.is_cuda != src.is_cuda and self.numel() > 0
                    if moved:
                        record("Tensor.copy_", start, caller())
                return result

            return wrapper

        self._patches.replace(self._torch.Tensor, "copy_", make)

    def _record_operators(self, owner: Any) -> None:
        """Record calls into operators, whose waits have no Python warning, and keep C++'s line off stderr."""
        record, now, caller = self._record, time.time_ns, calling_frame
        suspend, resume = self._mode.suspend, self._mode.resume
        known, look_up = self._operators.known, self._operators.look_up

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                ignored = known.get(id(args[0]))
                if ignored or (ignored is None and look_up(args[0])):
                    return original(*args, **kwargs)
                suspend()
                start = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    resume()
                    record("torch.ops", start, caller())

            return wrapper

        self._patches.replace(owner, "__call__", make)


def calling_frame() -> FrameType:
    """The frame that called the wrapper which calls this; that of the wrapper itself where C called it, on a thread of
    C's or as a hook of the autograd engine's."""
    try:
        return sys._getframe(2)
    except ValueError:
        return sys._getframe(1)


def _end_of_backward(
    mode: SyncDebugMode, engine: Any, searches: list[bool], record: Callable[[int, Any], None]
) -> Callable[[Any], Any]:
    """What makes the wrapper of backward in which the mode is off from the first callback of the engine on."""

    def make_run(original: Any) -> Any:
        def run_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            node = _first_node(tensors)
            if node is None:
                return original(tensors, *args, **kwargs)
            begun: list[int] = []

            def suspend() -> None:
                begun.append(time.time_ns())
                mode.suspend()

            # Callbacks run in the order in which they were queued, and DDP queues its own later. A compiled
            # backward would compile ours.
            compiled = getattr(sys.modules.get(COMPILED_AUTOGRAD), "compiled_autograd_enabled", False)
            if compiled:
                suspend()
            else:
                hook = node.register_prehook(lambda gradients: engine.queue_callback(suspend))
            try:
                return original(tensors, *args, **kwargs)
            finally:
                if not compiled:
                    hook.remove()
                if begun:
                    mode.resume()
                    if searches[0]:
                        record(begun[0], calling_frame())

        return run_backward

    return make_run


def _first_node(tensors: Any) -> Any:
    try:
        return next(iter(tensors)).grad_fn
    except Exception:  # there is none, or a tensor of a class that does as it likes
        return None


def _name_of_group(group: Any) -> str | None:
    try:
        return str(group.group_name)
    except Exception:  # a group of a backend of its own need not have one
        return None


def _only_group(distributed: Any) -> str | None:
    """The name of the process group, ``None`` where there are several or PyTorch does not say."""
    names = find(distributed, "distributed_c10d._world.pg_names")
    return str(next(iter(names.values()))) if isinstance(names, dict) and len(names) == 1 else None


MOST_OPERATORS = 1_000
"""Operators that are remembered: a program may make new ones, such as compiled functions, for as long as it runs."""


class WarningCount(threading.local):
    """PyTorch's warnings on this thread so far. A call that was warned of needs no record."""

    count = 0


class OperatorFilter:
    """Which operators to ignore: the profiler's own, and those written in Python, whose waits have frames and
    warnings."""

    def __init__(self, torch: Any) -> None:
        self.known: dict[int, bool] = {}
        """Whether to ignore an operator, by its identity: its own hash is slow."""
        implemented = (key.rpartition("/") for key in getattr(torch.library, "_impls", ()))
        self._python = {name.replace("/", "::") for name, _, key in implemented if key in _RUNS_ON_DEVICE}
        custom = find(torch, "_library.custom_ops")
        self._python |= set(getattr(custom, "OPDEFS", ()))
        self._kept: list[Any] = []

    def look_up(self, operator: Any) -> bool:
        """Whether to ignore ``operator``; ``known`` has the answer from now on."""
        if len(self._kept) >= MOST_OPERATORS:
            self.known.clear()
            self._kept.clear()
        self._kept.append(operator)  # keeps its id from being used again
        name = str(getattr(operator, "_qualified_op_name", "") or getattr(operator, "_name", "")).split(".")[0]
        ignored = self.known[id(operator)] = name.startswith("profiler::") or name in self._python
        return ignored
