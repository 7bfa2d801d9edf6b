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
    boolean mask, `masked_select`, `unique` and `repeat_interleave` without `output_size` all count on the device, copy
    the count to the host and wait for it (`repeat_interleave` twice). Shapes that change also defeat CUDA graphs.

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

    def fix(self, group: Group) -> str:
        op = _op(group.ops)
        return next((fix for key, fix in FIXES.items() if key in op), FIXES["nonzero"])


def _op(chain: Chain) -> str:
    """The op that a user knows the wait by: the outermost with a dynamic shape, or the indexing around it."""
    known = ("index", "where", "bincount", "histc")
    return next(
        (op for op in chain if has_dynamic_shape((op,)) or (op.startswith("aten::") and any(k in op for k in known))),
        chain[-1],
    )


FIXES = {
    "repeat_interleave": "Pass output_size=, the sum of the repeats, from the host.",
    "masked_select": "Keep the shape: torch.where(mask, x, 0), or multiply by the mask and divide by its sum.",
    "index_put": "Write with x = torch.where(mask, values, x) or masked_fill_ instead of x[mask] = values.",
    "index": "Keep the shape: torch.where(mask, x, 0), or weight by the mask, instead of x[mask].",
    "unique": "Do it on the host while loading the data, or work with a fixed upper bound on the count.",
    "where": "Use torch.where with three arguments, which keeps the shape.",
    "nonzero": "Work with the mask itself (torch.where with three arguments), or torch.nonzero_static of a fixed size.",
}
"""By a part of the op's name, the first that fits."""
