"""What one stream waits for on another, from the device's records or from when things began."""

from syncscope.estimate.chains import host_rows
from syncscope.estimate.device import activities
from syncscope.estimate.holds import find_holds
from syncscope.estimate.targets import NOW, Target, Wanted
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

MAIN, SIDE = 0, 1
"""Numbers of the streams 7 and 20, in the order of their first activity."""


def holds(builder: TraceBuilder) -> Wanted:
    timeline = Timeline(builder.trace())
    host = host_rows(timeline)
    return find_holds(timeline, host, activities(timeline, host))


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
