"""Which processes of a run are still being recorded: each has a hidden, empty file in the folder as long as it is."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from syncscope.collect.relatives import lives

_SIGN = re.compile(r"\.syncscope-(?P<run>\w+)-(?P<pid>\d+)(?P<ready>\.[\w.]+@\d+)?")
"""``ready`` is in the names of those that say what a rank is ready for."""

PAUSE = 0.02


def sign_in(folder: Path, run: str) -> None:
    """This process is being recorded."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _sign(folder, run).touch()


def sign_out(folder: Path, run: str) -> None:
    """What was recorded in this process is written."""
    with contextlib.suppress(OSError):
        _sign(folder, run).unlink(missing_ok=True)


def wait_for_others(folder: Path, run: str, seconds: float) -> None:
    """Wait until all other processes of the run have signed out or are gone, but for no more than ``seconds``."""
    until = time.monotonic() + seconds
    while still_recorded(folder, run) and time.monotonic() < until:
        time.sleep(PAUSE)


def still_recorded(folder: Path, run: str) -> set[int]:
    """The ids of the other processes of the run that are being recorded. Also removes the signs of processes that were
    killed, of whatever run."""
    left = set()
    for path in folder.glob(".syncscope-*"):
        found = _SIGN.fullmatch(path.name)
        if found is None or int(found["pid"]) == os.getpid():
            continue
        if lives(process := int(found["pid"])):
            if found["run"] == run and not found["ready"]:
                left.add(process)
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return left


def _sign(folder: Path, run: str) -> Path:
    return folder / f".syncscope-{run}-{os.getpid()}"
