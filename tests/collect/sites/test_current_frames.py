"""The frames of all threads, in the midst of which no garbage is collected."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from syncscope.collect.sites.threads import current_frames

PROGRAM = """
import gc, threading
from syncscope.collect.sites.threads import current_frames


class Local(threading.local):
    pass


def call():  # makes a frame object for itself, while Python holds the lock
    current_frames()


def leave_garbage():  # whose end asks for that lock
    local = Local()
    local.x = local
    ring = [local]
    ring.append(ring)


for threshold in range(3, 60):
    gc.set_threshold(threshold, 1, 1)
    for _ in range(300):
        leave_garbage()
        call()
print(gc.isenabled())
"""


def test_the_frames_can_be_asked_for_whenever_garbage_is_due() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_stays_as_the_program_has_it(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert current_frames()[threading.get_ident()].f_back is sys._getframe()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
