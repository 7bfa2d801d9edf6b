"""What else goes when data no longer goes to the host and back: what the host made of it there."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.host import find_batches
from syncscope.estimate.study import Study


def without_making(study: Study, back: Sequence[int]) -> Edits:
    """The edits by which the host does not make what some copies bring ``back``: the device does, for which the host
    has a usual dispatch.

    What was made lies between the copy back and what the same thread last launched or waited for: before that, other
    data may have been made. A pause in which a batch was loaded stays.
    """
    items = study.program.items
    begins, ends, _ = find_batches(study.timeline)
    edits: Edits = {}
    for copy in back:
        made = [*study.calls_before(copy), copy]
        since, work = items.begin[made[0]] - items.pre[made[0]], float(items.pre[made].sum())
        loads = ((ends > since) & (begins < items.begin[copy])).any() or (items.loading[made] > 0).any()
        if not loads and work > study.usual_dispatch:
            left = round(study.usual_dispatch / work, 3)
            edits |= {item: Edit(pre=left, own=left) for item in made[:-1]}
            edits[copy] = Edit(pre=left)
    return edits
