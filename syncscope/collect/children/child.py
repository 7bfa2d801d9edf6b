"""Record a process that a recorded program started, from its first use of CUDA to its end.

It prints nothing, writes no reports, and handles no signals: a signal ends it as it does alone, and leaves what was
written by then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from dataclasses import replace

from syncscope.collect.annotations import begin, end, forget_all
from syncscope.collect.children.presence import sign_in, sign_out
from syncscope.collect.children.request import Request
from syncscope.collect.collector import Collector
from syncscope.collect.naming import how_it_was_started, rank_in_environment
from syncscope.collect.relatives import lives

_recorded: tuple[int, Collector | None] | None = None
"""The process that is or was recorded, and by what until it is over. A forked process has that of its parent."""


def open_recording(variable: str) -> None:
    """Begin to record this process as the environment ``variable`` asks.

    Does nothing where it is being recorded already, or where the run that asks is over.
    """
    global _recorded
    if _recorded is not None and _recorded[0] == os.getpid():
        return
    request = Request.from_json(os.environ[variable])
    if not lives(request.top):
        return
    abandon_inherited()
    collector = request.make_collector(process=how_it_was_started())
    _recorded = (os.getpid(), collector)
    # What this process starts inherits the rank that it has in its environment now.
    os.environ[variable] = replace(request, inherited=rank_in_environment()).to_json()
    atexit.register(close_recording)
    if "multiprocessing.util" in sys.modules:  # its forked processes leave by os._exit, after these
        from multiprocessing.util import Finalize

        Finalize(None, close_recording, exitpriority=1000)
    sign_in(collector.names.folder, request.run)
    begin(collector)


def close_recording() -> None:
    """Write what was recorded in this process, and stop. Does nothing where nothing is recorded."""
    global _recorded
    if _recorded is None or _recorded[0] != os.getpid() or _recorded[1] is None:
        return
    collector = _recorded[1]
    _recorded = (os.getpid(), None)
    try:
        with contextlib.suppress(Exception):  # the program's status must not depend on its recording
            end(collector)
    finally:
        sign_out(collector.names.folder, collector.names.run)


def abandon_inherited() -> None:
    """Remove the hooks that a forked process has from its parent, and write nothing."""
    for collector in forget_all():
        collector.abandon()
