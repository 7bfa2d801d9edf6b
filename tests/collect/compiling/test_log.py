"""Memory for what was compiled is bounded, and what was left out is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from syncscope.collect.compiling.log import CompileLog, Place
from syncscope.collect.compiling.reasons import Reason
from syncscope.schema.compiling import MOST_EVENTS, MOST_SPANS, MOST_STEPS, WARM_STEPS


def phase(number: int = 0, kind: str = "train", steps: int = 0, times: int = 1) -> Any:
    return SimpleNamespace(number=number, kind=kind, steps=steps, times=times)


def test_rows_steps_and_spans_are_bounded() -> None:
    log = CompileLog()
    for number in range(MOST_EVENTS + 5):
        row = log.add("compile", phase(steps=number), Place(number), Reason(None))
        log.timed(row, 1, number, number + 1)
    for step in range(2 * MOST_STEPS):
        log.add("recompile", phase(steps=step), Place(0), Reason("n"))
    found = log.recorded(())
    assert (len(found.events), found.dropped) == (MOST_EVENTS, 5 + 2 * MOST_STEPS)
    assert len(log.spans(0, 10_000)) <= MOST_SPANS
    assert log.compilations == MOST_EVENTS + 5


def test_a_row_keeps_its_first_steps_and_its_last() -> None:
    log = CompileLog()
    for step in (*range(100), 99):
        log.add("recompile", phase(steps=step), Place(0), Reason("n"))
    (event,) = log.recorded(()).events
    assert (event.steps, event.last_step, event.count) == (tuple(range(MOST_STEPS)), 99, 101)
    assert event.warm == 101 - WARM_STEPS


def test_before_the_first_phase_nothing_is_warm() -> None:
    log = CompileLog()
    log.add("recompile", phase(kind="start", steps=50, times=9), Place(0), Reason("n"))
    log.add("recompile", None, Place(0), Reason("n"))
    assert [event.warm for event in log.recorded(()).events] == [0]


def test_a_phase_without_steps_is_warm_once_it_was_entered_often() -> None:
    log = CompileLog()
    for times in range(1, WARM_STEPS + 3):
        log.add("recompile", phase(kind="epoch end", times=times), Place(0), Reason("n"))
    assert [event.warm for event in log.recorded(()).events] == [2]


def test_spans_are_those_between_two_moments() -> None:
    log = CompileLog()
    first = log.add("compile", phase(), Place(0), Reason(None))
    log.timed(first, 7, 10, 20)
    log.timed(log.add("recompile", phase(), Place(1), Reason("n")), 7, 30, 40)
    assert [(span.event, span.tid, span.start_ns, span.end_ns) for span in log.spans(35, 50)] == [(1, 7, 30, 40)]
    assert not log.spans(20, 30)


def test_a_phase_that_is_part_of_another_gives_what_it_has_to_that() -> None:
    log = CompileLog()
    log.timed(log.add("compile", phase(1, steps=4), Place(0), Reason(None)), 7, 10, 20)
    log.folded(phase(1), phase(2))
    assert [(event.phase, event.count, event.steps) for event in log.recorded(()).events] == [(2, 1, ())]
    assert [span.event for span in log.spans(0, 100)] == [0]
