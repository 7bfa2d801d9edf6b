"""What the host's waits and the streams wait for: from the trace's records, or from when things began and ended."""

import numpy as np
import pytest

from syncscope.estimate.dependencies import (
    NOW,
    UNBLOCKED,
    Dependencies,
    Events,
    HostWaits,
    Streams,
    Target,
    Targets,
    _waits_in_a_row,
    carry_over,
    find_events,
    find_host_waits,
    find_stream_waits,
)
from syncscope.estimate.device import find_device_part, number_streams
from syncscope.estimate.host import find_host_part
from syncscope.estimate.items import DevicePart, HostPart
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

MAIN, SIDE = 0, 1
"""Numbers of the streams 7 and 20, in the order of their first activity."""


def seen(timeline: Timeline, host: HostPart) -> tuple[DevicePart, Streams, Events]:
    device = find_device_part(timeline, host)
    return device, Streams(device, number_streams(timeline.activities)[1]), find_events(timeline, host, device)


def waits(builder: TraceBuilder) -> HostWaits:
    timeline = Timeline(builder.trace())
    host = find_host_part(timeline)
    return find_host_waits(timeline, host, *seen(timeline, host))


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
    found = carry_over(known, np.repeat([0, 1, 2], 3))
    assert found.waits[1] == (Target(0, 7),)
    assert found.holds[2] == (Target(1, 0),)


def test_steps_of_unequal_build_tell_nothing_of_each_other() -> None:
    known = Targets({4: (Target(0, 1),)}, {})
    assert carry_over(known, np.array([0, 0, 0, 1, 1])) == known


def holds(builder: TraceBuilder) -> Dependencies:
    timeline = Timeline(builder.trace())
    host = find_host_part(timeline)
    return find_stream_waits(timeline, host, *seen(timeline, host))


def event(builder: TraceBuilder, at: float) -> TraceBuilder:
    """``a.wait_stream(b)``: an event is recorded on b, and a waits for it."""
    return builder.call("cudaEventRecord", at, 1).call("cudaStreamWaitEvent", at + 2, 1)


def test_the_next_launch_waits_for_what_the_other_stream_had_to_do() -> None:
    builder = TraceBuilder().launch("made", call=(0, 5), runs=(10, 50), stream=7)
    builder = event(builder, 10).launch("used", call=(20, 5), runs=(64, 10), stream=20).recording(0, 100)
    assert holds(builder) == {3: (Target(MAIN, 1),)}


def test_the_record_of_a_wait_counts_more_than_a_guess() -> None:
    builder = TraceBuilder().launch("first", call=(0, 5), runs=(10, 20), stream=7)
    builder.call("cudaEventRecord", 6, 1, correlation=50).launch("second", call=(8, 5), runs=(31, 40), stream=7)
    builder.call("cudaStreamWaitEvent", 14, 1, correlation=51)
    builder.launch("used", call=(20, 5), runs=(80, 10), stream=20).recording(0, 100)
    args = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 50, "correlation": 51, "stream": 20, "device": 0}
    sync = {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 14, "dur": 1}
    builder.events.append({**sync, "args": args})
    assert holds(builder) == {4: (Target(MAIN, 1),)}


def test_two_streams_may_wait_for_one() -> None:
    builder = TraceBuilder().launch("made", call=(0, 5), runs=(10, 50), stream=7)
    builder = event(event(builder, 10), 14)
    builder.launch("here", call=(20, 2), runs=(64, 10), stream=20).launch(
        "there", call=(24, 2), runs=(64, 10), stream=21
    )
    found = holds(builder.recording(0, 100))
    assert found == {5: (Target(MAIN, 4),), 6: (Target(MAIN, 4),)}


def test_one_stream_may_wait_for_two() -> None:
    builder = TraceBuilder().launch("used", call=(0, 1), runs=(1, 2), stream=7)
    builder.launch("here", call=(4, 2), runs=(10, 30), stream=20).launch("there", call=(8, 2), runs=(11, 40), stream=21)
    builder = event(event(builder, 12), 16).launch("used", call=(22, 5), runs=(55, 10), stream=7)
    (targets,) = holds(builder.recording(0, 100)).values()
    assert {target.stream for target in targets} == {1, 2}


def test_what_began_before_an_event_did_not_wait_for_it() -> None:
    builder = TraceBuilder().launch("made", call=(0, 5), runs=(10, 50), stream=7)
    builder = event(builder, 10).launch("used", call=(20, 5), runs=(30, 10), stream=20).recording(0, 100)
    assert holds(builder) == {}


def taking_turns(again: int) -> TraceBuilder:
    builder = TraceBuilder()
    for number in range(again):
        at = 40 * number
        builder.launch("one", call=(number * 4, 1), runs=(20 + at, 20), stream=7)
        builder.launch("other", call=(number * 4 + 2, 1), runs=(40 + at, 20), stream=20)
    return builder.recording(0, 400)


def test_streams_that_always_take_turns_are_ordered_by_the_default_stream() -> None:
    found = holds(taking_turns(4))
    assert found[1] == (Target(MAIN, NOW),)
    assert found[2] == (Target(SIDE, NOW),)


def test_taking_turns_once_is_no_order() -> None:
    assert holds(taking_turns(1)) == {}


def test_launches_without_a_wait_among_them_are_no_row_of_waits():
    nothing, launches = np.array([], dtype=np.int64), np.arange(3)
    for items in (nothing, launches):
        assert list(_waits_in_a_row(items, np.array([0, 0, 1]))) == []
    ((waits, behind),) = _waits_in_a_row(launches, np.array([0, -1, 1]))
    assert (waits, behind.tolist()) == ([1], [2])
