from __future__ import annotations

import pandas as pd

from syncscope.rules.chains import Chain, has_dynamic_shape, in_library, matching
from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools


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
    needs = ("runtime", "cpu_op")

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        return matching(waits, has_dynamic_shape) & ~in_library(waits, timeline.places)

    def message(self, group: Group) -> str:
        return f"{group.what} waits to learn the size of its result ({_op(group.ops)})"


def _op(chain: Chain) -> str:
    """The op that a user knows the wait by: the outermost with a dynamic shape, or the indexing around it."""
    known = ("index", "where", "bincount", "histc")
    return next(
        (op for op in chain if has_dynamic_shape((op,)) or (op.startswith("aten::") and any(k in op for k in known))),
        chain[-1],
    )
