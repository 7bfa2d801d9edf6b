from __future__ import annotations

import pandas as pd

from syncscope.rules.chains import in_library, matching, ops_of, reads_scalar
from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools


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

    A step bound by the device loses little by the wait itself; the saving says so where it is known.
    """

    code = "SYN102"
    name = "scalar-read"
    needs = ("runtime", "cpu_op")

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        return matching(waits, reads_scalar) & ~in_library(waits, timeline.places)

    def message(self, group: Group) -> str:
        outer = ops_of(group.ops)[:1]
        inside = f" inside {outer[0]}" if outer and not reads_scalar(outer) else ""
        return f"{group.what} reads one value from the device{inside} and waits for all work queued before it"

    def fix(self, group: Group) -> str:
        at = group.place.at
        where = " ".join((*group.ops, at.file if at else "", at.function if at else "", group.what))
        return next((fix for key, fix in FIXES.items() if key in where), READ)


READ = (
    "Keep it on the device (sum loss.detach()) and read it every so many steps, or copy it with "
    ".to('cpu', non_blocking=True) and read it a step later, behind an event."
)
FIXES = {
    "grad_scaler": "Use the optimiser's fused=True, which checks for inf on the device, or bfloat16 without a scaler.",
    "clip_grad": "Pass error_if_nonfinite=False, and look at the returned norm now and then.",
    "one_hot": "Pass num_classes.",
    "aten::linalg_": "Use the _ex variant (torch.linalg.cholesky_ex, inv_ex …) and look at its info later.",
    "aten::bincount": "Count into a tensor of known size with scatter_add_.",
    "aten::equal": "Compare on the device, (a == b).all(), and read the answer later.",
    "aten::allclose": "Compare on the device, torch.isclose(a, b).all(), and read the answer later.",
    "aten::is_nonzero": "Decide on the device (torch.where, or multiply by the condition), or look at it now and then.",
}
"""By a part of an op, of the file or function, or of the expression, the first that fits."""
