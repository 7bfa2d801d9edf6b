"""The wrappers of ``sites``, for a whole run: cheap where there is nothing to count, and out of the way in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from syncscope.collect.features import find
from syncscope.collect.patching import Gate, Patches, tracing
from syncscope.collect.sites.sync_debug import SyncDebugMode
from syncscope.collect.sites.tensors import (
    are_apart,
    dispatch_modes,
    function_modes,
    is_on_device,
    plain_types,
    unseen,
    without_data,
)
from syncscope.collect.sites.wrappers import (
    COLLECTIVES,
    LINALG_WITHOUT_WARNING,
    CallWrappers,
    WarningCount,
    calling_frame,
)

FIND_UNUSED = "DistributedDataParallel"
"""Recorded name of the end of a backward in which DDP looks for unused parameters."""


BEFORE_TRAINING = ("_verify_params_across_processes", "_broadcast_coalesced")
"""What DDP calls when it is made. Their waits have no Python warning, nor have those of the buckets made anew."""


class Counts(Protocol):
    """Who counts. Each method is called when the wrapped call has returned, with the frame that called."""

    def waited(self, name: str, start_ns: int, frame: Any) -> None: ...
    def may_have_waited(self, name: str, start_ns: int, frame: Any) -> None: ...
    def copied(self, name: str, start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None: ...
    def passed(self) -> None:
        """A call with nothing to count."""


class CountingWrappers(CallWrappers):
    """Wraps what waits without a warning, and copies, on behalf of ``counts``, while ``gate`` is ``on``.

    Copies keep their warnings: that is how a copy that waits is told from one that does not. A call that cannot have
    waited, such as ``Tensor.to`` of another dtype, only says that it ``passed``.
    """

    def __init__(self, torch: Any, counts: Counts, gate: Gate, mode: SyncDebugMode) -> None:
        super().__init__(torch, counts.waited, mode)
        self._counts = counts
        self._gate = gate
        self._lasting = Patches(torch)

    def open(self) -> None:
        torch = self._torch
        self.open_waits()
        self._record_calls(torch._C, "_cuda_emptyCache", "torch.cuda.empty_cache")
        for name in ("to", "cuda", "cpu"):
            self._record_conversions(name)
        self._record_copies()
        for name in LINALG_WITHOUT_WARNING:
            self._record_device_calls(torch.linalg, name, f"torch.linalg.{name}")
        self._record_device_calls(self._owner("_VF"), "unique_dim", "torch.unique")
        self._record_device_calls(self._owner("_VF"), "unique_consecutive", "torch.unique_consecutive")
        self._record_device_calls(torch.Tensor, "coalesce", "Tensor.coalesce")
        self._quiet_ranks()

    def take_out(self) -> None:
        """Leave the program alone until ``put_in``.

        Takes microseconds, and then the program is slower for as long as Python needs to learn anew where the
        attributes of tensors are.
        """
        self._patches.take_out()

    def put_in(self) -> None:
        self._patches.put_in()

    def close(self) -> None:
        self.take_out()  # what the program replaced meanwhile is its own
        super().close()
        self._lasting.restore()

    def _quiet_ranks(self) -> None:
        """Keep C++'s lines off stderr in programs of several ranks, also those that start them later.

        The collectives stay wrapped all the time: a call costs much more than its wrapper.
        """
        native, distributed = find(self._torch, "_C._distributed_c10d"), self._torch.distributed
        if native is None:
            return
        may_have_waited = self._counts.may_have_waited
        self._suspend_end_of_backward(lambda start_ns, frame: may_have_waited(FIND_UNUSED, start_ns, frame))
        switched, self._patches = self._patches, self._lasting
        for name in COLLECTIVES:
            self._suspend_warnings(distributed.ProcessGroup, name)
        for name in BEFORE_TRAINING:
            self._suspend_warnings(distributed, name)
        self._suspend_warnings(find(native, "Reducer"), "_rebuild_buckets")
        self._record_unwarned(find(native, "Work"), "wait", "Work.wait")
        self._patches = switched

    def _record_device_calls(self, owner: Any, name: str, label: str) -> None:
        """Record the calls of ``owner.name`` on a tensor of the device that gave no warning."""
        waited, passed, now, caller, warnings = (
            self._counts.waited,
            self._counts.passed,
            time.time_ns,
            calling_frame,
            self.warnings,
        )
        traced, compiling, gate = tracing(self._torch), self._torch.compiler.is_compiling, self._gate
        plain, modes, torch = self._plain, self._function_modes, self._torch

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if traced() or not gate.on or compiling():
                    return original(*args, **kwargs)
                before, start = warnings.count, now()
                result = original(*args, **kwargs)
                if not args or result is args[0] or warnings.count != before:
                    works = False
                elif modes() or type(args[0]) not in plain:
                    works = unseen(torch, is_on_device, torch, args[0])
                else:
                    works = args[0].is_cuda
                if works:
                    waited(label, start, caller())
                else:
                    passed()
                return result

            return wrapper

        self._patches.replace(owner, name, make)

    def _record_conversions(self, name: str) -> None:
        make = conversion(f"Tensor.{name}", self._counts, self._gate, self.warnings, self._torch)
        self._patches.replace(self._torch.Tensor, name, make, self._gate)

    def _record_copies(self) -> None:
        copied, passed, now, caller = self._counts.copied, self._counts.passed, time.time_ns, calling_frame
        warnings, gate = self.warnings, self._gate
        traced, compiling = tracing(self._torch), self._torch.compiler.is_compiling
        plain, modes, torch = self._plain, self._function_modes, self._torch
        told = _copy_teller("Tensor.copy_", self._counts, self._torch)

        def make(original: Any) -> Any:
            def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
                if traced() or not gate.on:
                    return original(self, *args, **kwargs)
                before, start = warnings.count, now()
                result = original(self, *args, **kwargs)
                src: Any = args[0] if args else kwargs.get("other")
                if modes() or type(self) not in plain or type(src) not in plain:
                    if not compiling():
                        unseen(torch, told, start, caller(), src, self, warnings.count != before)
                elif self.is_cuda is not src.is_cuda and not compiling():
                    copied("Tensor.copy_", start, caller(), src, self, warnings.count != before)
                else:
                    passed()
                return result

            return wrapper

        self._patches.replace(self._torch.Tensor, "copy_", make, self._gate)

    def _record_operators(self, owner: Any) -> None:
        may_have_waited, now, caller = self._counts.may_have_waited, time.time_ns, calling_frame
        suspend, resume = self._mode.suspend, self._mode.resume
        known, look_up, gate = self._operators.known, self._operators.look_up, self._gate
        warnings, passed = self.warnings, self._counts.passed
        modes, empty = dispatch_modes(self._torch), without_data(self._torch)

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if not gate.on or modes() or empty():  # a compiler makes a hundred thousand such calls
                    return original(*args, **kwargs)
                ignored = known.get(id(args[0]))
                if ignored or (ignored is None and look_up(args[0])):
                    return original(*args, **kwargs)
                suspend()
                before, start = warnings.count, now()
                try:
                    return original(*args, **kwargs)
                finally:
                    resume()
                    if warnings.count == before:
                        may_have_waited("torch.ops", start, caller())
                    else:  # the look for races heard its warnings
                        passed()

            return wrapper

        self._patches.replace(owner, "__call__", make)

    def _record_unwarned(self, owner: Any, name: str, label: str) -> None:
        """Record the calls of ``owner.name`` that may have waited, and keep C++'s line off stderr."""
        may_have_waited, now, caller = self._counts.may_have_waited, time.time_ns, calling_frame
        suspend, resume = self._mode.suspend, self._mode.resume

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                suspend()
                start = now()
                try:
                    return original(*args, **kwargs)
                finally:
                    resume()
                    may_have_waited(label, start, caller())

            return wrapper

        self._patches.replace(owner, name, make)


def conversion(
    label: str, counts: Counts, gate: Gate, warnings: WarningCount, torch: Any, *more: type
) -> Callable[[Any], Any]:
    """What makes the wrapper of ``Tensor.to``, ``cuda`` and ``cpu``. ``more`` types run no Python of their own."""
    copied, passed, now, caller = counts.copied, counts.passed, time.time_ns, calling_frame
    traced, compiling = tracing(torch), torch.compiler.is_compiling
    plain, modes = (*plain_types(torch), *more), function_modes(torch)
    told = _copy_teller(label, counts, torch)

    def make(original: Any) -> Any:
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            # Dynamo must not see the gate: it would compile again whenever that opens or closes.
            if traced() or not gate.on:
                return original(self, *args, **kwargs)
            before, start = warnings.count, now()
            result = original(self, *args, **kwargs)
            if result is self or compiling():
                passed()
            elif modes() or type(self) not in plain or type(result) not in plain:  # or an argument says what it is
                unseen(torch, told, start, caller(), self, result, warnings.count != before)
            elif self.is_cuda is not result.is_cuda:
                copied(label, start, caller(), self, result, warnings.count != before)
            else:
                passed()
            return result

        return wrapper

    return make


def _copy_teller(label: str, counts: Counts, torch: Any) -> Callable[[int, Any, Any, Any, bool], None]:
    """What tells ``counts`` of a call that may have copied, where the tensors have to be looked at unseen."""

    def tell(start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None:
        if source is not target and are_apart(torch, source, target):
            counts.copied(label, start_ns, frame, source, target, warned)
        else:
            counts.passed()

    return tell
