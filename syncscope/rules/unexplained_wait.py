from __future__ import annotations

from syncscope.advice import BY_OP, LIBRARIES, Advice
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.findings import UNEXPLAINED
from syncscope.timeline.run import PlacedWait


class UnexplainedWait(RankRule):
    """A line that waits, counted over the whole run, whose op is not known.

    Why it costs: the host launches nothing while it waits. The whole run is counted without a profiler, so a line that
    no recorded window holds (every hundredth step, at the end of an epoch) is known with its place and its frequency,
    but not always with the op that waited there. Where the expression or the called function says it, the line has the
    rule of its op instead.

    Bad:
        metrics.update(logits, labels)       # waits in every step, somewhere inside

    Good:
        metrics.update(logits.detach(), labels)   # kept on the device
        if step % 100 == 0:
            log(metrics.compute())                # one wait in a hundred steps

    Fine:
        log(metrics.compute())               # after the last step

    Calls of `torch.ops` and TorchScript of which nothing tells whether they waited are notes, and never fail the
    gate; where a window recorded calls that took as long, and none waited, the line is nothing. Notes are also
    lines of any rule that wait before the first phase or in the first step of a phase alone. Baselines and
    expectations match this rule with any rule about waits at the same expression.
    """

    code = UNEXPLAINED
    name = "unexplained-wait"
    severity = "warning"
    needs = ("counts",)
    gated = True
    counted = True
    counts_as_wait = True
    question = NoQuestion("no window recorded it")
    advice = (
        *BY_OP,
        *LIBRARIES,
        Advice(
            "[]",
            "Where the index is a mask, it waits to learn how many values it selects: keep the shape (torch.where, or "
            "weight by the mask). Where it is on the host, a list or a NumPy array, keep it on the device, moved once. "
            "Where it is one value on the device, which picks from a list, read all such values at once before "
            "(indices.tolist()).",
        ),
        Advice(
            "",
            "Look at what the line does with values on the device: keep them there, copy with non_blocking=True from "
            "and to pinned memory, or do it every so many steps. To see its op, record a window in which it runs.",
        ),
    )

    def claims_counted(self, counted: PlacedWait) -> bool:
        return True

    def find(self, inspection: Inspection) -> list[Hit]:
        """Nothing: in a recorded window every wait has a rule."""
        return []
