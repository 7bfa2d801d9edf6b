"""Tell the processes that the program starts what to record, while it runs."""

from __future__ import annotations

import contextlib
import os
import site
from collections.abc import Iterator
from pathlib import Path

from syncscope.collect.children import startup
from syncscope.collect.children.request import Request
from syncscope.collect.environment import VARIABLE

PTH = "syncscope-children.pth"
PATH_FOLDER = Path(__file__).parent / "path"
"""The folder whose ``sitecustomize`` does what the ``.pth`` file does."""
SEARCH = "PYTHONPATH"


@contextlib.contextmanager
def announced(request: Request, *, children: bool) -> Iterator[None]:
    """Have the processes that the program starts in this block recorded, or none of them without ``children``.

    A recording of this process that the program around it asked for ends here: the one inside is its own.
    """
    from syncscope.collect.children.child import close_recording

    close_recording()
    startup.exempt_this_process()
    armed = False
    before = {name: os.environ.get(name) for name in (VARIABLE, SEARCH)}
    if children:
        os.environ[VARIABLE] = request.to_json()
        armed = startup.arm()  # for what is forked before CUDA is used
        if not _is_installed():
            os.environ[SEARCH] = os.pathsep.join(filter(None, (str(PATH_FOLDER), before[SEARCH])))
    else:
        os.environ.pop(VARIABLE, None)
    mine = {name: os.environ.get(name) for name in before}
    try:
        yield
    finally:
        if os.getpid() == request.top:  # else it is a process that the program forked
            if armed:
                startup.disarm()
            for name, value in before.items():
                if os.environ.get(name) == mine[name]:  # else the program changed it
                    _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _is_installed() -> bool:
    """Whether Python finds the hook by itself when it starts."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return any(os.path.isfile(os.path.join(folder, PTH)) for folder in folders)
