"""A ``study`` that a trace can kill, as one does that is too large."""

import os
import signal

from syncscope.analysis import rank


def study(path: str, job: bytes, shown: str | None = None) -> bytes:
    if "killer" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    return rank.study(path, job, shown)
