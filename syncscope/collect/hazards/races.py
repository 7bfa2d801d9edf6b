"""The races found so far, counted by the two lines that race."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from syncscope.collect.annotations import expectation
from syncscope.collect.hazards.memory import Span
from syncscope.collect.hazards.shadow import Access
from syncscope.schema.recording import (
    CROSS_STREAM_RACE,
    OVERWRITE_IN_FLIGHT,
    READ_BEFORE_ARRIVAL,
    HazardAccess,
    HazardEvent,
    HazardRule,
)

Direction = Literal["HtoD", "DtoH"]

_serials = itertools.count()


@dataclass(slots=True)
class Call:
    """One run of an operator, or of another function that reads."""

    name: str
    stack: int
    tid: int
    direction: Direction | None = None
    """The direction of a copy between host and device."""
    raced_with: dict[int, int] = field(default_factory=dict)
    """Stack of a call that raced with this one → that call's serial number."""
    serial: int = field(default_factory=lambda: next(_serials))


class Races:
    """Collects races. A call that races with an earlier one counts once, however many tensors the two share and however
    often the same line accesses the same copy again."""

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], HazardEvent] = {}
        self._streams: dict[int, str] = {}

    def take(self) -> tuple[HazardEvent, ...]:
        """The races so far, in the order they were first seen. Empties the list."""
        events, self._events = self._events, {}
        return tuple(events.values())

    def by_host(self, call: Call, span: Span, writes: bool, earlier: Access[Call]) -> None:
        """Add a race: the host accesses bytes that a stream may still be accessing."""
        self._add(OVERWRITE_IN_FLIGHT if writes else READ_BEFORE_ARRIVAL, call, None, span, writes, earlier)

    def by_stream(self, call: Call, stream: int, span: Span, writes: bool, earlier: Access[Call]) -> None:
        """Add a race: a stream accesses bytes that another stream may still be accessing."""
        self._add(CROSS_STREAM_RACE, call, stream, span, writes, earlier)

    def _add(
        self, rule: HazardRule, call: Call, stream: int | None, span: Span, writes: bool, earlier: Access[Call]
    ) -> None:
        before, reason = earlier.what, expectation.get()
        again = call.stack in before.raced_with
        if again and before.raced_with[call.stack] != call.serial:
            return
        before.raced_with[call.stack] = call.serial
        key = (rule, call.stack, before.stack, reason)
        event = self._events.get(key) or HazardEvent(
            rule=rule,
            access=self._access(call, stream, writes),
            earlier=self._access(before, earlier.stream, earlier.writes),
            tid=call.tid,
            count=0,
            bytes=0,
            expected=reason,
        )
        shared = min(span.stop, earlier.span.stop) - max(span.start, earlier.span.start)
        count = event.count if again else event.count + 1
        self._events[key] = msgspec.structs.replace(event, count=count, bytes=event.bytes + shared)

    def _access(self, call: Call, stream: int | None, writes: bool) -> HazardAccess:
        name = None if stream is None else self._name(stream)
        return HazardAccess(stack=call.stack, op=call.name, writes=writes, stream=name, direction=call.direction)

    def _name(self, stream: int) -> str:
        """Number streams in the order in which they are first named."""
        if stream == 0:
            return "the default stream"
        return self._streams.setdefault(stream, f"stream {len(self._streams) + 1}")
