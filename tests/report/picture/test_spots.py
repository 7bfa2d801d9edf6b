"""Which findings the waits and copies of a picture name, and in which order."""

from __future__ import annotations

import numpy as np

from syncscope.report.picture.spots import Spots
from syncscope.rules import Hit, find
from syncscope.timeline import Timeline
from tests.builders import FrameSpec, TraceBuilder

USER: FrameSpec = ("train.py", 5, "step", "log(loss)")


def spots_of(builder: TraceBuilder) -> tuple[Spots, list[Hit]]:
    timeline = Timeline(builder.trace())
    found, _ = find(timeline)
    return Spots(timeline, found), found


def rules(spots: Spots, found: list[Hit], number: int) -> list[str]:
    return [found[finding].finding.rule for finding in spots.all[number].findings]


def read(builder: TraceBuilder, start: float, *stack: FrameSpec) -> TraceBuilder:
    builder.op("aten::item", start, 50).copy("DtoH", call=(start + 2, 4), runs=(start + 8, 2), memory="pinned", bytes=4)
    return builder.stream_sync(start + 7, 40).warning(start + 55, *stack)


def blocking_copy() -> TraceBuilder:
    builder = TraceBuilder().recording(0, 1000).op("aten::copy_", 100, 700)
    builder.copy("HtoD", call=(110, 300), runs=(115, 280), memory="pageable", bytes=1 << 22)
    return builder.stream_sync(420, 300).warning(810, ("train.py", 9, "step", 'x.to("cuda")'))


def test_two_findings_at_one_line_keep_their_own_waits() -> None:
    builder = TraceBuilder().recording(0, 200)
    read(builder, 10, USER, ("<site-packages>/lib/meter.py", 88, "update", "a.item()"))
    read(builder, 100, USER, ("<site-packages>/lib/meter.py", 90, "update", "b.item()"))
    spots, found = spots_of(builder)
    at = [found[spots.all[spot].findings[0]].finding.at for spot in spots.of_waits().tolist()]
    assert [frame and frame.line for frame in at] == [88, 90]
    assert [(spot.file, spot.line) for spot in spots.all] == [("train.py", 5)] * 2


def test_a_wait_names_its_own_finding_first_and_its_copy_the_copys() -> None:
    spots, found = spots_of(blocking_copy())
    first = np.array([0])
    (wait,), (copy,), (call,) = spots.of_waits(), spots.of_copies(first), spots.of_copies(first, waits_first=True)
    assert rules(spots, found, wait) == ["SYN101", "CPY201", "OVL301"]
    assert rules(spots, found, copy) == ["CPY201", "OVL301", "SYN101"]
    assert rules(spots, found, call) == ["SYN101", "CPY201", "OVL301"]


def test_a_wait_outside_the_steps_names_the_finding_too() -> None:
    builder = TraceBuilder().recording(0, 200)
    for start in (10, 300):
        read(builder, start, USER)
    spots, found = spots_of(builder)
    assert [rules(spots, found, spot) for spot in spots.of_waits().tolist()] == [["SYN102"]] * 2
    assert found[0].finding.count == 1


def test_what_no_rule_speaks_of_names_nothing() -> None:
    builder = TraceBuilder().recording(0, 100).launch("gemm", call=(1, 2), runs=(10, 80), stream=7)
    spots, _ = spots_of(builder.copy("HtoD", call=(5, 2), runs=(20, 10), memory="pinned", bytes=64, stream=9))
    assert [spots.all[spot].findings for spot in spots.of_copies(np.array([0])).tolist()] == [()]
