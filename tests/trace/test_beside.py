"""What is done in a second thread comes to the same."""

from __future__ import annotations

import contextlib
import threading

import pytest

from fixtures.labels import TRACES
from syncscope import analyze
from syncscope.trace import beside as module
from syncscope.trace import load
from syncscope.trace.beside import Beside
from syncscope.trace.source import Reading


@pytest.mark.parametrize("threaded", [True, False])
def test_work_is_done_in_another_thread_or_at_once_in_this_one(threaded):
    with Beside(threaded=threaded) as beside:
        assert (beside.begin(threading.get_ident)() != threading.get_ident()) == threaded


def test_an_error_is_raised_where_the_result_is_asked_for():
    with Beside(threaded=True) as beside:
        result = beside.begin(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            result()


def test_no_thread_is_left_where_the_work_beside_it_fails():
    before = threading.active_count()
    with contextlib.suppress(KeyError), Beside(threaded=True) as beside:
        beside.begin(threading.get_ident)()
        raise KeyError
    assert threading.active_count() == before


@pytest.mark.parametrize(("workers", "large", "threaded"), [(2, 0, True), (1, 0, False), (2, 10**9, False)])
def test_a_thread_is_for_large_traces_on_several_processors(monkeypatch, workers, large, threaded):
    monkeypatch.setattr(module, "LARGE", large)
    trace = load(TRACES / "item_logging" / "trace.json.gz")
    with Beside.of(trace, Reading(workers=workers)) as beside:
        assert beside.threaded == threaded


@pytest.mark.parametrize("case", ["item_logging", "clip_norm"])
def test_the_report_is_the_same_with_a_thread(monkeypatch, case):
    path = TRACES / case / "full.json.gz"
    monkeypatch.setattr(module, "default_workers", lambda: 2)
    reports = []
    for large in (10**9, 0):
        monkeypatch.setattr(module, "LARGE", large)
        reports.append(analyze(path).to_json())
    assert reports[0] == reports[1]
