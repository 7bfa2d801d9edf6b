"""What ``torch.compile`` did over the whole run of one process: the key ``run.compiled`` of a recording.

It is read where Dynamo and Inductor do it, so nothing is read, and nothing costs, while nothing compiles. Lengths are
nanoseconds on the host. ``stack`` and ``compiled`` are indexes into ``Recording.stacks``, ``phase`` an index into
``RecordedRun.phases``.
"""

from typing import Final, Literal

import msgspec

from syncscope.patterns import compile_later
from syncscope.schema.numbers import Number

CompileKind = Literal["compile", "recompile", "break", "skip", "record", "warm"]
"""``compile``: a function is compiled for the first time. ``recompile``: once more, since a guard of what was compiled
failed. ``break``: a graph ends there, or the whole function runs uncompiled. ``skip``: Inductor runs a graph without
CUDA graphs, though it was asked for them. ``record``: Inductor records a CUDA graph. ``warm``: Inductor runs a graph
without a CUDA graph this once, since it has not run for inputs of these sizes before."""

WARM_STEPS: Final = 3
"""Steps of a phase, or times that the program enters it where it has no steps, in which compiling is expected."""

MOST_EVENTS: Final = 256
MOST_IDS: Final = 8
MOST_STEPS: Final = 32
MOST_SPANS: Final = 256
MOST_KERNELS: Final = 512
MOST_LINES: Final = 8


class CompileEvent(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened in one phase of one kind, at one place, for one reason."""

    phase: Number
    kind: CompileKind
    stack: Number | None = None
    """Where: from the program's outermost frame to the line that breaks; of a recompile, to the line that the guard
    comes from, else to the ``def`` of the function that is compiled; of CUDA graphs, to the call that runs them."""
    compiled: Number | None = None
    """A stack of one frame: the ``def`` of the function that Dynamo compiled. The part of a function after a break
    begins at the break's line."""
    reason: str | None = None
    """In PyTorch's words, one line: the guard that failed, why the graph breaks, why there is no CUDA graph. Of reasons
    that differ in numbers only it is the first."""
    detail: str | None = None
    """PyTorch's explanation and first hint, where it gives them."""
    expected: str | None = None
    """The reason of the innermost ``syncscope.expected`` block around it."""
    count: Number = 0
    warm: Number = 0
    """Of ``count``, those after the first ``WARM_STEPS`` steps of the phase."""
    compile_ids: tuple[str, ...] = ()
    """What was compiled, as ``CompiledRegion.compile_id``: the first ``MOST_IDS``."""
    graphs: Number = 0
    """Graphs that were compiled, all together."""
    uncompiled: Number = 0
    """How often it ended with a function that runs uncompiled: it cannot go on after the break, or it was compiled as
    often as Dynamo allows."""
    time_ns: Number | None = None
    """Host time of all of them, with the backward that is compiled later and the first run, which tunes kernels;
    ``None`` of breaks and skips, which are part of a compilation, and of ``warm``, which takes as long as the graph
    itself."""
    warm_ns: Number | None = None
    """Of ``time_ns``, that of the ``warm`` ones."""
    steps: tuple[Number, ...] = ()
    """The steps of the phase, from 0, in which it happened: the first ``MOST_STEPS``."""
    last_step: Number = 0


class RecordedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a kernel comes from: all that Inductor fused into it, or the ``def`` of one written in Triton. Two
    kernels of one name, in two graphs, are one."""

    name: str
    """As in the trace."""
    stacks: tuple[Number, ...]
    """Out to the innermost line outside of PyTorch: the first ``MOST_LINES``."""


class RecordedCompiling(msgspec.Struct, frozen=True, kw_only=True):
    """``events`` is empty in a program that compiles nothing."""

    events: tuple[CompileEvent, ...] = ()
    """In the order in which each first happened."""
    dropped: Number = 0
    """Those that were not kept, once there were ``MOST_EVENTS`` kinds, places and reasons."""
    missing: tuple[str, ...] = ()
    """What this version of PyTorch lacks, so that it is not seen."""
    kernels: tuple[RecordedKernel, ...] = ()
    """Those of which lines are known, the first ``MOST_KERNELS``."""


class CompileSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation, or one recording of a CUDA graph, in the recorded steps. Times are Unix time in ns."""

    event: Number
    """An index into ``RecordedCompiling.events``."""
    tid: Number
    """The native thread id."""
    start_ns: Number
    end_ns: Number


class CompiledRegion(msgspec.Struct, frozen=True, kw_only=True):
    """One graph, with the rest of its function behind it, as it ran in the steps of the attribution window."""

    compile_id: str | None
    """As PyTorch writes it (``0/1``); ``None`` where it writes none."""
    count: Number
    """How often it ran."""
    launches: Number
    """Launches in it and in no region inside of it, all runs together."""


class RecordedRegions(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled graphs of the attribution window. Nothing in it is timed."""

    steps: Number
    regions: tuple[CompiledRegion, ...] = ()
    launches_between: Number | None = None
    """Launches in a region that no graph made, all steps together: what a graph break left to PyTorch alone. ``None``
    where graphs have no marks of their own (other backends than Inductor)."""


_NUMBERS = compile_later(r"\d+")


def without_numbers(reason: str | None) -> str:
    """What reasons that differ in their numbers only have in common."""
    return _NUMBERS.sub("N", reason or "")
