"""A wait that a watched block sees, and what its line says of it."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

from syncscope import advice
from syncscope.collect.paths import OURS
from syncscope.collect.sites.stacks import Expressions, position_at
from syncscope.schema.expressions import TO_HOST, called_name
from syncscope.schema.preparation import TUNING, Part, part_of

Direction = Literal["device-to-host", "host-to-device", "unknown"]

PIN = "Pin the memory and keep it contiguous: only such memory is copied while the host goes on."
_FIX = "Keep the value on the device."


class LiveWait(NamedTuple):
    """A wait that has just happened, or is about to."""

    frame: FrameType
    """The frame that waits: never one of ours."""
    label: str = ""
    """The entry point that was called, ``""`` where PyTorch warned."""
    direction: Direction | None = None
    """``None`` where only the name of the call can tell."""
    before: bool = False
    """It has not begun yet."""
    why: str = ""
    """Why a call waits that does not look like it."""


def waiting_call(frame: FrameType) -> tuple[str | None, str]:
    """The expression that ``frame`` is running, and the method or function that it calls, ``""`` for no call."""
    return _call_at(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=1024)
def _call_at(code: CodeType, instruction: int) -> tuple[str | None, str]:
    place = position_at(code, instruction)
    text = Expressions().text(code.co_filename, place) if place else None
    return text, called_name(text)


def direction_of(name: str) -> Direction:
    """The direction in which a waiting call copied, from its name; ``unknown`` where the name does not show it."""
    return "device-to-host" if name in TO_HOST else "unknown"


def fix_for(*names: str) -> str:
    """A way out of a wait in a call of the first of ``names`` for which one is known."""
    known = map(advice.for_call, names)
    return next((entry.sentence for entry in known if entry is not None), _FIX)


def is_known(name: str) -> bool:
    """Whether there is advice for a call of ``name``."""
    return advice.for_call(name) is not None


def copy_wait(host: Any, device: Any | None, non_blocking: bool) -> str | None:
    """Why a copy between ``host`` and the device waits, ``None`` where it does not.

    ``device`` is the tensor there, ``None`` where the copy makes it and gives it the layout of ``host``. A blocking
    copy waits, and so does one from or to memory that is pageable, or laid out so that PyTorch first makes a pageable
    copy of it. Source: the recording behind docs/does-it-wait.md.
    """
    if not host.numel():
        return None
    if not non_blocking:
        return ""
    if not host.is_pinned():
        return "the memory is pageable"
    if host.is_contiguous() or (_is_dense(host) and (device is None or device.stride() == host.stride())):
        return None
    return "the memory is not contiguous, and goes through a pageable copy"


def _is_dense(tensor: Any) -> bool:
    """Whether its elements fill a range of memory, with its dimensions in any order."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


HELPERS = ("contextlib.py", "functools.py")
"""Modules of Python by which PyTorch calls itself."""


def prepares(wait: LiveWait) -> bool:
    """Whether PyTorch waits on its own account, to compile, to tune or to capture: once, and never to run the program.

    The frames from the wait out to the first that is neither PyTorch's nor Triton's tell it.
    """
    frame: FrameType | None = wait.frame
    while frame is not None:
        origin = _origin(frame.f_code.co_filename)
        if origin == "program":
            return False
        tuning = frame.f_code.co_name in TUNING
        if origin == "preparing" or (origin == "running" and (wait.before or tuning)):
            return True
        frame = frame.f_back
    return False


def program_line(frame: FrameType) -> FrameType:
    """The nearest frame around ``frame`` that is not PyTorch's, else ``frame``."""
    found: FrameType | None = frame
    while found is not None and _origin(found.f_code.co_filename) != "program":
        found = found.f_back
    return found or frame


@lru_cache(maxsize=4096)
def _origin(file: str) -> Part | Literal["program"]:
    """Whose file it is, and what it does."""
    for package in ("torch", "triton"):
        folder = os.path.dirname(getattr(sys.modules.get(package), "__file__", None) or "")
        if not folder or not file.startswith(folder + os.sep):
            continue
        inside = file[len(folder) + 1 :].replace(os.sep, "/")
        return part_of(package, inside)
    return "neutral" if os.path.basename(file) in HELPERS or file.startswith(OURS) else "program"
