"""Threads that take turns are one chain of host work; others are not."""

import pytest

from syncscope.estimate.chains import host_rows
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder

OTHER = 4100


def rows(builder: TraceBuilder):
    return host_rows(Timeline(builder.trace()))


def test_work_lies_before_and_inside_calls_and_ends_with_the_step() -> None:
    found = rows(
        TraceBuilder()
        .launch("a", call=(10, 5), runs=(20, 30))
        .launch("b", call=(40, 4), runs=(60, 9))
        .recording(0, 100)
    )
    assert found["pre"].tolist() == [10_000, 25_000, 56_000]
    assert found["own"].tolist() == [5_000, 4_000, 0]
    assert found["mark"].tolist() == [False, False, True]


def test_backward_takes_over_from_the_main_thread_and_hands_back() -> None:
    builder = TraceBuilder().launch("forward", call=(10, 5), runs=(20, 30)).on(OTHER)
    builder.launch("grad", call=(40, 5), runs=(60, 30)).stream_sync(50, 40)
    found = rows(builder.on(TID).launch("update", call=(100, 5), runs=(110, 5)).recording(0, 200))
    assert set(found["chain"]) == {0}
    assert found["pre"].tolist() == [10_000, 25_000, 5_000, 10_000, 95_000]


def test_a_thread_that_calls_while_the_main_thread_waits_is_a_chain_of_its_own() -> None:
    builder = TraceBuilder().launch("step", call=(10, 5), runs=(20, 70)).stream_sync(15, 80)
    found = rows(builder.on(OTHER).launch("other", call=(50, 5), runs=(100, 5)).on(TID).recording(0, 200))
    assert found[found["chain"] == 1]["begin"].tolist() == [50_000]
    assert found["chain"].tolist() == [0, 0, 1, 0]


def test_a_thread_beside_the_main_one_is_set_off_by_what_that_did_last() -> None:
    builder = TraceBuilder().launch("step", call=(10, 5), runs=(20, 70)).on(OTHER).stream_sync(30, 62)
    found = rows(builder.on(TID).launch("step", call=(60, 5), runs=(95, 5)).recording(0, 200))
    beside = found[found["chain"] == 1]
    assert beside["follows"].tolist() == [True]
    assert beside["pre"].tolist() == [pytest.approx(15_000)]


def test_work_outside_the_steps_is_not_in_the_program() -> None:
    builder = TraceBuilder().launch("before", call=(10, 5), runs=(20, 5)).launch("inside", call=(60, 5), runs=(70, 5))
    assert rows(builder.launch("after", call=(160, 5), runs=(170, 5)).recording(50, 150))["call"].tolist() == [1, -1]
