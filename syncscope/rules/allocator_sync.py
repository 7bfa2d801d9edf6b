from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from syncscope.advice import UNCACHED, Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, to_objects
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.allocations import (
    asks_for_memory,
    find_owners,
    given_back_outside_ops,
    in_empty_cache,
    is_empty_cache,
    is_uncached,
    number_runs,
)
from syncscope.timeline.intervals import Bools
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits
from syncscope.timeline.warm_up import CAPTURE
from syncscope.trace.sets import different

REGULAR = 0.5
"""If at least this share of the steps asks the driver for memory, the program does so regularly, and not in warm-up."""

LITTLE = 0.01
"""In a trace without steps, memory that is given back is a note if that takes a smaller share of what it holds."""


class AllocatorSync(WaitRule):
    """A warm step gets memory from the driver, or gives it back.

    Why it costs: PyTorch keeps the memory it has and hands it out again, so a warm step asks the driver for none.
    `cudaFree` waits until the device has finished everything, and `cudaMalloc` takes 0.1 ms or more. Both come back
    every step after `torch.cuda.empty_cache()`, when memory is short (the allocator then gives back all it holds and
    tries again), and when shapes keep growing.

    Bad:
        for batch in loader:
            train(batch)
            torch.cuda.empty_cache()       # waits, and the next step asks for the memory again

    Good:
        for batch in loader:
            train(batch)                   # shapes padded to a few sizes
        torch.cuda.empty_cache()           # once, before something else needs the memory

    Fine:
        the first steps, while the allocator warms up

    What a step asks for again is counted at the line that gave it away. Where nothing was given away, there is one
    finding a trace. It is a note where fewer than half of the steps ask for memory. In a trace without steps a warm
    step cannot be told from the first, so the rule sees only memory that is given back outside of any op, as
    `torch.cuda.empty_cache()` does.
    """

    code = "SYN106"
    name = "allocator-sync"
    severity = "warning"
    needs = ("runtime",)
    gated = False
    counted = True
    question = Intervention.REMOVE_ALLOCATION
    advice = (
        Advice(
            "empty_cache",
            "Leave empty_cache() out of the steps: it gives back the memory that the next step asks for.",
            before="optimizer.step()\ntorch.cuda.empty_cache()",
            after="optimizer.step()",
        ),
        Advice(
            UNCACHED,
            "The caching allocator is off, so the driver allocates and frees every tensor: leave out "
            "PYTORCH_NO_CUDA_MEMORY_CACHING.",
        ),
        Advice(
            "",
            "Keep shapes the same from step to step (pad, or sort into buckets), leave the allocator headroom, or try "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        ),
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        places = timeline.places
        return asks_for_memory(waits, places) | in_empty_cache(waits, places)

    def claims_counted(self, counted: PlacedWait) -> bool:
        return is_empty_cache(counted.place)

    def occurrences(self, waits: Waits, timeline: Timeline) -> Occurrences:
        occurrences, emptied = super().occurrences(waits, timeline), in_empty_cache(waits, timeline.places)
        if not len(timeline.steps):
            emptied |= given_back_outside_ops(waits, timeline)
            occurrences = occurrences.take(emptied)
            waits, emptied = waits.take(emptied), emptied[emptied]
        owner, unit = find_owners(emptied), number_runs(waits, timeline.calls)
        # What the capture of a graph gave away is asked for again because of it: no line of a warm step did that.
        capturing = timeline.warming_up(waits.ts, waits.end, waits.tid) == CAPTURE
        because = ~emptied & (owner >= 0) & np.append(capturing, False)[owner]
        place = to_objects(occurrences.place[row] if row >= 0 else NOWHERE for row in owner.tolist())
        owned = np.where(owner >= 0, np.append(unit, -1)[owner], unit)
        nothing = Occurrences.at([NOWHERE] * len(occurrences))
        occurrences = occurrences.replace(place=place, ops=nothing.ops, sort=nothing.sort, unit=owned)
        # What was given away comes first: it names the finding.
        order = np.argsort(~emptied, kind="stable")
        return occurrences.take(order[~because[order]])

    def reports(self, group: Group) -> bool:
        return len(group.inside) > 0

    def severity_of(self, group: Group) -> Severity:
        if not group.steps:
            calls = group.timeline.calls
            seen = int(calls.end.max() - calls.ts.min())
            return self.severity if (group.total("stall") or 0) >= LITTLE * seen else "note"
        regular = group.steps > 1 and len(different(group.inside.step)) >= REGULAR * group.steps
        return self.severity if regular else "note"

    def why_unchecked(self, timeline: Timeline) -> str | None:
        emptied = in_empty_cache(timeline.waits, timeline.places) | given_back_outside_ops(timeline.waits, timeline)
        return super().why_unchecked(timeline) or (None if emptied.any() else _why_unsure(timeline))

    def why_partial(self, timeline: Timeline) -> str | None:
        return _why_unsure(timeline)

    def names(self, group: Group) -> Iterator[str]:
        yield from super().names(group)
        if not group.steps:
            yield "empty_cache"
        if is_uncached(group.timeline.waits, group.timeline.calls):
            yield UNCACHED

    def message(self, group: Group) -> str:
        calls = ", ".join(f"{count} × {name}" for name, count in Counter(group.rows.call).most_common())
        if group.place.site is not None:
            who = f"{group.subject} gives memory back to the driver"
        elif not group.steps:
            who = "the program gives memory back to the driver outside of any op, as torch.cuda.empty_cache() does"
        else:
            who = "the allocator asks the driver for memory"
        when = " in warm steps" if group.steps and not group.warm_up else ""
        return f"{who}{when} ({calls}), which may wait for the device"


def _why_unsure(timeline: Timeline) -> str | None:
    """Why not all that asks for memory can be judged."""
    kind = timeline.waits.kind
    if not len(timeline.steps) and ((kind == "alloc") | (kind == "free")).any():
        return "the trace has no steps, so a warm one cannot be told from the first"
    return None
