"""Races, against a brute-force search through everything that is ordered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from syncscope.collect.hazards.memory import Span
from syncscope.collect.hazards.shadow import MOST, Access, ShadowMemory
from syncscope.collect.hazards.vector_clocks import Clocks

STREAMS, EVENTS, BLOCKS, BYTES = range(3), range(3), range(2), 6

ranges = st.tuples(st.integers(0, BYTES - 1), st.integers(1, BYTES)).map(lambda r: Span(r[0], min(r[0] + r[1], BYTES)))
accesses = st.tuples(st.sampled_from(BLOCKS), ranges, st.booleans())
actions = st.one_of(
    st.tuples(st.just("work"), st.sampled_from(STREAMS), accesses),
    st.tuples(st.just("work"), st.sampled_from(STREAMS), accesses),
    st.tuples(st.just("host"), accesses),
    st.tuples(st.just("record"), st.sampled_from(EVENTS), st.sampled_from(STREAMS)),
    st.tuples(st.just("wait"), st.sampled_from(STREAMS), st.sampled_from(EVENTS)),
    st.tuples(st.just("host waits for event"), st.sampled_from(EVENTS)),
    st.tuples(st.just("host waits for stream"), st.sampled_from(STREAMS)),
    st.tuples(st.just("host waits for all")),
)


@dataclass
class Order:
    """All that happens as a graph: an edge from each thing to those that begin after its end."""

    after: dict[int, set[int]] = field(default_factory=dict)
    host: int = 0
    last: dict[int, int] = field(default_factory=dict)
    recorded: dict[int, int] = field(default_factory=dict)
    nodes: int = 0

    def node(self, *before: int | None) -> int:
        self.nodes += 1
        for other in before:
            if other is not None:
                self.after.setdefault(other, set()).add(self.nodes)
        return self.nodes

    def on_host(self, *before: int | None) -> int:
        self.host = self.node(self.host, *before)
        return self.host

    def on_stream(self, stream: int, *before: int | None) -> int:
        """The host launches something on a stream."""
        self.last[stream] = self.node(self.on_host(), self.last.get(stream), *before)
        return self.last[stream]

    def before(self, one: int, other: int) -> bool:
        reached, edge = {one}, [one]
        while edge:
            for following in self.after.get(edge.pop(), ()):
                if following not in reached:
                    reached.add(following)
                    edge.append(following)
        return other in reached


class Both:
    """Runs a schedule through the detector and through the graph."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.shadow: ShadowMemory[int] = ShadowMemory(self.clocks)
        self.order = Order()
        self.done: list[tuple[int, Any]] = []
        """Accesses of streams: their node in the graph, what they touch."""

    def run(self, schedule: list[Any]) -> Iterator[tuple[set[int], set[int]]]:
        """For each access, the nodes that it races with: as detected, and in truth."""
        for kind, *rest in schedule:
            if kind == "work":
                yield self.work(*rest)
            elif kind == "host":
                yield self.touch(*rest)
            else:
                self.wait(kind, *rest)

    def work(self, stream: int, access: Any) -> tuple[set[int], set[int]]:
        block, span, writes = access
        tick = self.clocks.launch(stream)
        found = self.shadow.races(block, stream, span, writes)
        node = self.order.on_stream(stream)
        truth = self.truth(node, access)
        self.shadow.add(block, Access(stream, tick, span, writes, node))
        self.done.append((node, access))
        return {race.what for race in found}, truth

    def touch(self, access: Any) -> tuple[set[int], set[int]]:
        block, span, writes = access
        found = self.shadow.races_with_host(block, span, writes)
        return {race.what for race in found}, self.truth(self.order.on_host(), access)

    def truth(self, node: int, access: Any) -> set[int]:
        block, span, writes = access
        return {
            other
            for other, (its_block, its_span, its_writes) in self.done
            if its_block == block
            and (writes or its_writes)
            and set(range(*its_span[:2])) & set(range(*span[:2]))
            and not self.order.before(other, node)
        }

    def wait(self, kind: str, *which: int) -> None:
        order, clocks = self.order, self.clocks
        if kind == "record":
            event, stream = which
            order.recorded[event] = order.on_stream(stream)
            clocks.record(event, stream)
        elif kind == "wait":
            stream, event = which
            order.on_stream(stream, order.recorded.get(event))
            clocks.wait(stream, event)
        elif kind == "host waits for event":
            order.on_host(order.recorded.get(which[0]))
            clocks.host_waits_for_event(which[0])
        elif kind == "host waits for stream":
            order.on_host(order.last.get(which[0]))
            clocks.host_waits_for_stream(which[0])
        else:
            order.on_host(*order.last.values())
            clocks.host_waits_for_all()


@settings(max_examples=600, deadline=None)
@given(st.lists(actions, max_size=40))
def test_an_access_is_reported_just_when_something_unordered_conflicts_with_it(schedule: list[Any]) -> None:
    for found, truth in Both().run(schedule):
        assert found <= truth  # everything reported is a race
        assert bool(found) == bool(truth)  # and no racing access goes free


def work(shadow: ShadowMemory[str], clocks: Clocks, stream: int, span: Span, *, writes: bool, what: str) -> list[str]:
    tick = clocks.launch(stream)
    found = shadow.races(1, stream, span, writes)
    shadow.add(1, Access(stream, tick, span, writes, what))
    return [access.what for access in found]


def test_a_write_stands_for_the_accesses_it_came_after() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    whole = Span(0, 10)
    for _ in range(5):
        work(shadow, clocks, 0, whole, writes=False, what="read")
    work(shadow, clocks, 0, whole, writes=True, what="write")
    assert work(shadow, clocks, 1, whole, writes=False, what="other") == ["write"]


def test_a_read_does_not_hide_the_write_before_it() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    work(shadow, clocks, 0, Span(0, 10), writes=True, what="write")
    work(shadow, clocks, 0, Span(0, 10), writes=False, what="read")
    assert work(shadow, clocks, 1, Span(0, 10), writes=False, what="other") == ["write"]


def test_reads_on_two_streams_do_not_race() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    work(shadow, clocks, 0, Span(0, 10), writes=False, what="read")
    assert work(shadow, clocks, 1, Span(0, 10), writes=False, what="other") == []


def test_a_freed_block_is_forgotten() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    work(shadow, clocks, 0, Span(0, 10), writes=True, what="write")
    shadow.drop(1)
    assert shadow.races_with_host(1, Span(0, 10), writes=True) == []


def test_what_the_host_waited_for_takes_no_room() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    work(shadow, clocks, 0, Span(0, 10), writes=True, what="write")
    clocks.host_waits_for_stream(0)
    assert shadow.races_with_host(1, Span(0, 10), writes=True) == []
    assert len(shadow) == 0


def test_a_block_keeps_a_bounded_number_of_accesses() -> None:
    clocks = Clocks()
    shadow: ShadowMemory[str] = ShadowMemory(clocks)
    for start in range(2 * MOST):
        work(shadow, clocks, 0, Span(start, start + 1), writes=True, what=str(start))
    found = shadow.races_with_host(1, Span(0, 2 * MOST), writes=False)
    assert [access.what for access in found] == [str(start) for start in range(MOST, 2 * MOST)]
