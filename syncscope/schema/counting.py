"""What the collector counted over the whole run of one process: the key ``run`` of a recording.

Counting needs no profiler. It begins at the first use of CUDA and ends with the program. Lengths are nanoseconds;
``stack`` is an index into ``Recording.stacks``, ``phase`` an index into ``RecordedRun.phases``.
"""

from typing import Literal

import msgspec

from syncscope.schema.compiling import RecordedCompiling
from syncscope.schema.numbers import Number

PhaseKind = Literal["start", "train", "evaluate", "generate", "rollout", "epoch end", "checkpoint", "other"]
"""What the program does. ``start``: before the first phase. ``train``: steps of an optimizer, or calls of a module in
training. ``evaluate``: calls of a module that is not in training. ``generate``: calls without gradients inside a
function that generates or samples. ``rollout``: calls without gradients of a module in training. ``epoch end``: from
the end of a loader of the training, or from an evaluation after its loop, to what follows. ``checkpoint``: inside
``torch.save`` and ``torch.load``."""

STEPLESS: frozenset[PhaseKind] = frozenset({"start", "epoch end", "checkpoint"})
"""Phases without steps."""

CountedSource = Literal["user", "optimizer", "module", "gradient", "turn", "seconds", "none"]

Direction = Literal["HtoD", "DtoH"]


class SampledLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's at which the thread of the phases was found when it was looked at, the innermost such line
    of its stack."""

    stack: Number
    """Of the user's frames alone."""
    samples: Number


class RecordedPhase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the run: all the times that the program was in the same loop."""

    name: str
    """Unique in the run: the kind, and where two phases are of one kind, also the function (``evaluate in check``)."""
    kind: PhaseKind
    file: str | None = None
    """Where its loop is, in the user's code where it can be told; normalised."""
    line: Number | None = None
    function: str | None = None
    source: CountedSource = "none"
    """What counts as its step."""
    steps: Number = 0
    counted_steps: Number = 0
    """Those whose waits were counted: all, unless waits were dense."""
    one_in: float = 1.0
    """One step in so many was counted, on average over the run."""
    times: Number = 1
    """How often the program entered it."""
    time_ns: Number = 0
    """Together, without the phases inside it."""
    median_ns: Number | None = None
    """Length of a step, without the phases inside it that come only now and then."""
    p95_ns: Number | None = None
    mean_ns: Number | None = None
    """Without steps far beyond ``p95_ns``. ``None`` in a recording that does not say."""
    samples: Number = 0
    """How often the program was looked at in it: about twice a second."""
    lines: tuple[SampledLine, ...] = ()
    """Where it was then most often, at most ``MAX_LINES``; the most frequent first."""
    in_every_step_of: Number | None = None
    """The phase whose every step contains this one (generation in each step of a reinforcement learner)."""
    recorded: bool = False
    """Windows of it were recorded."""
    recorded_steps: tuple[Number, Number] | None = None
    """The first and the last step of its timed window, from 0."""


class CountedWait(msgspec.Struct, frozen=True, kw_only=True):
    """All waits of one phase at one place."""

    phase: Number
    stack: Number
    kind: Literal["warning", "call"]
    """``warning``: PyTorch said that it waits. ``call``: a wrapped entry point."""
    name: str = ""
    """Of the entry point: that of a call in ``SiteEvent``, or ``Work.wait`` of a collective, or
    ``DistributedDataParallel`` where it looks for unused parameters at the end of backward."""
    may_wait: bool = False
    """Nobody can tell whether the call waited: an operator of ``torch.ops``, TorchScript."""
    compiling: bool = False
    """The compiler waited, to compile or to tune: ``count`` and ``estimate`` are what was seen, and no frequency. A
    recording that does not say has them among the others."""
    thread: str | None = None
    """Name of the Python thread of the first one."""
    expected: str | None = None
    """The reason of the innermost ``syncscope.expected`` block around it."""
    direction: Direction | None = None
    pageable: bool = False
    """A copy from or to host memory that is not pinned."""
    non_blocking: bool = False
    bytes: Number | None = None
    """Copied by those that were seen, where the entry point is wrapped."""
    count: Number
    """Occurrences seen, in counted steps."""
    steps: Number = 0
    """Counted steps of the phase with at least one."""
    estimate: float | None = None
    """Occurrences in all steps of the phase, as those that were counted tell: each stands for its part of those left
    out, too. ``None`` in a recording that does not say."""
    variance: float = 0.0
    """Of ``estimate``; 0 where every step was counted."""
    before: Number = 0
    """Occurrences before it was known what the phase's steps are. They are not in ``count``."""
    first_step: Number = 0
    """The number of the phase's step with the first one, from 0."""
    last_step: Number = 0
    blocked_ns: Number | None = None
    """Time in the call, where an entry point is wrapped."""


class RunBin(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the run in one phase, for a picture of the run. At most ``MAX_BINS`` of them."""

    start_ns: Number
    """Since the begin of counting."""
    length_ns: Number
    phase: Number
    steps: Number
    """Steps that ended in it."""
    counted_steps: Number
    waits: Number
    """Waits seen in its counted steps (in all of it where the phase has no steps)."""
    windows: bool = False
    """Windows were being recorded in it."""


MAY_WAIT_NS = 100_000
"""A call of an operator that takes less launches work. One that takes longer may have waited. The first of a place does
not count: it loads kernels."""

MAX_BINS = 400
MAX_LINES = 8


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run of one process, as far as it has come."""

    id: str
    """The same in all processes of one ``profile`` or ``watch``."""
    started_ns: Number
    """When counting began, since the epoch."""
    time_ns: Number
    """From then to the end, or to the last state that was written."""
    complete: bool
    """The program came to its end. ``False`` in a file that a killed program left, or that was read meanwhile."""
    counted: bool = True
    """``False`` with ``--no-count``: ``waits`` is empty and phases have steps only."""
    stopped: bool = False
    """``--stop`` ended the program after its windows."""
    main: bool = True
    """Of several files of this process, the one that speaks for phases without a file of their own."""
    phases: tuple[RecordedPhase, ...] = ()
    waits: tuple[CountedWait, ...] = ()
    bins: tuple[RunBin, ...] = ()
    overhead_share: float | None = None
    """What counting cost, by its own measure, as a share of the time."""
    dropped: Number = 0
    """Waits at further places, once there were too many places to keep."""
    processes_on_device: Number | None = None
    """How many other processes used the GPU, the largest number seen; ``None`` where nothing could tell (no NVML)."""
    compiled: RecordedCompiling | None = None
    """What ``torch.compile`` did; ``None`` in a recording that did not look."""
    process: str | None = None
    """How this process was started, where ``profile`` did not start it itself: ``spawn``, or the script's name."""
