from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from syncscope.advice import (
    BY_OP,
    COPIES,
    DRAWN_ON_DEVICE,
    LAST_TO_HOST,
    LOADED,
    MADE_ON_DEVICE,
    MADE_ONCE,
    MOVED_WEIGHTS,
    NO_BATCH,
    NO_LOSS,
    PINNED_BEFORE,
    READ,
    READ_VALUE,
    SAVED,
    SMALL_TO_DEVICE,
    UNPINNED,
    VALUES_TO_HOST,
    WEIGHTS,
    Advice,
)
from syncscope.rules.base.ends import LAST, is_result
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import between_host_and_device, of_copies, to_objects
from syncscope.rules.base.program import moves_weights_once, name_copied
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.rules.blocking_copy import BlockingCopy
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.op_chains import reads_scalar
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Copies

HELD = ": it looks asynchronous, but the host sits in the call until the copy is staged"
READ_AT_ONCE = ": the value is read at once, so the host waits for it and for all work queued before it"
PARTLY = "; {held} of {calls} calls hold the host until the copy is staged, the others return before it begins"
ONE = "; one of {calls} calls holds the host until the copy is staged, the others return before it begins"
SOME_WAIT = "; the host waits for {waited} of {calls}, as another finding says, and {others}"
AT_ONCE = "; the driver took the bytes at once, so the host was not held here, as it would be by a larger copy"


ROUNDED_NS = 1000
"""Older traces have whole µs, so a call that ends this long after its copy began may have ended before."""

READS_VALUE = "aten::_local_scalar_dense|aten::item"
"""Ops that copy a value to read it. Where the trace holds no wait for it, only the copy shows it."""

WAITED = "waited"
"""Stands for a copy that a blocking copy's finding is about too: what to do is what that says."""
BLOCKING = BlockingCopy()


class PageableCopy(RankRule):
    """A copy from or to pageable host memory, also when `non_blocking=True` makes it look asynchronous.

    Why it costs: the device can only reach page-locked memory, so the driver copies through a staging buffer of its
    own, and the host sits inside the call until that is done. The copy is slower (one of 4 MB on an H200: 0.35 ms
    against 0.10 ms), it cannot overlap compute, and `non_blocking=True` changes nothing about it.

    Bad:
        for x in DataLoader(data):                      # pageable batches
            x = x.to("cuda", non_blocking=True)         # still blocks
        host = y.to("cpu")                              # a new pageable tensor each time

    Good:
        for x in DataLoader(data, pin_memory=True):     # pinned by a thread of the loader
            x = x.to("cuda", non_blocking=True)
        buffer.copy_(y, non_blocking=True)              # buffer pinned once, reused

    Fine:
        weights = torch.load(path).cuda()               # once

    The driver takes the bytes of a small copy to the device (up to 1 MiB on an H200) at once. With `non_blocking=True`
    such a copy delays nothing until it grows. The message says which it was.
    `x.pin_memory().to("cuda")` in the main thread costs the host a copy of its own (see CPY202).
    """

    code = "CPY201"
    name = "pageable-copy"
    severity = "warning"
    needs = ("runtime", "device")
    gated = True
    counted = True
    goes_with_others = True
    question = Intervention.COPY_ASYNCHRONOUSLY
    advice = (
        LAST_TO_HOST,
        *(replace(one, when=f"{WAITED} {one.when}") for one in BlockingCopy.advice if one is not LAST_TO_HOST),
        SAVED,
        LOADED,
        *BY_OP,
        replace(READ_VALUE, when=f"{NO_LOSS} {READS_VALUE}"),
        replace(READ, when=READS_VALUE),
        VALUES_TO_HOST,
        DRAWN_ON_DEVICE,
        MADE_ON_DEVICE,
        MADE_ONCE,
        *COPIES,
        replace(MOVED_WEIGHTS, when=f"HtoD {WEIGHTS}"),
        replace(SMALL_TO_DEVICE, when=f"HtoD {NO_BATCH}"),
        replace(UNPINNED, when=f"HtoD {PINNED_BEFORE}"),
        Advice(
            "HtoD",
            "Pin the source where that costs nothing: DataLoader(pin_memory=True), or a buffer pinned once and "
            "reused; then pass non_blocking=True. Pinning each batch in this thread only moves the cost.",
            before="loader = DataLoader(data)\nx = batch.to('cuda')",
            after="loader = DataLoader(data, pin_memory=True)\nx = batch.to('cuda', non_blocking=True)",
        ),
        Advice(
            "",
            "Copy into a buffer pinned once, buffer.copy_(t, non_blocking=True), and wait on an event before reading.",
            before="y.copy_(x, non_blocking=True)           # y is pageable",
            after="""
            pinned.copy_(x, non_blocking=True)   # made once with pin_memory=True
            ready.record()                       # ready.synchronize() before pinned is read
            """,
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, copies = inspection.timeline, inspection.timeline.copies
        pageable = between_host_and_device(copies) & (copies.memory == "pageable")
        occurrences = of_copies(copies.take(pageable & ~inspection.part_of_read(copies.wait)), timeline)
        rules = [inspection.rule_of_wait.get(wait) for wait in copies.wait[occurrences.copy].tolist()]
        waited = [WAITED if isinstance(rule, BlockingCopy) else "" for rule in rules]
        return self.hits(timeline, occurrences.replace(cause=to_objects(waited)))

    def names(self, group: Group) -> Iterator[str]:
        if all(cause == WAITED for cause in group.rows.cause):
            yield WAITED
            yield from BLOCKING.names(group)
            return
        yield from super().names(group)
        yield from name_copied(group)
        if is_result(group):
            yield LAST

    def severity_of(self, group: Group) -> Severity:
        return "note" if is_result(group) or moves_weights_once(group) else self.severity

    def claims_counted(self, counted: PlacedWait) -> bool:
        return counted.wait.pageable and counted.wait.direction is not None

    def why_unchecked(self, timeline: Timeline) -> str | None:
        copies = timeline.copies
        memory = copies.memory[between_host_and_device(copies)]
        if len(memory) and (memory == "").all():
            return "the trace does not say whether host memory is pinned (ROCm never does)"
        return super().why_unchecked(timeline)

    def message(self, group: Group) -> str:
        copies = group.timeline.copies.take(group.rows.copy)
        to_device = copies.direction[0] == "HtoD"
        route = "from pageable memory to the device" if to_device else "from the device into pageable memory"
        blocks = READ_AT_ONCE if reads_scalar(group.ops) and copies.wait[0] < 0 else _blocks(copies)
        last = "; nothing follows it in the trace" if is_result(group) else ""
        return f"{group.subject} copies {route}{blocks}{last}"


def _blocks(copies: Copies) -> str:
    """Whether the calls of copies hold the host, as far as no wait completes them."""
    alone = copies.take(np.flatnonzero(copies.wait < 0))
    if not len(alone):
        return ""
    held = (alone.launch < 0) | (alone.launch_end > alone.ts + ROUNDED_NS)
    if len(alone) < len(copies):
        more = "one call" if held.sum() == 1 else f"{int(held.sum())} calls"
        sits = f"sits in {more} more until the copy is staged"
        others = sits if held.any() else "the driver took the bytes of the others at once"
        return SOME_WAIT.format(waited=len(copies) - len(alone), calls=len(copies), others=others)
    if held.all():
        return HELD
    partly = ONE if held.sum() == 1 else PARTLY
    return partly.format(calls=len(held), held=int(held.sum())) if held.any() else AT_ONCE
