"""An ``analyze_rank`` that a trace can kill, as one does that is too large."""

import os
import signal

from syncscope.analysis import rank


def analyze_rank(path: str, job: bytes, shown: str | None = None) -> rank.Rank:
    if "killer" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    return rank.analyze_rank(path, job, shown)
