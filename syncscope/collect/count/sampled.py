"""What the counted steps of a phase tell of all of its steps, as far as that is the same for all places."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from syncscope.collect.count.unusual import Scale
from syncscope.collect.count.visits import Visited

ITSELF = 0.0
"""The weight of a step that is unlike the others: it stands for itself, and what was left out is not like it."""


def _itself(where: int) -> Scale:
    """What was counted is all."""
    return Scale()


class Sampled(NamedTuple):
    """What the counted steps of a phase tell of all of its steps."""

    share: float = 1.0
    """What was counted stands for all steps but some that were left out: estimates are multiplied by it."""
    beside: float = 1.0
    """The same of what was told of steps that were left out, where it stands for a few more or less than there were."""
    mean: float = 1.0
    """A counted step stands for so many, on average."""
    spread: float = 0.0
    """The variance of an estimate where the waits of a step have the variance 1."""
    stood_for: float = 0.0
    """Steps that the counted ones stand for, without those that stand for themselves."""
    all_steps: int | None = None
    """Steps, counted or not, besides the one that is under way; ``None`` unknown."""
    visited: Visited | None = None
    """Of a phase without steps."""
    of_cut: float = 1.0
    """Steps in which counting stopped were so many times as long as what was counted of them."""
    tried: int = 0
    """So many steps were counted whole or until counting stopped in them, ..."""
    cut: int = 0
    """... the latter so many. Steps that were left out are like all of them: what is dear is seldom counted whole."""
    of_lasting: float = 1.0
    """The same of steps that last, ..."""
    lasting_step: int | None = None
    """... of which this one is under way."""
    of_long: Callable[[int], Scale] = _itself
    """How many times as many steps there were as were counted, of those that lasted much longer than others, by how
    much that was."""
    of_seen: float = 1.0
    """Where no step stands for others: so many times as many steps there were as were counted, whole or in part."""
    first: int | None = None
    """The first step of all, where others were counted as well: what waits in it alone is made once, and stands for
    nothing."""


EVERY_STEP = Sampled()
"""Each step was counted, and stands for itself."""
