"""PyTorch's warnings reach us whatever the program does to its filters; everything else is left as it was.

A warning of C is made with ``PyErr_WarnEx``, which is what PyTorch itself calls.
"""

from __future__ import annotations

import copy
import ctypes
import glob
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from syncscope.collect.sites.sync_debug import DEFAULT, ERROR, MESSAGE, MESSAGES, NOTICES, WARN, SyncDebugMode
from syncscope.collect.sites.threads import live_threads


def c_warning(text: str = MESSAGE) -> None:
    ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), text.encode(), 1)


class Native:
    """The two functions of ``torch._C``."""

    def __init__(self, mode: int = DEFAULT) -> None:
        self.mode = mode
        self._cuda_get_sync_debug_mode = lambda: self.mode
        self._cuda_set_sync_debug_mode = self._set

    def _set(self, mode: int) -> None:
        if mode not in (DEFAULT, WARN, ERROR):
            raise RuntimeError("invalid mode")
        self.mode = mode


class Torch:
    def __init__(self, mode: int = DEFAULT) -> None:
        self._C = Native(mode)


@pytest.fixture
def torch() -> Torch:
    return Torch()


@pytest.fixture
def seen(torch: Torch) -> Iterator[list[int]]:
    lines: list[int] = []

    def listener(frame: FrameType) -> None:
        lines.append(frame.f_lineno)

    mode = SyncDebugMode()
    mode.listen(torch, listener)
    yield lines
    mode.unlisten(listener)


def here() -> int:
    return sys._getframe(1).f_lineno


def test_the_frame_is_the_one_that_waited(seen: list[int]) -> None:
    ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), MESSAGE.encode(), 1)
    assert seen == [here() - 1]


@pytest.mark.parametrize("action", ["ignore", "error", "once", "module", "default"])
def test_the_programs_simplefilter_does_not_silence_it(seen: list[int], action: Any) -> None:
    warnings.simplefilter(action)
    c_warning()
    c_warning()
    assert len(seen) == 2


def test_filterwarnings_resetwarnings_and_catch_warnings_do_not_silence_it(seen: list[int]) -> None:
    warnings.filterwarnings("ignore", message=".*synchronizing.*")
    c_warning()
    warnings.resetwarnings()
    c_warning()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        c_warning()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c_warning()
    c_warning()
    assert len(seen) == 5
    assert caught == []


def test_the_once_per_line_registry_does_not_silence_it(seen: list[int]) -> None:
    for _ in range(3):
        c_warning()
    assert len(seen) == 3


def test_logging_capture_does_not_get_it(seen: list[int], caplog: pytest.LogCaptureFixture) -> None:
    logging.captureWarnings(True)
    try:
        c_warning()
    finally:
        logging.captureWarnings(False)
    assert len(seen) == 1
    assert caplog.records == []


def test_other_warnings_pass_and_the_modes_own_notice_is_swallowed(seen: list[int]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c_warning("something else")
        for notice in NOTICES:
            c_warning(notice + " and more")
    assert [str(entry.message) for entry in caught] == ["something else"]
    assert seen == []


def test_filters_and_functions_are_restored_even_inside_catch_warnings(torch: Torch) -> None:
    before = (list(warnings.filters), warnings._showwarnmsg, warnings._filters_mutated)  # type: ignore[attr-defined]
    mode = SyncDebugMode()

    def listener(frame: FrameType) -> None:
        pass

    mode.listen(torch, listener)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode.unlisten(listener)
    after = (list(warnings.filters), warnings._showwarnmsg, warnings._filters_mutated)  # type: ignore[attr-defined]
    assert after == before
    assert torch._C.mode == DEFAULT


@pytest.mark.timeout(20)
def test_blocks_by_the_hundred_thousand_leave_nothing_behind(torch: Torch) -> None:
    """As Triton's compiler, which enters one for each node of a kernel's syntax tree."""
    before = list(warnings.filters)
    mode = SyncDebugMode()

    def listener(frame: FrameType) -> None:
        pass

    mode.listen(torch, listener)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnicodeWarning)
        for _ in range(100_000):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BytesWarning)
        assert len(mode._filter._lists) < 1000
        mode.unlisten(listener)
    assert warnings.filters == before


def test_the_program_sees_and_sets_its_own_mode(torch: Torch) -> None:
    mode = SyncDebugMode()
    native = torch._C
    original = native._cuda_set_sync_debug_mode
    with pytest.warns(UserWarning, match="synchronizing"):
        mode.listen(torch, lambda frame: None)
        listener = mode._listeners[0]
        assert (native.mode, native._cuda_get_sync_debug_mode()) == (WARN, DEFAULT)
        native._cuda_set_sync_debug_mode(WARN)
        c_warning()  # the program wants it too
    native._cuda_set_sync_debug_mode(ERROR)
    assert native.mode == ERROR
    native._cuda_set_sync_debug_mode(DEFAULT)
    assert (native.mode, native._cuda_get_sync_debug_mode()) == (WARN, DEFAULT)
    with pytest.raises(RuntimeError, match="invalid mode"):
        native._cuda_set_sync_debug_mode(7)
    native._cuda_set_sync_debug_mode(ERROR)
    mode.unlisten(listener)
    assert native.mode == ERROR
    assert native._cuda_set_sync_debug_mode == original


def test_suspending_and_resuming_leave_a_programs_error_mode_alone(torch: Torch) -> None:
    mode = SyncDebugMode()
    mode.listen(torch, print)
    mode.suspend()
    assert torch._C.mode == DEFAULT
    mode.resume()
    assert torch._C.mode == WARN
    torch._C._cuda_set_sync_debug_mode(ERROR)
    mode.suspend()
    mode.resume()
    assert torch._C.mode == ERROR
    mode.unlisten(print)


def test_a_late_warning_is_swallowed_while_held(torch: Torch, recwarn: pytest.WarningsRecorder) -> None:
    mode = SyncDebugMode()
    mode.hold_filter()
    mode.listen(torch, print)
    mode.unlisten(print)
    c_warning()
    mode.release_filter()
    assert len(recwarn) == 0
    c_warning()
    assert len(recwarn) == 1


PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import ctypes, warnings
from syncscope.collect.sites.sync_debug import MESSAGE, SyncDebugMode
class Native:
    mode = 0
native = Native()
native._cuda_get_sync_debug_mode = lambda: native.mode
native._cuda_set_sync_debug_mode = lambda mode: setattr(native, "mode", mode)
torch = type("Torch", (), {{"_C": native}})
lines = []
mode = SyncDebugMode()
listener = lambda frame: lines.append(frame.f_lineno)
before = list(warnings.filters)
mode.listen(torch, listener)
def wait():
    ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), MESSAGE.encode(), 1)
wait(); wait()
warnings.simplefilter("ignore"); wait()
warnings.filterwarnings("error"); wait()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always"); wait()
with warnings.catch_warnings():
    warnings.resetwarnings(); warnings.simplefilter("error"); wait()
wait()
assert not caught, caught
mode.unlisten(listener)
assert all(entry in before or entry[0] in ("ignore", "error") for entry in warnings.filters)
print(sys.version_info[:2], len(lines))
"""


def interpreters() -> list[str]:
    found = [sys.executable]
    for minor in (10, 11, 12, 13):
        found += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}")))
    return found


@pytest.mark.parametrize("python", interpreters())
@pytest.mark.parametrize("flags", [[], ["-W", "error"]])
def test_it_survives_on_every_python(python: str, flags: list[str]) -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = PROGRAM.format(root=root)
    done = subprocess.run([python, *flags, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(" 7")


def test_the_mode_is_suspended_only_where_nobody_would_miss_a_warning(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[int, object] = {1: "this one"}
    monkeypatch.setattr("syncscope.collect.sites.sync_debug.live_threads", threads)
    mode, listeners = SyncDebugMode(), [lambda frame: None, lambda frame: None]
    mode.listen(torch, listeners[0])
    assert mode.suspend_if_unnoticed() and torch._C.mode == DEFAULT
    mode.resume()
    assert torch._C.mode == WARN
    mode.listen(torch, listeners[1])
    assert not mode.suspend_if_unnoticed() and torch._C.mode == WARN
    mode.unlisten(listeners[1])
    threads[2] = "another"
    assert not mode.suspend_if_unnoticed() and torch._C.mode == WARN
    del threads[2]
    torch._C._cuda_set_sync_debug_mode(WARN)
    assert not mode.suspend_if_unnoticed()
    mode.unlisten(listeners[0])


def test_the_threads_counted_are_those_alive() -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        assert live_threads[other.ident or 0] is other
    finally:
        stop.set()
        other.join()
    assert live_threads.get(other.ident or 0) is not other


def test_a_muted_listener_hears_nothing_and_the_programs_filters_are_not_touched(torch: Torch) -> None:
    mode, heard = SyncDebugMode(), []

    def listener(frame: FrameType) -> None:
        heard.append(frame)

    mode.listen(torch, listener)
    version = list(warnings.filters)
    mode.mute(listener)
    assert torch._C.mode == DEFAULT
    c_warning()
    assert heard == [] and list(warnings.filters) == version
    mode.unmute(listener)
    assert torch._C.mode == WARN
    c_warning()
    assert len(heard) == 1
    mode.mute(listener)
    mode.unlisten(listener)
    assert torch._C.mode == DEFAULT and warnings.filters != version


def test_a_muted_listener_leaves_the_others_theirs(torch: Torch) -> None:
    mode, heard = SyncDebugMode(), []

    def first(frame: FrameType) -> None:
        heard.append("first")

    def second(frame: FrameType) -> None:
        heard.append("second")

    mode.listen(torch, first)
    mode.mute(first)
    mode.listen(torch, second)
    assert torch._C.mode == WARN
    c_warning()
    mode.unlisten(second)
    assert torch._C.mode == DEFAULT
    mode.unmute(first)
    c_warning()
    mode.unlisten(first)
    assert heard == ["second", "first"]


def test_calls_that_overlap_suspend_the_mode_until_the_last_one_ends(torch: Torch) -> None:
    mode = SyncDebugMode()
    mode.listen(torch, print)
    mode.suspend()
    mode.suspend()
    mode.resume()
    assert torch._C.mode == DEFAULT
    mode.resume()
    assert torch._C.mode == WARN
    mode.unlisten(print)


def test_what_a_thread_hears_is_not_suspended_by_it_nor_before_it(torch: Torch) -> None:
    mode = SyncDebugMode()
    mode.listen(torch, print)
    mode.hear()
    mode.suspend()  # by a wrapper inside
    assert torch._C.mode == WARN
    mode.resume()
    mode.hear_no_more()
    mode.suspend()  # by a wrapper around it
    mode.hear()
    assert torch._C.mode == WARN
    mode.hear_no_more()
    assert torch._C.mode == DEFAULT
    mode.resume()
    assert torch._C.mode == WARN
    mode.unlisten(print)


def test_both_messages_of_pytorch_are_heard(seen: list[int]) -> None:
    for message in MESSAGES:
        c_warning(message)
    assert len(seen) == 2


def test_filters_that_are_sent_to_another_process_are_usual_ones(torch: Torch) -> None:
    """scikit-learn sends those that hold to its workers."""
    mode = SyncDebugMode()
    mode.hold_filter()
    try:
        sent = pickle.loads(pickle.dumps(list(warnings.filters)))
    finally:
        mode.release_filter()
    assert [action for action, *_ in sent[:2]] == ["ignore", "always"]
    assert all(isinstance(pattern, re.Pattern) for _, pattern, *_ in sent[:2])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda filters: pickle.loads(pickle.dumps(filters))])
def test_a_wait_is_heard_once_where_the_program_puts_a_copy_of_the_filters_back(
    seen: list[int], monkeypatch: pytest.MonkeyPatch, again: Any
) -> None:
    monkeypatch.setattr(warnings, "filters", again(list(warnings.filters)))
    c_warning()
    assert len(seen) == 1


def test_python_makes_no_warning_of_a_wait(seen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **named: Any) -> None:
        raise AssertionError("a warning was made")

    monkeypatch.setattr(warnings, "WarningMessage", fail)
    c_warning()
    assert len(seen) == 1
