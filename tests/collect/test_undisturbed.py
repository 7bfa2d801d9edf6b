"""Our work in the middle of the program is not cut in half, and leaves nothing behind."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator

import pytest

from syncscope.collect.sites.sync_debug import FILTER, sync_debug_mode
from syncscope.collect.undisturbed import undisturbed


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
    assert warnings.filters[0] is FILTER
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
