from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscope.advice import (
    PYTORCH_CODE,
    READ,
    READ_CHOICE,
    READ_IN_EVALUATION,
    READ_IN_INFERENCE,
    READ_MANY,
    READ_SELDOM,
    READ_TOGETHER,
    READ_TRUTH,
    READ_VALUE,
    READS,
    SCALER_STEP,
    SHAPES,
)
from syncscope.rules.base.groups import MANY, Group
from syncscope.rules.base.in_a_row import are_in_a_row
from syncscope.rules.base.occurrences import Occurrences, to_objects
from syncscope.rules.base.program import name_inference, recorded_kind
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.op_chains import in_library, matching, ops_of, reads_scalar
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.scalar_reads import brings_value, reads_scaler
from syncscope.timeline.tables import Waits


class ScalarRead(WaitRule):
    """One value is read from the device, and the host waits for it.

    Why it costs: the value is known only when everything queued before it has run. Until then the host launches
    nothing, and afterwards the queue is empty. `.item()`, `float(t)`, `int(t)`, `bool(t)`, `if t:`, f-strings, and
    every op that looks at a value to decide something (`equal`, `allclose`, `one_hot` without classes, checks of
    linalg, `GradScaler.step`) end in the same read of a few bytes.

    Bad:
        total += loss.item()                 # every step
        if torch.isnan(loss): break

    Good:
        total += loss.detach()               # stays on the device
        if step % 100 == 0:
            print(total.item())              # one wait in a hundred steps
        bad |= torch.isnan(loss)             # looked at once an epoch

    Fine:
        x.shape[0], x.numel()                # known on the host
        loss.item()                          # after the last step

    A step bound by the device loses little by the wait itself. The saving says so where it is known.
    """

    code = "SYN102"
    name = "scalar-read"
    severity = "error"
    needs = ("runtime", "cpu_op")
    gated = True
    counted = True
    question = Intervention.REMOVE_READ
    brings_copy = True
    advice = (
        *PYTORCH_CODE, *SHAPES, msgspec.structs.replace(READ_TOGETHER, when=f"[] aten::item {READ_MANY}"), *READS,
        READ_TRUTH, READ_TOGETHER, READ_CHOICE, READ_SELDOM, READ_IN_INFERENCE, READ_IN_EVALUATION, READ_VALUE, READ,
    )  # fmt: skip

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        named = matching(waits, reads_scalar) & ~in_library(waits, timeline.places)
        claimed: Bools = named | brings_value(waits, timeline.copies, timeline.places)
        return claimed

    def occurrences(self, waits: Waits, timeline: Timeline) -> Occurrences:
        occurrences = super().occurrences(waits, timeline)
        unseen = np.array([not place.chain for place in occurrences.place], dtype=bool)
        scaler = reads_scaler(waits, timeline.ops) & unseen
        chains = zip(occurrences.ops, scaler.tolist(), strict=True)
        return occurrences.replace(ops=to_objects((SCALER_STEP, *ops) if of else ops for ops, of in chains))

    def claims_counted(self, counted: PlacedWait) -> bool:
        return reads_scalar(counted.ops)

    def names(self, group: Group) -> Iterator[str]:
        yield from super().names(group)
        if (group.steps and len(group.inside) >= MANY * group.steps) or are_in_a_row(group):
            yield READ_MANY
        yield from name_inference(group.timeline, recorded_kind(group.timeline))

    def message(self, group: Group) -> str:
        if not group.ops and group.place.source != "hook":
            return (
                f"{group.subject} waits for a copy of {group.rows.bytes.max()} bytes to pinned memory, as .item() "
                "makes to read one value, and so for all work queued before it; the trace has no ops of this thread"
            )
        outer = ops_of(group.ops)[:1]
        inside = f" inside {outer[0]}" if outer and outer[0] != group.subject and not reads_scalar(outer) else ""
        return f"{group.subject} reads one value from the device{inside} and waits for all work queued before it"
