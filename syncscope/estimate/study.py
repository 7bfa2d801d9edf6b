"""One trace as what fixing its findings changes: the program, and what the questions about it share."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from syncscope.estimate.edits import Edit, Edits, Question
from syncscope.estimate.host import recorded_steps
from syncscope.estimate.items import Items
from syncscope.estimate.profiler_cost import without_profiler
from syncscope.estimate.program import Program
from syncscope.rules import Hit
from syncscope.timeline import Timeline
from syncscope.timeline.copies import HOST_COPIES
from syncscope.timeline.intervals import Ints
from syncscope.timeline.tables import Copies, Objects
from syncscope.trace.quantiles import median

MEASURED_RATES = {"H100": 55.0, "H200": 55.0}
"""GB/s between pinned memory and a device, either way, by a part of its name. That of an H100 is by
traces that others recorded."""

USUAL_RATE = 25.0
"""GB/s where nothing was measured: what PCIe 4.0 carries."""

COPY_START = 1_500.0
"""Nanoseconds that a copy takes however small it is."""

LARGE_COPY = 1_000_000
"""The rate of a link is measured on copies of at least this many bytes."""

PEERS = "the other ranks gain what this one does, so a collective lasts as long as it did"


class Rate(msgspec.Struct, frozen=True):
    """How fast copies from or to pinned memory are."""

    bytes_per_ns: float
    assumed: str | None
    """What was assumed because the trace shows no such copy; ``None`` where it shows one."""

    def ns(self, size: int) -> float:
        """How long a copy of ``size`` bytes takes, to a tenth of a microsecond."""
        return round(COPY_START + size / self.bytes_per_ns, -2)


def pinned_rate(timeline: Timeline, direction: str) -> Rate:
    """The rate of a direction (``HtoD``, ``DtoH``): from the trace where it holds such copies, else as measured."""
    copies = timeline.copies
    shown = (copies.direction == direction) & (copies.memory == "pinned") & (copies.bytes >= LARGE_COPY)
    if shown.any():
        rates = copies.bytes[shown] / np.maximum(copies.dur[shown] - COPY_START, 1.0)
        return Rate(median(rates), None)
    name = timeline.device_name or ""
    known = next((rate for part, rate in MEASURED_RATES.items() if part in name), None)
    what = f"pinned copies are taken to run at {known or USUAL_RATE:.0f} GB/s"
    return Rate(known or USUAL_RATE, f"{what}, as measured on {name}" if known else f"{what}: the trace has none")


class Study(msgspec.Struct, frozen=True, dict=True):
    """One trace with its program, and what the interventions in it share."""

    timeline: Timeline
    program: Program
    by_cause: dict[str, Question] = msgspec.field(default_factory=dict)
    """The questions about causes of idle time that were asked so far."""
    _rates: dict[str, Rate] = msgspec.field(default_factory=dict)

    def rate(self, direction: str) -> Rate:
        """The rate of pinned copies in a direction (``HtoD``, ``DtoH``)."""
        if direction not in self._rates:
            self._rates[direction] = pinned_rate(self.timeline, direction)
        return self._rates[direction]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the interventions tried so far assume."""
        peers = (PEERS,) if len(self.timeline.collectives) else ()
        return tuple(dict.fromkeys(rate.assumed for rate in self._rates.values() if rate.assumed)) + peers

    def items(self, calls: Ints) -> list[int]:
        """The items of rows of ``Timeline.calls``, those inside the steps, ascending."""
        items = self.program.items_of(calls)
        return sorted(items[items >= 0].tolist())

    @property
    def base(self) -> int:
        """When the program begins, ns since the trace's base."""
        return int(recorded_steps(self.timeline).ts.min())

    @cached_property
    def names(self) -> Objects:
        """The name of what each item launched on the device, empty for nothing (items,)."""
        activities = self.timeline.activities
        item = self.program.items_of(activities.launch)
        names = np.full(len(self.program.items), "", dtype=object)
        names[item[item >= 0]] = activities.name[item >= 0]
        return names

    @cached_property
    def usual_dispatch(self) -> float:
        """The host's work before a kernel that the program's thread launches, the median; ns."""
        items = self.program.items
        work = items.pre[items.kernel & (items.chain == 0)]
        return median(work) if len(work) else 0.0

    @cached_property
    def without_profiler(self) -> Items:
        """The program's items without the profiler's share of the host's work."""
        return without_profiler(self.program.items)

    def waits(self, hit: Hit) -> list[int]:
        """The items of the waits that a finding speaks of."""
        return self.items(self.timeline.waits.call[sorted(hit.waits)])

    def calls_before(self, item: int) -> list[int]:
        """The items of the same thread right before one, in order, that launch nothing and wait for nothing."""
        items = self.program.items
        found: list[int] = []
        for before in range(item - 1, -1, -1):
            if items.chain[before] == items.chain[item]:
                if items.mark[before] or items.wait[before] or items.stream[before] >= 0:
                    break
                found.append(before)
        return found[::-1]

    def copies(self, hit: Hit) -> tuple[Copies, Ints]:
        """The copies that a finding speaks of, those of its waits too, and the item that launched each; only those
        launched inside the steps."""
        waits = self.timeline.waits.copy[sorted(hit.waits)]
        copies = self.timeline.copies.take(sorted({*hit.copies, *waits[waits >= 0].tolist()}))
        item = self.program.items_of(copies.launch)
        return copies.take(item >= 0), item[item >= 0]

    def completing(self, copies: Copies) -> list[int]:
        """The items of the waits that complete some copies."""
        return self.items(self.timeline.waits.call[copies.wait[copies.wait >= 0]])

    def copy_freely(self, copies: Copies) -> Edits:
        """The edits by which copies inside the steps are from and to pinned memory, and nothing waits for them."""
        item = self.program.items_of(copies.launch)
        copies, item = copies.take(item >= 0), item[item >= 0]
        edits = {waiting: Edit(free=True) for waiting in self.completing(copies)}
        for number, direction, memory, size in zip(
            item.tolist(), copies.direction, copies.memory, copies.bytes.tolist(), strict=True
        ):
            faster = self.rate(direction).ns(size) if memory == "pageable" and direction in HOST_COPIES else np.inf
            edits[number] = Edit(free=True, dur=faster)
        return edits
