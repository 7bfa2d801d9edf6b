"""What runs in every Python that a recorded or guarded program starts: it waits for CUDA, and costs nothing until then.

The wheel's ``.pth`` file, or ``path/sitecustomize.py`` where syncscope is not installed, calls ``arm`` if the variable
is set. A process that never uses CUDA imports no more of syncscope than this module.
"""

from __future__ import annotations

import os

from syncscope.collect.environment import GUARD, VARIABLE
from syncscope.collect.imports import ImportWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_watch: ImportWatch | None = None
_not_here: int | None = None
"""The process that records by itself; what it forks does not."""


def arm() -> bool:
    """Record or guard this process from its first use of CUDA on, if the environment asks for it then.

    Returns ``False`` where that was so already.
    """
    global _watch
    if _watch is not None:
        return False
    if not os.environ.get(GUARD, "set").strip():
        del os.environ[GUARD]  # as if it were not there
    if GUARD in os.environ:
        from syncscope.collect.live.guarded import be_the_first

        be_the_first()
    _watch = ImportWatch("torch", _torch_imported)
    _watch.open()
    return True


def disarm() -> None:
    """Wait for torch no longer."""
    global _watch
    if _watch is not None:
        _watch.close()
        _watch = None


def exempt_this_process() -> None:
    """This process has a recording of its own. What it forks is recorded all the same, if the environment asks."""
    global _not_here
    _not_here = os.getpid()


def _torch_imported(torch: Any) -> None:
    try:
        before_cuda = getattr(torch.cuda, "_lazy_call", None)
        if before_cuda is None:
            _open()
        else:
            before_cuda(_open)  # torch calls it when it initialises CUDA; children by fork inherit that
    except Exception:  # the program's import must not fail
        pass


def _open() -> None:
    if GUARD in os.environ:
        from syncscope.collect.live.guarded import Order

        try:
            Order(os.environ[GUARD])
        except ValueError as error:  # what was to be guarded must not pass unguarded
            raise ValueError(f"{GUARD}: {error}") from None
        try:
            from syncscope.collect.live.armed import arm_later

            arm_later()
        except Exception:  # as below
            pass
    if os.getpid() == _not_here or VARIABLE not in os.environ:
        return
    try:
        from syncscope.collect.children.child import open_recording

        open_recording(VARIABLE)
    except Exception:  # another Python may lack what syncscope needs; the program's CUDA must not fail
        pass
