from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import detaching
from syncscope.collect.profiler import KinetoWindow

pytestmark = pytest.mark.skipif(not detaching.threads_of_process(), reason="the system lists no threads")


class Teardown(threading.Thread):
    """As Kineto's: some time after it began it hears of calls of the runtime, and is over with the next one."""

    def __init__(self, before: float = 0.0) -> None:
        super().__init__(daemon=True)
        self.before = before
        self.hears = False
        self.called = threading.Event()

    def run(self) -> None:
        time.sleep(self.before)
        self.hears = True
        self.called.wait()

    def synchronize(self) -> None:
        if self.hears:
            self.called.set()


def torch_of(thread: Teardown) -> Any:
    cuda = SimpleNamespace(synchronize=thread.synchronize)
    return SimpleNamespace(_C=SimpleNamespace(_cuda_synchronize=thread.synchronize), cuda=cuda)


def begin(thread: threading.Thread) -> frozenset[str]:
    """Start ``thread``. Returns its number."""
    before = detaching.threads_of_process()
    thread.start()
    return detaching.threads_of_process() - before


@pytest.mark.parametrize("before", [0.0, 0.1])
def test_calls_are_made_until_the_thread_that_detaches_is_gone(before: float) -> None:
    thread = Teardown(before)
    threads = begin(thread)
    detaching._detach(torch_of(thread), threads, os.getpid())
    assert not threads & detaching.threads_of_process()


def test_a_device_that_failed_and_a_thread_that_stays_keep_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detaching, "LONGEST", 0.02)
    thread = Teardown()
    threads = begin(thread)
    detaching._detach(SimpleNamespace(), threads, os.getpid())  # each call raises
    assert threads & detaching.threads_of_process()
    thread.called.set()


def test_a_forked_child_makes_no_call() -> None:
    thread = Teardown()
    threads = begin(thread)
    detaching._detach(torch_of(thread), threads, os.getpid() + 1)
    assert not thread.called.is_set()
    thread.called.set()


def test_the_thread_that_a_window_leaves_is_gone_at_the_end_of_the_process() -> None:
    code = """
import atexit
from pathlib import Path
from types import SimpleNamespace
from syncscope.collect import profiler
from tests.collect.test_detaching import Teardown, torch_of

thread = Teardown(0.05)
atexit.register(lambda: print("gone" if thread.called.wait(0) else "waits"))  # runs last
profiler._can_tear_down = lambda torch: True
window = profiler.KinetoWindow(torch_of(thread), cpu=False, on_foreign=print)
window._profile = SimpleNamespace(
    stop_trace=thread.start, start_trace=lambda: None, export_chrome_trace=lambda path: Path(path).touch()
)
window._prepared = window._started = True
window.stop(detach=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("gone\n", "")


def test_no_call_is_made_at_the_end_where_cupti_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []
    monkeypatch.setattr("syncscope.collect.profiler.detach_at_exit", lambda torch, threads: asked.append(threads))
    monkeypatch.setattr("syncscope.collect.profiler._can_tear_down", lambda torch: True)
    for detach, calls in ((False, 0), (True, 1)):
        window = KinetoWindow(torch_of(Teardown()), cpu=False, on_foreign=print)
        window._profile = SimpleNamespace(stop_trace=lambda: None, export_chrome_trace=lambda path: Path(path).touch())
        window._prepared = window._started = True
        window.stop(detach=detach)
        assert len(asked) == calls
