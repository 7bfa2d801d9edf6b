"""``syncscope.guard``: a wait inside the block raises, warns or logs at its line, without profiling."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ContextDecorator
from types import FrameType, TracebackType
from typing import Any, Literal, get_args

from syncscope import advice
from syncscope.collect.live.open_blocks import OpenBlocks
from syncscope.collect.patching import Patches
from syncscope.collect.sites.stacks import Expressions, Position, positions
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.schema.expressions import TO_HOST, called_name

Action = Literal["raise", "warn", "log"]
Direction = Literal["device-to-host", "host-to-device", "unknown"]

log = logging.getLogger("syncscope.guard")


class SyncError(RuntimeError):
    """The guarded code waited for the device; ``str`` names the line, the operation and a way out."""


class SyncWarning(UserWarning):
    """The guarded code waited for the device."""


_FIX = "Keep the value on the device."


class guard(ContextDecorator):
    """Watch this thread for waits: ``with syncscope.guard("raise"):``, also a decorator.

    ``action``: ``"raise"`` a ``SyncError``, ``"warn"`` with a ``SyncWarning``, or ``"log"`` to the logger
    ``syncscope.guard``. ``allow`` names directions of copies to let pass, like JAX's ``transfer_guard``:
    ``"device-to-host"``, ``"host-to-device"``, ``"unknown"`` (waits whose entry point does not say). Guards nest:
    the innermost of the thread decides. ``guard("raise", allow=ALL)`` lets everything pass.

    It sees what PyTorch's sync debug mode sees. The exception comes *after* the wait. It does not see waits inside
    ``torch.ops`` operators and TorchScript, ``torch.cuda.synchronize()``, ``Event.synchronize()`` and ``non_blocking``
    copies of pageable memory. Other threads' waits pass, although the mode is process-wide.
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

    def on_wait(self, frame: FrameType) -> None:
        """Act on a wait at ``frame`` that is over."""
        text, name = waiting_call(frame)
        direction = direction_of(name)
        if direction in self.allow:
            return
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        what = f"{text or 'an operation'} waited for the device ({direction})"
        known = advice.for_call(name) is not None
        otherwise = "" if known else " Or allow this wait with syncscope.guard(allow=…)."
        message = f"{place}: {what}. {fix_for(name)}{otherwise}"
        if self.action == "raise":
            raise SyncError(message)
        if self.action == "log":
            log.warning("%s", message)
        else:
            warnings.warn_explicit(message, SyncWarning, frame.f_code.co_filename, frame.f_lineno)


def waiting_call(frame: FrameType) -> tuple[str | None, str]:
    """The expression that ``frame`` is running, and the method or function that it calls, ``""`` for no call."""
    places = list(positions(frame.f_code))
    position: Position | None = places[frame.f_lasti // 2] if frame.f_lasti >= 0 else None
    text = Expressions().text(frame.f_code.co_filename, position) if position else None
    return text, called_name(text)


def fix_for(*names: str) -> str:
    """A way out of a wait in a call of the first of ``names`` for which one is known."""
    known = map(advice.for_call, names)
    return next((entry.sentence for entry in known if entry is not None), _FIX)


def direction_of(name: str) -> Direction:
    """The direction in which a waiting call copied, from its name; ``unknown`` where the name does not show it."""
    if name in ("to", "cuda", "copy_"):
        return copy_direction()
    return "device-to-host" if name in TO_HOST else "unknown"


_current_copy = threading.local()


def copy_direction() -> Direction:
    """The direction of the copy that this thread makes now, ``unknown`` while it makes none."""
    return getattr(_current_copy, "direction", "unknown")


def _start() -> Iterator[Callable[[], None]]:
    import torch

    if not torch.cuda.is_available():
        return  # nothing to wait for
    torch.cuda.init()
    sync_debug_mode.listen(torch, _on_wait)
    yield lambda: sync_debug_mode.unlisten(_on_wait)
    patches = Patches(torch)
    yield patches.restore
    for name in ("to", "cuda", "copy_"):
        _note_direction(torch, name, patches)


def _on_wait(frame: FrameType) -> None:
    if _guards.of_this_thread:
        _guards.of_this_thread[-1].on_wait(frame)


def _note_direction(torch: Any, name: str, patches: Patches) -> None:
    """Set ``copy_direction`` during ``Tensor.<name>``: ``copy_`` copies to its tensor's side, the others from it."""
    compiling = torch.compiler.is_compiling

    def make(original: Any) -> Any:
        def method(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(tensor, *args, **kwargs)
            to_device = tensor.is_cuda if name == "copy_" else not tensor.is_cuda
            outer, _current_copy.direction = copy_direction(), "host-to-device" if to_device else "device-to-host"
            try:
                return original(tensor, *args, **kwargs)
            finally:
                _current_copy.direction = outer

        return method

    patches.replace(torch.Tensor, name, make)


_guards: OpenBlocks[guard] = OpenBlocks(_start)
ALL: tuple[Direction, ...] = get_args(Direction)
