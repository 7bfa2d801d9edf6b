from __future__ import annotations

from syncscope.timeline import Timeline
from syncscope.timeline.tables import Pins
from tests.builders import TraceBuilder

US = 1000
PIN = ("train.py", 8, "step", "x.pin_memory()")


def pin(builder: TraceBuilder, start: float) -> TraceBuilder:
    return builder.op("aten::pin_memory", start, 50).op("aten::_pin_memory", start + 2, 46)


def pins(builder: TraceBuilder) -> Pins:
    return Timeline(builder.trace()).pins


def test_a_pinning_feeds_the_copy_that_follows_at_once():
    found = pins(pin(TraceBuilder().step(0, 200), 10).copy("HtoD", call=(70, 5), runs=(80, 30)))
    assert found.copy.tolist() == [0]
    assert (found.dur[0], found.step[0]) == (50 * US, 0)


def test_a_pinning_that_other_work_follows_feeds_nothing():
    builder = pin(TraceBuilder(), 10).launch("k", call=(65, 2), runs=(70, 5))
    assert pins(builder.copy("HtoD", call=(70, 5), runs=(80, 30))).copy.tolist() == [-1]


def test_a_pinning_in_a_loaders_thread_feeds_nothing():
    builder = pin(TraceBuilder().on(5000), 10).on(4000).copy("HtoD", call=(70, 5), runs=(80, 30))
    assert pins(builder).copy.tolist() == [-1]


def test_two_pinnings_in_a_row_feed_the_two_copies_that_follow():
    builder = pin(pin(TraceBuilder(), 10), 70)
    builder.copy("HtoD", call=(130, 5), runs=(140, 5)).copy("HtoD", call=(150, 5), runs=(160, 5))
    assert pins(builder).copy.tolist() == [0, 1]


def test_a_recorded_call_and_its_ops_are_one_pinning():
    builder = pin(TraceBuilder().recording(0, 300).entry("Tensor.pin_memory", 8, 62, PIN), 10)
    view = Timeline(builder.copy("HtoD", call=(70, 5), runs=(80, 30)).trace())
    assert len(view.pins) == 1
    assert view.places[view.pins.place[0]].source == "hook"


def test_a_recorded_call_is_enough_where_ops_are_missing():
    builder = TraceBuilder().recording(0, 300).entry("Tensor.pin_memory", 8, 62, PIN)
    assert pins(builder.copy("HtoD", call=(70, 5), runs=(80, 30))).copy.tolist() == [0]
