"""What the names of functions say that a program does in them."""

from __future__ import annotations

from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.schema.counting import PhaseKind

GENERATING = frozenset(("generate", "generation", "sample", "sampling", "decode", "beam", "translate"))
"""Words in the names of functions that generate."""

SAMPLING = frozenset(("sample", "sampling"))
TAKEN = frozenset(("batch", "batches", "buffer", "data", "env", "environment", "episode", "episodes", "experience",
                   "experiences", "replay", "training", "trajectories", "trajectory", "transition",
                   "transitions"))  # fmt: skip
"""What is sampled for a training, and not made by the network: a policy acts, or a batch is drawn."""

EVALUATING = frozenset(("test", "testing", "eval", "evaluate", "evaluation", "inference", "val", "valid", "validate",
                        "validation"))  # fmt: skip
"""Words in the names of functions that evaluate, also without ``eval()``."""

ROLLING = frozenset(("rollout", "rollouts"))
"""Words in the names of functions in which a policy acts, though its modules are not in training."""


def said_kind(nest: Nest, inner: Loop) -> PhaseKind | None:
    """What the names of the functions out to that of ``inner`` say."""
    names = [name.lower() for name in (*nest.between, inner.code.co_name)]
    said = {
        word for name in names if not name.startswith("test_") for word in name.split("_")
    }  # pytest's test anything
    if said & ROLLING and not said & EVALUATING:
        return "rollout"
    if any(_generates(set(name.split("_"))) for name in names):
        return "generate"
    return "evaluate" if said & EVALUATING else None


def _generates(words: set[str]) -> bool:
    found = words & GENERATING
    return bool(found) and not (found <= SAMPLING and words & TAKEN)


def says_evaluation(nest: Nest, train: Phase) -> bool:
    """Whether the innermost loop is in a function that says that it evaluates, and in which ``train`` has no loop."""
    inner = nest.loops[0]
    mine = {loop.code for loop in train.loops}
    return train.optimised and inner.code not in mine and said_kind(nest, inner) == "evaluate"
