"""What the host waits for, and how long each call takes with nothing to wait for."""

import numpy as np
import pytest

from syncscope.estimate.chains import host_rows
from syncscope.estimate.device import activities
from syncscope.estimate.targets import NOW, Target, Targets, carried_over
from syncscope.estimate.waits import UNBLOCKED, Waits, find_waits
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder


def waits(builder: TraceBuilder) -> Waits:
    timeline = Timeline(builder.trace())
    host = host_rows(timeline)
    return find_waits(timeline, host, activities(timeline, host))


def test_a_wait_for_a_stream_whose_name_nobody_recorded_is_for_the_one_done_just_then() -> None:
    builder = TraceBuilder().launch("long", call=(0, 5), runs=(10, 90), stream=7)
    builder.launch("short", call=(6, 5), runs=(12, 30), stream=20).stream_sync(12, 34).recording(0, 200)
    found = waits(builder)
    assert found.targets == {2: (Target(1, NOW),)}
    assert found.back[2] == pytest.approx(4_000)
    assert found.own[2] == UNBLOCKED


def test_the_record_of_a_wait_names_its_stream() -> None:
    builder = TraceBuilder().launch("here", call=(0, 5), runs=(10, 30), stream=7)
    builder.launch("there", call=(6, 5), runs=(12, 30), stream=20).stream_sync(12, 32, stream=7, record=True)
    assert waits(builder.recording(0, 200)).targets == {2: (Target(0, NOW),)}


def test_a_wait_for_the_device_is_for_all_streams() -> None:
    builder = TraceBuilder().launch("here", call=(0, 5), runs=(10, 30), stream=7)
    builder.launch("there", call=(6, 5), runs=(12, 60), stream=20).device_sync(12, 64).recording(0, 200)
    assert waits(builder).targets == {2: (Target(0), Target(1))}


def test_an_event_that_was_over_is_still_known_for_when_it_is_not() -> None:
    builder = TraceBuilder().copy("HtoD", call=(0, 5), runs=(7, 20), stream=20).call("cudaEventRecord", 6, 1)
    builder.launch("compute", call=(8, 5), runs=(15, 90), stream=7).call("cudaEventRecord", 14, 1)
    builder.event_sync(30, 5).event_sync(36, 72).recording(0, 200)
    found = waits(builder)
    assert found.targets == {4: (Target(0, 1),), 5: (Target(1, 3),)}
    assert found.back[5] == pytest.approx(3_000)
    assert found.own.tolist()[4:6] == [5_000, 5_000]


def test_an_event_that_nobody_saw_recorded_is_the_activity_that_ended_just_then() -> None:
    builder = TraceBuilder().launch("compute", call=(8, 5), runs=(15, 90), stream=7).event_sync(30, 77)
    assert waits(builder.recording(0, 200)).targets == {1: (Target(0, 0),)}


def test_a_wait_longer_than_all_work_is_the_hosts_own() -> None:
    builder = TraceBuilder().launch("short", call=(0, 5), runs=(10, 30)).stream_sync(12, 300).recording(0, 400)
    found = waits(builder)
    assert found.targets == {}
    assert found.own[1] == 300_000


def test_giving_memory_back_waits_for_the_device() -> None:
    builder = TraceBuilder().launch("long", call=(0, 5), runs=(10, 90)).call("cudaFree", 10, 95).recording(0, 200)
    assert waits(builder).targets == {1: (Target(0),)}


def test_what_the_first_step_waits_for_of_the_step_before_it_waits_for_in_the_last() -> None:
    known = Targets({4: (Target(0, 1),), 7: (Target(0, 4),)}, {5: (Target(1, 3),)})
    found = carried_over(known, np.repeat([0, 1, 2], 3))
    assert found.waits[1] == (Target(0, 7),)
    assert found.holds[2] == (Target(1, 0),)


def test_steps_of_unequal_build_tell_nothing_of_each_other() -> None:
    known = Targets({4: (Target(0, 1),)}, {})
    assert carried_over(known, np.array([0, 0, 0, 1, 1])) == known
