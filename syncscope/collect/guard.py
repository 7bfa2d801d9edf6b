"""A live guard: a wait inside the block raises, warns or logs, at its line, without profiling."""

from __future__ import annotations

import ast
import logging
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ContextDecorator
from types import FrameType, TracebackType
from typing import Any, Literal, get_args

from syncscope import advice
from syncscope.collect.dynamo import skip
from syncscope.collect.live import Blocks
from syncscope.collect.stacks import Expressions, Position, positions
from syncscope.collect.warn import waits

Action = Literal["raise", "warn", "log"]
Direction = Literal["device-to-host", "host-to-device", "unknown"]

log = logging.getLogger("syncscope.guard")


class SyncError(RuntimeError):
    """The guarded code waited for the device; ``str`` names the line, the operation and a way out."""


class SyncWarning(UserWarning):
    """The guarded code waited for the device."""


_TO_HOST = {"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__"}
_FIX = "Keep the value on the device."


class guard(ContextDecorator):
    """Watch this thread for waits: ``with syncscope.guard("raise"):``, also a decorator.

    ``action``: ``"raise"`` a ``SyncError``, ``"warn"`` with a ``SyncWarning``, or ``"log"`` to the logger
    ``syncscope.guard``. ``allow`` names directions to let pass, as JAX's ``transfer_guard`` does:
    ``"device-to-host"``, ``"host-to-device"``, ``"unknown"`` (waits whose entry point does not tell). Guards nest:
    the innermost of the thread decides; ``guard("raise", allow=ALL)`` opens a gap.

    It sees what PyTorch's sync debug mode sees. The exception comes *after* the wait. Waits inside ``torch.ops``
    operators and TorchScript, ``torch.cuda.synchronize()``, ``Event.synchronize()`` and ``non_blocking`` copies of
    pageable memory escape it. Other threads' waits are left alone, although the mode is process-wide.
    Raises ``ValueError`` for an unknown action or direction.
    """

    def __init__(self, action: Action = "raise", *, allow: Collection[Direction] = ()) -> None:
        if action not in get_args(Action):
            raise ValueError(f"unknown action {action!r}: choose from {', '.join(get_args(Action))}")
        if unknown := set(allow) - set(get_args(Direction)):
            raise ValueError(f"unknown direction {min(unknown)!r}: choose from {', '.join(get_args(Direction))}")
        self.action = action
        self.allow = frozenset(allow)

    def __enter__(self) -> guard:
        _guards.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _guards.leave()

    def caught(self, frame: FrameType) -> None:
        """A wait at ``frame`` returned."""
        text, name = waiting_call(frame)
        direction = direction_of(name)
        if direction in self.allow:
            return
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        what = f"{text or 'an operation'} waited for the device ({direction})"
        known = name is not None and advice.for_call(name) is not None
        otherwise = "" if known else " Or allow this wait with syncscope.guard(allow=…)."
        message = f"{place}: {what}. {fix_for(name)}{otherwise}"
        if self.action == "raise":
            raise SyncError(message)
        if self.action == "log":
            log.warning("%s", message)
        else:
            warnings.warn_explicit(message, SyncWarning, frame.f_code.co_filename, frame.f_lineno)


def waiting_call(frame: FrameType) -> tuple[str | None, str | None]:
    """The expression ``frame`` is running, and the method or function it calls where it is a call."""
    places = list(positions(frame.f_code))
    position: Position | None = places[frame.f_lasti // 2] if frame.f_lasti >= 0 else None
    text = Expressions().text(frame.f_code.co_filename, position) if position else None
    return text, called(text) if text else None


def called(expression: str) -> str | None:
    """The method or function that an expression calls, ``None`` where it is no call."""
    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def fix_for(*names: str | None) -> str:
    """A way out of a wait in a call of the first of ``names`` for which one is known."""
    found = (advice.for_call(name) for name in names if name is not None)
    return next((entry.sentence for entry in found if entry is not None), _FIX)


def direction_of(name: str | None) -> Direction:
    """Which way the data of a waiting call went, where its entry point tells."""
    if name in ("to", "cuda", "copy_"):
        return last_copy()
    return "device-to-host" if name in _TO_HOST else "unknown"


_copying = threading.local()


def last_copy() -> Direction:
    """The direction of the copy this thread is in, ``unknown`` outside of one."""
    return getattr(_copying, "direction", "unknown")


def _begin() -> Iterator[Callable[[], None]]:
    import torch

    if not torch.cuda.is_available():
        return  # nothing to wait for
    torch.cuda.init()
    waits.listen(torch, _seen)
    yield lambda: waits.unlisten(_seen)
    for name in ("to", "cuda", "copy_"):
        yield _note_direction(torch, name)


def _seen(frame: FrameType) -> None:
    if _guards.here:
        _guards.here[-1].caught(frame)


def _note_direction(torch: Any, name: str) -> Callable[[], None]:
    """From now on this thread's copies go, while ``Tensor.<name>`` runs, where its tensor is not; what undoes it."""
    original = getattr(torch.Tensor, name)
    compiling = torch.compiler.is_compiling

    def method(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling():
            return original(tensor, *args, **kwargs)
        to_device = tensor.is_cuda if name == "copy_" else not tensor.is_cuda
        outer, _copying.direction = last_copy(), "host-to-device" if to_device else "device-to-host"
        try:
            return original(tensor, *args, **kwargs)
        finally:
            _copying.direction = outer

    shadowed = vars(torch.Tensor).get(name)
    setattr(torch.Tensor, name, skip(torch, method))
    restore = setattr if shadowed is not None else lambda owner, name, _: delattr(owner, name)
    return lambda: restore(torch.Tensor, name, shadowed)


_guards: Blocks[guard] = Blocks(_begin)
ALL: tuple[Direction, ...] = get_args(Direction)
