"""What a trace shows of its program, for advice that depends on it."""

from __future__ import annotations

import re

from syncscope.rules.base.groups import Group
from syncscope.timeline import Timeline

TRAINS = re.compile(r"autograd::engine|Optimizer\.step#|aten::_(?:fused|amp)_")
"""How the names of ops and annotations of training begin."""

MODULE_CALL = "torch/nn/modules/module.py"

BATCH_BYTES, MODULE_BYTES = 64 << 10, 1 << 20
"""A larger copy may be a batch where the trace has no loader; and inside of a module."""


def only_infers(timeline: Timeline) -> bool:
    """Whether a trace with ops, and without our own records, has no backward and no optimiser."""
    if timeline.trace.recording is not None or "cpu_op" not in timeline.has:
        return False
    return not any(TRAINS.match(name) for table in (timeline.ops, timeline.annotations) for name in set(table.name))


def brings_no_batch(group: Group) -> bool:
    """Whether the copies of a group are small, and the trace has no loader, or they are made inside of a module."""
    inside = group.place.runs_through(MODULE_CALL)
    copy = group.rows.copy
    size = group.timeline.copies.bytes[copy[copy >= 0]]
    small = bool(len(size) and ((size >= 0) & (size <= (MODULE_BYTES if inside else BATCH_BYTES))).all())
    return small and (inside or not len(group.timeline.loads))
