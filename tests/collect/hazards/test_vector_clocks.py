"""Who knows what of the streams' progress."""

from __future__ import annotations

import pytest

from syncscope.collect.hazards.vector_clocks import Clocks

MAIN, SIDE, THIRD = 0, 7, 9
EVENT = 100


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_work_of_one_stream_runs_in_order(clocks: Clocks) -> None:
    first = clocks.launch(MAIN)
    clocks.launch(MAIN)
    assert clocks.before(MAIN, first, MAIN)


def test_streams_know_nothing_of_each_other(clocks: Clocks) -> None:
    tick = clocks.launch(MAIN)
    clocks.launch(SIDE)
    assert not clocks.before(MAIN, tick, SIDE)


def test_a_stream_that_waited_for_an_event_comes_after_it(clocks: Clocks) -> None:
    before = clocks.launch(MAIN)
    clocks.record(EVENT, MAIN)
    after = clocks.launch(MAIN)
    clocks.wait(SIDE, EVENT)
    assert clocks.before(MAIN, before, SIDE)
    assert not clocks.before(MAIN, after, SIDE)
    assert not clocks.over(MAIN, before)  # the host has waited for nothing


def test_order_is_handed_on_from_stream_to_stream(clocks: Clocks) -> None:
    tick = clocks.launch(MAIN)
    clocks.record(EVENT, MAIN)
    clocks.wait(SIDE, EVENT)
    clocks.record(EVENT + 1, SIDE)
    clocks.wait(THIRD, EVENT + 1)
    assert clocks.before(MAIN, tick, THIRD)


def test_an_event_stands_for_its_last_record(clocks: Clocks) -> None:
    clocks.record(EVENT, MAIN)
    tick = clocks.launch(MAIN)
    clocks.wait(SIDE, EVENT)
    assert not clocks.before(MAIN, tick, SIDE)
    clocks.record(EVENT, MAIN)
    clocks.wait(SIDE, EVENT)
    assert clocks.before(MAIN, tick, SIDE)


def test_what_the_host_waited_for_is_over_for_everyone(clocks: Clocks) -> None:
    tick = clocks.launch(SIDE)
    clocks.host_waits_for_stream(SIDE)
    assert clocks.over(SIDE, tick)
    assert clocks.before(SIDE, tick, MAIN)


def test_waiting_for_one_stream_says_nothing_of_another(clocks: Clocks) -> None:
    tick = clocks.launch(SIDE)
    clocks.host_waits_for_stream(MAIN)
    assert not clocks.over(SIDE, tick)


def test_the_host_learns_through_a_stream_what_that_stream_waited_for(clocks: Clocks) -> None:
    tick = clocks.launch(SIDE)
    clocks.record(EVENT, SIDE)
    clocks.wait(MAIN, EVENT)
    clocks.host_waits_for_stream(MAIN)
    assert clocks.over(SIDE, tick)


def test_an_event_recorded_after_a_host_wait_carries_it(clocks: Clocks) -> None:
    tick = clocks.launch(SIDE)
    clocks.host_waits_for_stream(SIDE)
    clocks.record(EVENT, MAIN)
    clocks.wait(THIRD, EVENT)
    assert clocks.before(SIDE, tick, THIRD)


def test_a_device_wait_ends_everything_launched_before_it(clocks: Clocks) -> None:
    ticks = {stream: clocks.launch(stream) for stream in (MAIN, SIDE, THIRD)}
    clocks.host_waits_for_all()
    later = clocks.launch(SIDE)
    assert all(clocks.over(stream, tick) for stream, tick in ticks.items())
    assert not clocks.over(SIDE, later)


def test_a_stream_may_wait_for_a_stream_without_an_event(clocks: Clocks) -> None:
    tick = clocks.launch(MAIN)
    clocks.wait_for_stream(SIDE, MAIN)
    later = clocks.launch(MAIN)
    assert clocks.before(MAIN, tick, SIDE)
    assert not clocks.before(MAIN, later, SIDE)
    assert not clocks.over(MAIN, tick)


def test_a_stream_may_wait_for_all_others(clocks: Clocks) -> None:
    ticks = {stream: clocks.launch(stream) for stream in (MAIN, SIDE)}
    clocks.wait_for_all(THIRD)
    assert all(clocks.before(stream, tick, THIRD) for stream, tick in ticks.items())
    assert not clocks.before(MAIN, ticks[MAIN], SIDE)
    assert not clocks.over(MAIN, ticks[MAIN])


def test_an_event_of_another_process_stands_for_everything_until_it_is_recorded_here(clocks: Clocks) -> None:
    clocks.record_elsewhere(EVENT)
    tick = clocks.launch(MAIN)
    clocks.wait(SIDE, EVENT)
    assert clocks.before(MAIN, tick, SIDE)
    clocks.host_waits_for_event(EVENT)
    assert clocks.over(MAIN, tick)
    clocks.record(EVENT, SIDE)
    later = clocks.launch(MAIN)
    clocks.host_waits_for_event(EVENT)
    assert not clocks.over(MAIN, later)
