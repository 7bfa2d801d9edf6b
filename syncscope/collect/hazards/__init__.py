"""Races: the waits a program forgot. Decided by happens-before, not by timing.

``clocks`` knows who waited for whom, ``spans`` and ``shadow`` who is still at which bytes; none of them knows torch.
``effects`` reads what an operator does off its schema; ``watch`` holds that against the shadow; ``modes`` and
``waits`` are its eyes and ears in PyTorch.
"""

from syncscope.collect.hazards.context import hazards
from syncscope.collect.hazards.window import Hazards

__all__ = ["Hazards", "hazards"]
