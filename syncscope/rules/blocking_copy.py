from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from syncscope.advice import (
    BY_OP,
    COPIES,
    COPY_TO_DEVICE,
    COPY_TO_HOST,
    DRAWN_ON_DEVICE,
    EITHER_WAY,
    LAST_TO_HOST,
    LOADED,
    MADE_ON_DEVICE,
    MADE_ONCE,
    MOVED_WEIGHTS,
    PINNED_BEFORE,
    SAVED,
    SMALL_TO_DEVICE,
    UNPINNED,
    VALUES_TO_HOST,
    Advice,
)
from syncscope.rules.base.ends import LAST, is_alone, is_result
from syncscope.rules.base.groups import Group
from syncscope.rules.base.program import moves_weights_once, name_copied
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.op_chains import in_library, matching, only_copies
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits


class BlockingCopy(WaitRule):
    """A copy between host and device that the host waits for.

    Why it costs: `.to`, `.cuda`, `.cpu`, `.tolist` and `torch.tensor(..., device="cuda")` put the copy on the stream
    and wait for the stream, so for all work queued before it as well. Nothing is launched in the meantime.

    Bad:
        x = x.to("cuda")                       # in the training loop
        mask = torch.tensor([0, 1], device="cuda")
        y = x[cpu_index]                       # ships the index, and waits

    Good:
        x = x.to("cuda", non_blocking=True)    # from pinned memory: DataLoader(pin_memory=True)
        mask = MASK                            # made once
        host = y.to("cpu", non_blocking=True)  # read after an event has been waited for

    Fine:
        model.cuda()                           # once, before the loop

    From pageable memory `non_blocking=True` still blocks (see CPY201). Pinning in the main thread just before the copy
    costs the host a copy of its own (see CPY202). Weights that are moved once are a note, as is the last copy to the
    host of a trace without steps, or of one step: nothing follows it. One that is all a trace asks of the device is a
    warning. Where the device is the bottleneck, the wait itself costs little.
    """

    code = "SYN101"
    name = "blocking-copy"
    severity = "error"
    needs = ("runtime",)
    gated = True
    counted = True
    question = Intervention.COPY_ASYNCHRONOUSLY
    advice = (
        LAST_TO_HOST,
        SAVED,
        LOADED,
        *BY_OP,
        VALUES_TO_HOST,
        DRAWN_ON_DEVICE,
        MADE_ON_DEVICE,
        MADE_ONCE,
        *COPIES,
        COPY_TO_HOST,
        Advice(
            "pinned",
            "Pass non_blocking=True: the source is pinned already.",
            before="x = pinned.to('cuda')",
            after="x = pinned.to('cuda', non_blocking=True)",
            argument="non_blocking=True",
        ),
        MOVED_WEIGHTS,
        EITHER_WAY,
        SMALL_TO_DEVICE,
        replace(UNPINNED, when=f"HtoD pageable {PINNED_BEFORE}"),
        COPY_TO_DEVICE,
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        copies = (waits.kind == "stream") | (waits.kind == "copy")
        bare = np.array([not ops for ops in waits.ops], dtype=bool)
        completes = matching(waits, only_copies) | ((waits.copy_call >= 0) & bare)
        claimed: Bools = copies & completes & ~in_library(waits, timeline.places)
        return claimed

    def claims_counted(self, counted: PlacedWait) -> bool:
        copies = counted.wait.direction is not None or only_copies(counted.ops)
        return copies and not counted.wait.non_blocking

    def names(self, group: Group) -> Iterator[str]:
        yield from super().names(group)
        yield from name_copied(group)
        if is_result(group):
            yield LAST
        if group.timeline.device is None and not _copied(group)[0] and group.place.site is None:
            yield "unseen"

    def severity_of(self, group: Group) -> Severity:
        if is_result(group) or moves_weights_once(group):
            return "note"
        severity = super().severity_of(group)
        return "warning" if severity == "error" and is_alone(group) else severity

    def message(self, group: Group) -> str:
        direction, memory = _copied(group)
        route = {"HtoD": " to the device", "DtoH": " to the host"}.get(direction, "")
        source = f" ({memory} memory)" if memory else ""
        unknown = not group.ops and group.place.site is None
        last = "; nothing follows it in the trace" if is_result(group) else ""
        which = "; the trace does not say which op did it" if unknown else ""
        return (
            f"{group.subject} copies{route}{source} and waits for the copy and all work queued before it{which}{last}"
        )


def _copied(group: Group) -> tuple[str, str]:
    """Direction and host memory of the copies, from the first that the trace holds; ``""`` where unknown."""
    known = group.rows.copy[group.rows.copy >= 0]
    if not len(known):
        return "", ""
    copies = group.timeline.copies
    return str(copies.direction[known[0]]), str(copies.memory[known[0]])
