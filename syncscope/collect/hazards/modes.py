"""The hooks that see operators: a dispatch mode, and a function mode for what reads memory without an operator.

Both lie at the bottom of their stacks. So a mode that the program leaves while ours are there is still on top, and
what we see is what the program's modes make of a call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from syncscope.collect.hazards.detector import OperatorRun, RaceDetector
from syncscope.collect.hazards.implicit import ImplicitWaits
from syncscope.collect.patching import Patches

READERS = ("tolist", "numpy", "__array__", "__dlpack__", "__repr__", "__format__")
"""Methods of a tensor that read its memory, or hand it out, past the dispatcher."""


class OperatorHooks:
    """Shows ``detector`` every operator of this thread from ``open`` to ``close``.

    A fault of ours never reaches the program: ``failed`` gets it, and the operator goes unseen.
    """

    def __init__(
        self, torch: Any, detector: RaceDetector, implicit: ImplicitWaits, failed: Callable[[str, Exception], None]
    ) -> None:
        self._torch = torch
        self._detector = detector
        self._implicit = implicit
        self._failed = failed
        self._inside = threading.local()
        self._readers = {function: f"Tensor.{name}" for name in READERS if (function := getattr(torch.Tensor, name, 0))}
        self._stacks = (_dispatch_stack(torch), _function_stack(torch))
        self._modes = (_dispatch_mode(self), _function_mode(self))
        self._replaced = Patches()
        self._stance: Any = None
        self._open = False
        self._thread = threading.get_ident()
        self._pid = os.getpid()

    def open(self) -> None:
        self._thread = self._detector.thread = threading.get_ident()
        self._open = True
        try:
            self._stance = _run_eagerly(self._torch)
        except RuntimeError as error:  # in the middle of a compiled function
            self._failed("torch.compile", error)
        for stack, mode in zip(self._stacks, self._modes, strict=True):
            stack.insert(mode)
        # ``torch.save`` calls no mode.
        self._replaced.replace(self._torch.Tensor, "_reduce_ex_internal", self._pickles)

    def close(self) -> None:
        """Take the modes off their stacks. From another thread they can only be switched off."""
        self._open = False
        self._replaced.restore()
        if threading.get_ident() == self._thread:
            for stack, mode in zip(self._stacks, self._modes, strict=True):
                stack.remove(mode)
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def dispatch(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plain = self._torch._C._disabled_torch_dispatch_impl
        if any(getattr(kind, "__torch_dispatch__", plain) is not plain for kind in types):
            return NotImplemented  # a tensor subclass: the operators that it runs come here
        running = None
        if self._is_followed() and hasattr(func, "_schema"):
            running = self._look(func, lambda: self._detector.begin(func, args, kwargs))
        # Past ``OpOverload.__call__``: while waits are counted, a wrapper of ours there switches its warnings off.
        operator = getattr(func, "_op", func)
        if running is not None and self._detector.may_wait(running, kwargs):
            result = self._implicit.run(running.stream, operator, args, kwargs)
        else:
            result = operator(*args, **kwargs)
        self._end(running, result)
        return result

    def function(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self._readers.get(func) if self._open else None
        if name is None or not args or not self._is_followed():
            return func(*args, **kwargs)
        return self._reading(name, args[0], lambda: func(*args, **kwargs))

    def _pickles(self, reduce: Callable[..., Any]) -> Any:
        def wrapper(tensor: Any, *args: Any) -> Any:
            return self._reading("Tensor.__reduce_ex__", tensor, lambda: reduce(tensor, *args))

        return wrapper

    def _reading(self, name: str, tensor: Any, read: Callable[[], Any]) -> Any:
        """``read()``, which counts as one read of ``tensor``, whatever operators it is made of."""
        running = self._look(name, lambda: self._detector.reading(name, tensor)) if self._is_followed() else None
        self._inside.reader = running is not None
        try:
            result = read()
        finally:
            self._inside.reader = False
        self._end(running, None)
        return result

    def _is_followed(self) -> bool:
        return self._open and not getattr(self._inside, "reader", False) and os.getpid() == self._pid

    def _end(self, running: OperatorRun | None, result: Any) -> None:
        if running is not None:
            self._look(running.effects.name, lambda: self._detector.end(running, result))

    def _look(self, what: object, look: Callable[[], OperatorRun | None]) -> OperatorRun | None:
        try:
            with self._torch._C.DisableTorchFunction():  # our own calls are not the program's
                return look()
        except Exception as error:
            self._failed(str(what), error)
            return None


class _ModeStack:
    """One of this thread's stacks of modes."""

    def __init__(
        self, push: Callable[[Any], None], pop: Callable[[], Any], size: Callable[[], int], stays: Callable[[Any], bool]
    ) -> None:
        self._push, self._pop, self._size, self._stays = push, pop, size, stays

    def insert(self, mode: Any) -> None:
        """Put ``mode`` below all others, but above one that has to lie at the bottom."""
        others = self._take()
        while others and self._stays(others[0]):
            self._push(others.pop(0))
        for one in (mode, *others):
            self._push(one)

    def remove(self, mode: Any) -> None:
        """Take ``mode`` out, wherever it is."""
        for one in self._take():
            if one is not mode:
                self._push(one)

    def _take(self) -> list[Any]:
        """All modes, the bottom one first; the stack is then empty."""
        return [self._pop() for _ in range(self._size())][::-1]


def _dispatch_stack(torch: Any) -> _ModeStack:
    from torch.utils import _python_dispatch as dispatch

    return _ModeStack(dispatch._push_mode, dispatch._pop_mode, torch._C._len_torch_dispatch_stack, lambda mode: False)


def _function_stack(torch: Any) -> _ModeStack:
    from torch import overrides
    from torch.utils._device import DeviceContext

    def stays(mode: Any) -> bool:
        """The one of ``torch.set_default_device``, which checks that it lies at the bottom when it is taken off."""
        return isinstance(mode, DeviceContext) and hasattr(mode, "old_device")

    return _ModeStack(overrides._push_mode, overrides._pop_mode, torch._C._len_torch_function_stack, stays)


def _dispatch_mode(hooks: OperatorHooks) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class HazardDispatchMode(TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

    def torch_dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return hooks.dispatch(func, types, args, kwargs or {})

    # Set afterwards: the base class would wrap it so that the first call imports the compiler.
    HazardDispatchMode.__torch_dispatch__ = torch_dispatch
    return HazardDispatchMode()


def _function_mode(hooks: OperatorHooks) -> Any:
    from torch.overrides import TorchFunctionMode

    class HazardFunctionMode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return hooks.function(func, args, kwargs or {})

    return HazardFunctionMode()


def _run_eagerly(torch: Any) -> Any:
    """Let compiled functions run as they are written, and neither compile nor forget what was compiled: modes and
    compilation exclude each other. ``None`` where nothing is compiled, or torch is older than 2.6."""
    import sys

    set_stance = getattr(torch.compiler, "set_stance", None)
    return set_stance("force_eager") if set_stance is not None and "torch._dynamo" in sys.modules else None
