"""What the names of functions say that a program does in them."""

from __future__ import annotations

from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.schema.counting import PhaseKind

GENERATING = frozenset(("generate", "generation", "sample", "sampling", "decode", "beam", "translate"))
"""Words in the names of functions that generate."""

TAKEN = frozenset(("buffer", "env", "environment", "episode", "episodes", "experience", "experiences", "replay",
                   "training", "trajectories", "trajectory", "transition", "transitions"))  # fmt: skip
"""What is sampled to learn from: a policy acts."""

EVALUATING = frozenset(("test", "testing", "eval", "evaluate", "evaluation", "inference", "val", "valid", "validate",
                        "validation"))  # fmt: skip
"""Words in the names of functions that evaluate, also without ``eval()``."""

ROLLING = frozenset(("rollout", "rollouts"))
"""Words in the names of functions in which a policy acts, though its modules are not in training."""

COLLECTING = frozenset(("sample", "sampling", "collect", "collecting"))
CHOOSING = frozenset(("choose", "get", "sample", "select", "take"))
ACTIONS = frozenset(("action", "actions"))
"""Pairs of words that say the same: what is learned from is collected, or an action is chosen."""

ACTING = frozenset(("act", "collect"))
"""Whole names of such functions."""


def said_kind(nest: Nest, inner: Loop) -> PhaseKind | None:
    """What the names of the functions out to that of ``inner`` say."""
    names = [name.lower() for name in (*nest.between, inner.code.co_name)]
    said = {
        word for name in names if not name.startswith("test_") for word in name.split("_")
    }  # pytest's test anything
    each = [set(name.split("_")) for name in names]
    acts = said & ROLLING or any(name.strip("_") in ACTING for name in names) or any(map(_says_acting, each))
    if acts and not said & EVALUATING:
        return "rollout"
    if any(words & GENERATING for words in each):
        return "generate"
    return "evaluate" if said & EVALUATING else None


def _says_acting(words: set[str]) -> bool:
    """Whether the name of a function with these words says that a policy acts."""
    return bool((words & COLLECTING and words & TAKEN) or (words & CHOOSING and words & ACTIONS))


def says_what(nest: Nest, train: Phase) -> PhaseKind | None:
    """What the innermost loop is said to do, in a function in which ``train`` has no loop."""
    if not train.optimised or not nest.loops:
        return None
    inner = nest.loops[0]
    return None if any(loop.code is inner.code for loop in train.loops) else said_kind(nest, inner)


def kind_of_call(event: str, nest: Nest, inner: Loop) -> PhaseKind:
    """What the loop ``inner`` does with a call of no training, as far as names and the call's mode tell."""
    if event == "user":
        return "other"
    return said_kind(nest, inner) or ("rollout" if event == "call" else "evaluate")
