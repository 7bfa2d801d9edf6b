"""The dispatch of an op: what the host does from one call of the program to the launch of the next op's kernel."""

from __future__ import annotations

from syncscope.estimate.study import Study

DISPATCH = 50_000.0
"""Nanoseconds of host work before a call that are the dispatch of its op at most: 7 to 40 µs on hosts of H200s. What
takes longer is work of the program's own."""


def without_dispatch(study: Study, item: int) -> float:
    """The share of the host's work before a launch that stays where its op goes: what is longer than usual may be work
    of the program's own. Rounded, so that many items are changed in the same way."""
    pre = float(study.program.items.pre[item])
    return round(1 - min(study.usual_dispatch / pre, 1.0), 3) if pre > 0 else 1.0


def to_usual_dispatch(study: Study, item: int) -> float:
    """The share of the host's work before a launch that stays where an op with the usual dispatch takes the place of
    its own, which took ``DISPATCH`` at most."""
    pre, usual = float(study.program.items.pre[item]), study.usual_dispatch
    return round(max(usual, pre - max(DISPATCH - usual, 0.0)) / pre, 3) if pre > usual else 1.0
