"""Our work in the middle of the program is not cut in half, and leaves nothing behind."""

from __future__ import annotations

import _imp
import _thread
import contextlib
import importlib
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from syncscope.collect.sites.first_filter import MUTATED
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.undisturbed import own_warnings, undisturbed


@pytest.fixture(autouse=True)
def heeds_interrupts() -> Iterator[None]:
    """Python raises no KeyboardInterrupt where a shell's background job, which ignores SIGINT, runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_until_the_work_is_done() -> None:
    done = []

    @undisturbed()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("context", [undisturbed, own_warnings])
def test_other_threads_can_import_after_an_interrupt_left_the_lock(
    context: Callable[[], contextlib.AbstractContextManager[None]],
) -> None:
    imported: list[ModuleType] = []
    thread = threading.Thread(target=lambda: imported.append(importlib.import_module("syncscope")), daemon=True)
    _imp.acquire_lock()
    _imp.acquire_lock()
    with context():
        thread.start()
        thread.join(20)
    assert imported and not _imp.lock_held()


def test_a_second_interrupt_does_not_wait() -> None:
    @undisturbed()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second one waited too")

    with pytest.raises(KeyboardInterrupt):
        work()


def test_filters_that_an_import_adds_are_taken_out_again() -> None:
    before = list(warnings.filters)
    with undisturbed():
        warnings.filterwarnings("ignore", message="added by an import")
    assert list(warnings.filters) == before


def test_what_python_shows_once_a_line_is_not_shown_again() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warnings.warn("once a line", stacklevel=1)
            with undisturbed():
                pass
    assert len(caught) == 1


def test_our_own_filter_stays_away_once_it_was_taken_out() -> None:
    before = list(warnings.filters)
    sync_debug_mode.hold_filter()
    with undisturbed():
        sync_debug_mode.release_filter()
    assert list(warnings.filters) == before
    with undisturbed():
        sync_debug_mode.hold_filter()
    assert tuple(warnings.filters[:2]) == sync_debug_mode.filters
    sync_debug_mode.release_filter()
    assert list(warnings.filters) == before


def test_what_imports_warn_of_calls_no_function_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(warnings, "warn", lambda message, *args, **kwargs: heard.append(message))
    with undisturbed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("ours", stacklevel=1)
    warnings.warn("the program's", stacklevel=1)
    assert heard == ["the program's"]


def change_filters() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")


def run_on_thread(number: int, work: Callable[[], None]) -> None:
    """Start threads, each after the last has ended, until one has ``number``, and ``work`` there."""
    for _ in range(1000):
        done: list[bool] = []

        def body(done: list[bool] = done) -> None:
            if _thread.get_ident() == number:
                work()
                done.append(True)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if done:
            return
    pytest.skip("threads get no number of one that has ended here")


def test_a_thread_of_ours_may_have_the_number_of_one_that_ended_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(warnings, MUTATED, lambda: told.append(_thread.get_ident()))
    runs, ends = threading.Event(), threading.Event()

    def wait() -> None:
        runs.set()
        ends.wait()

    earlier = _thread.start_new_thread(wait, ())
    runs.wait()
    sync_debug_mode.hold_filter()
    try:
        told.clear()
        with undisturbed():
            ends.set()
            run_on_thread(earlier, change_filters)
            assert told == []
    finally:
        sync_debug_mode.release_filter()


def test_a_thread_of_the_program_is_told_while_ours_works(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(warnings, MUTATED, lambda: told.append(_thread.get_ident()))
    begin, done = threading.Event(), threading.Event()

    def body() -> None:
        begin.wait()
        change_filters()
        done.set()

    thread = threading.Thread(target=body)
    thread.start()
    sync_debug_mode.hold_filter()
    try:
        told.clear()
        with undisturbed():
            begin.set()
            done.wait()
            assert set(told) == {thread.ident}
    finally:
        sync_debug_mode.release_filter()
    thread.join()
