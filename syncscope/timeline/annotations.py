"""What the program calls the parts of itself: its ``record_function`` blocks, the places where no line is known."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.tables import Marks, objects

STEP = "ProfilerStep#"
"""How the profiler's own marks of steps begin."""

NO_PLACE = compile_later(rf"{STEP}|(?:nccl|gloo|mpi|ucc|xccl):")
"""How annotations begin that say what runs, not where: steps, and the collectives of PyTorch's process groups."""

NUMBER = compile_later(r"(?<![A-Za-z])((?:b?float|u?int|fp|bf)\d+)|\d+(?![A-Za-z\d])")
"""Digits at the end of a word: of a step, a batch, a layer. Those inside of one (``all2all``) are part of its name, and
so are those of a type of numbers (``float8``), which are kept."""

COMPILED = compile_later(r"(CompiledFxGraph) \w+")
"""Inductor's name of a compiled graph, with a hash that differs between machines."""


class Annotations(msgspec.Struct, frozen=True, dict=True):
    """The annotations that are places."""

    table: Marks
    """``name`` is that of ``name_annotation``."""

    @cached_property
    def nesting(self) -> Nesting:
        return Nesting(self.table.ts, self.table.end, self.table.tid)


def find_annotations(marks: Marks) -> Annotations:
    """Those of ``marks``, the annotations of a trace, that are places."""
    names = {name: name_annotation(name) for name in dict.fromkeys(marks.name.tolist())}
    taken = marks.take(np.array([bool(names[name]) for name in marks.name.tolist()], dtype=bool))
    return Annotations(taken.replace(name=objects([names[name] for name in taken.name.tolist()])))


def name_annotation(name: str) -> str:
    """The annotation as a place: the same in each step and on each machine. ``""`` for one that is no place."""
    if not name or NO_PLACE.match(name):
        return ""
    return NUMBER.sub(lambda found: found[1] or "N", COMPILED.sub(r"\1", name))
