from __future__ import annotations

from syncscope.advice import PYTORCH_CODE, SHAPES, Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.op_chains import Chain, has_dynamic_shape, in_library, matching
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits


class DynamicShape(WaitRule):
    """The size of a result depends on values on the device, so the host waits to learn it.

    Why it costs: memory for the result can only be allocated when the count is known. `nonzero`, indexing with a
    boolean mask, `masked_select`, `unique`, `bincount` and `repeat_interleave` without `output_size` all count on the
    device, copy the count to the host and wait for it (the last two twice). Shapes that change also defeat CUDA graphs.

    Bad:
        picked = x[mask]
        x[mask] = y[mask]
        rows = torch.repeat_interleave(x, counts)

    Good:
        picked = torch.where(mask, x, 0)                       # same shape, masked
        x = torch.where(mask, y, x)
        rows = torch.repeat_interleave(x, counts, output_size=total)

    Fine:
        x[mask] = 0.0              # masked_fill inside: nothing is counted
        torch.where(mask, x, y)    # three arguments: the shape is known
    """

    code = "SYN103"
    name = "dynamic-shape"
    severity = "error"
    needs = ("runtime", "cpu_op")
    gated = True
    counted = True
    question = Intervention.KEEP_SHAPE
    brings_copy = True
    advice = (
        *PYTORCH_CODE,
        *SHAPES,
        Advice(
            "",
            "Keep the shape and mark what counts (a mask, a fixed upper bound), so that nothing has to be counted.",
        ),
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        return matching(waits, has_dynamic_shape) & ~in_library(waits, timeline.places)

    def claims_counted(self, counted: PlacedWait) -> bool:
        return has_dynamic_shape(counted.ops)

    def message(self, group: Group) -> str:
        return f"{group.subject} waits to learn the size of its result ({_public_op(group.ops)})"


def _public_op(chain: Chain) -> str:
    """The op that a user knows the wait by: the outermost with a dynamic shape, or the indexing around it."""
    known = ("index", "where", "bincount", "histc")
    return next(
        (op for op in chain if has_dynamic_shape((op,)) or (op.startswith("aten::") and any(k in op for k in known))),
        chain[-1],
    )
