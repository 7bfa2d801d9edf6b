"""Find races: waits that a program lacks. Happens-before decides, not timing.

``modes``, ``synchronization``, ``implicit`` and ``backward`` are the hooks in PyTorch: they see operators, explicit
waits, waits inside operators, and what autograd's engine orders by itself. ``effects`` says what an operator reads and
writes. ``vector_clocks`` knows who waited for whom, ``memory`` and ``shadow`` which bytes streams may still be
accessing.
``detector`` puts these together, and ``races`` collects what it finds.
"""

from syncscope.collect.hazards.context import hazards
from syncscope.collect.hazards.window import HazardWindow

__all__ = ["HazardWindow", "hazards"]
