"""The ``syncscope`` key that the collector splices into a trace file, format 1.

Readers accept every earlier format. Times are nanoseconds since the Unix epoch (``time.time_ns``), lengths
nanoseconds. Frames and stacks are interned: ``stacks[i]`` is a list of indices into ``frames``, outermost first,
without frames of syncscope itself.
"""

from typing import Final, Literal

import msgspec

from syncscope.schema.compiling import CompileSpan, RecordedRegions
from syncscope.schema.counting import RecordedRun
from syncscope.schema.numbers import Number

FORMAT = 1

EventKind = Literal["warning", "call"]

LOADER_START: Final = "DataLoader.__iter__"
"""The name of a recorded call that starts the workers of a loader, or begins anew with those that it keeps."""

HazardRule = Literal["HAZ401", "HAZ402", "HAZ403"]
"""The rule that a race is recorded for."""

READ_BEFORE_ARRIVAL: Final = "HAZ401"
"""The host reads memory that a copy may still be writing."""
OVERWRITE_IN_FLIGHT: Final = "HAZ402"
"""The host writes memory that a copy may still be accessing."""
CROSS_STREAM_RACE: Final = "HAZ403"
"""Two streams access the same memory, at least one writes, and nothing orders them."""


class RecordedFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A Python frame at the very expression that ran. Columns are 0-based characters, ``None`` before Python 3.11."""

    file: str
    line: Number | None
    end_line: Number | None = None
    column: Number | None = None
    end_column: Number | None = None
    function: str
    """Qualified (``Trainer.step``) where Python knows it."""
    expression: str | None = None
    ordinal: Number = 0
    """Among equal expressions of the function, in source order."""
    user: bool = False
    """Outside site-packages, the standard library and torch."""
    first_line: Number | None = None
    """Line of the ``def``."""


class SiteEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the collector's hooks saw, with the stack it came from.

    ``warning``: PyTorch's "called a synchronizing CUDA operation", seen at ``end_ns`` when the Python call that
    waited returned. ``call``: a wrapped entry point (``name``) that ran from ``start_ns`` to ``end_ns``; the waits
    and copies that its thread made in between are its own.
    """

    kind: EventKind
    name: str = ""
    """For a call, the entry point: ``torch.cuda.synchronize``, ``torch.accelerator.synchronize``,
    ``Event.synchronize``, ``torch.cuda.empty_cache``, ``Tensor.to``, ``Tensor.cuda``, ``Tensor.cpu``, ``Tensor.copy_``,
    ``Tensor.pin_memory``, ``Tensor.coalesce``, ``torch.unique``, ``torch.linalg.eigh`` and similar functions,
    ``torch.ops``, ``DataLoader`` (the next batch), ``DataLoader.__iter__`` (its start); with several ranks also
    ``backward`` and ``ProcessGroup.allreduce`` and the other collectives."""
    tid: Number
    """The native thread id, as in the trace's ``tid``."""
    start_ns: Number
    end_ns: Number
    stack: Number
    expected: str | None = None
    """The reason of the innermost ``syncscope.expected`` block around it."""
    group: str | None = None
    """The name of the process group whose collectives a call starts: of a call of the group, and of backward in a
    program that has one group alone."""


class HostSample(msgspec.Struct, frozen=True, kw_only=True):
    """Where the thread that makes the steps was at one moment. It stands for the time since the sample before it."""

    at_ns: Number
    stack: Number


class RecordedSteps(msgspec.Struct, frozen=True, kw_only=True):
    source: Literal["user", "optimizer", "module", "gradient", "turn", "seconds", "none"]
    first: Number = 0
    """The number of the first recorded step, counted from the program's start."""
    boundaries_ns: tuple[Number, ...] = ()
    """n + 1 times for n steps, on the host."""
    drained_ns: Number | None = None
    """When the device had finished the work of the last step: the steps began with an idle device."""
    tid: Number | None = None


class SetAsideStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the bare window that is something else than the steps around it."""

    length_ns: Number
    reason: str
    """In the user's words: ``epoch end``, ``checkpoint``, ``first of its phase``, ``evaluation``, ``compilation``,
    ``outlier``."""


class BareStamp(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the host's work that every bare step has, stamped without a profiler."""

    event: Literal["wait", "loader", "forward", "backward", "optimizer"]
    name: str = ""
    """The entry point or class (``Tensor.item``, ``DataLoader``, ``AdamW``), where it has one."""
    stack: Number | None = None
    """Where it was called, an index into ``stacks``."""
    ordinal: Number = 0
    """Among equal events of the step."""
    begins_ns: tuple[Number, ...] = ()
    """Since the step's boundary, one for each of ``steps_ns``, in order. Empty where only the return is known
    (PyTorch's warnings)."""
    ends_ns: tuple[Number, ...] = ()


class RecordedLoader(msgspec.Struct, frozen=True, kw_only=True):
    """The DataLoader that feeds the recorded steps: an actor of its own."""

    workers: Number
    prefetch: Number | None = None
    """Batches that a worker prepares ahead."""
    pinned: bool | None = None
    batch_size: Number | None = None
    ready: Number | None = None
    """Batches that were ready when the bare steps asked, median; 0 behind a loader that sets the pace."""
    interval_ns: Number | None = None
    """Between two batches that the workers finish, on average over those that the host waited for."""


class Bare(msgspec.Struct, frozen=True, kw_only=True):
    """Steps timed with no profiler, between two device syncs."""

    steps_ns: tuple[Number, ...]
    """Length of each step between its boundaries on the host, the last one closed by the device sync."""
    set_aside: tuple[SetAsideStep, ...] = ()
    """Steps that are not among ``steps_ns``, and why."""
    drain_ns: Number | None = None
    """How long the device sync at the end of the last step took. Where that is longer than a step, the host runs ahead
    of the device: the mean of ``steps_ns`` is then the length of a step, the median is not."""
    stamps: tuple[BareStamp, ...] = ()
    loader: RecordedLoader | None = None

    @property
    def runs_ahead(self) -> bool:
        """Whether the host may have run ahead of the device, so that only the mean of its steps is a step's length. Of
        one step or more."""
        ordered, middle = sorted(self.steps_ns), len(self.steps_ns) // 2
        return self.drain_ns is None or self.drain_ns > (ordered[middle] + ordered[~middle]) / 2

    @property
    def waits_for_loader(self) -> bool:
        """Whether the loader sets the pace. Its workers end batches in bursts: a short step follows a long one."""
        return self.loader is not None and bool(self.loader.interval_ns) and not self.loader.ready


class GpuWindow(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML said of the GPU in the stretch around the steps of one window, other programs on it included. What it
    cannot tell is ``None``."""

    power_w: Number | None = None
    """Average over the window, watts: from the energy counter, or else of instantaneous readings."""
    sm_clock_mhz: Number | None = None
    """Median of the samples."""
    sm_clock_low_mhz: Number | None = None
    sm_clock_high_mhz: Number | None = None
    memory_clock_mhz: Number | None = None
    temperature_c: Number | None = None
    throttled: dict[str, float] = {}
    """Reason → share of the samples: ``power cap``, ``thermal``, ``hardware slowdown``, ``power brake``,
    ``sync boost``, ``clocks set by the user``."""
    length_ns: Number | None = None
    """Of the stretch."""
    samples: Number = 0


class RecordedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """Power, clock and throttling of the GPU."""

    power_limit_w: Number | None = None
    """Enforced, watts."""
    max_sm_clock_mhz: Number | None = None
    bare: GpuWindow | None = None
    """Of the bare steps, and of as many more after the windows as make a second, once the clock had time to settle."""
    timed: GpuWindow | None = None
    """Of the recorded steps and those that passed under the profiler before them: often a short stretch, see its
    ``samples``. The clock may not have settled."""
    missing: str | None = None
    """Why nothing is known, one sentence."""


class Attributed(msgspec.Struct, frozen=True, kw_only=True):
    """What the attribution window saw at one place, to be joined to a timed window by stack and ordinal in the step."""

    stack: Number
    ordinal: Number
    ops: tuple[str, ...]
    """The chain of PyTorch ops around the runtime call, outermost first."""


class HazardAccess(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two accesses of a race."""

    stack: Number
    op: str
    """``aten::copy_``, ``Tensor.numpy``."""
    writes: bool
    stream: str | None = None
    """``the default stream``, ``stream 1``; ``None`` for the host."""
    direction: Literal["HtoD", "DtoH"] | None = None
    """The direction of a copy between host and device."""


class HazardEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Two accesses to the same memory that nothing orders, summed over all occurrences of the two stacks."""

    rule: HazardRule
    access: HazardAccess
    """The later one in the order of the program."""
    earlier: HazardAccess
    """The copy (or other work of a stream) that may still run."""
    tid: Number
    """The native thread id of the access."""
    count: Number
    bytes: Number
    """Bytes of memory that they share, all occurrences together."""
    expected: str | None = None
    """The reason of the innermost ``syncscope.expected`` block around the access."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    format: Number
    version: str
    mode: Literal["full", "windows"] = "full"
    torch: str | None = None
    python: str | None = None
    device: str | None = None
    copy_engines: Number | None = None
    """Of ``device``: how many copies it can make at the same time."""
    rank: Number | None = None
    world_size: Number | None = None
    pid: Number | None = None
    thread_names: dict[str, str] = {}
    """Native thread id → name."""
    thread_aliases: dict[str, Number] = {}
    """The trace's ``tid`` → native thread id, for threads that Kineto knows only by the low half of their pthread id
    (every thread of a window without CPU activity)."""
    steps: RecordedSteps
    """Of the timed window; without boundaries where no window was recorded, only the run counted."""
    bare: Bare | None = None
    gpu: RecordedGpu | None = None
    """``None`` in recordings that did not ask NVML."""
    frames: tuple[RecordedFrame, ...] = ()
    stacks: tuple[tuple[Number, ...], ...] = ()
    sites: tuple[SiteEvent, ...] = ()
    samples: tuple[HostSample, ...] = ()
    """In the order of time, of the timed window; none where its steps are short."""
    attribution: tuple[Attributed, ...] | None = None
    hazards: tuple[HazardEvent, ...] | None = None
    """Races, which have a window of their own; ``None`` when the recording did not look for them."""
    hazard_steps: Number | None = None
    """Steps of that window, ``None`` when it had none."""
    compiling: tuple[CompileSpan, ...] = ()
    """What ``torch.compile`` did in the timed steps and in the attribution window, the first ``MOST_SPANS``."""
    regions: RecordedRegions | None = None
    """The compiled graphs that ran; ``None`` without an attribution window, or where nothing compiled ran."""
    launch_blocking: bool = False
    """``CUDA_LAUNCH_BLOCKING=1`` was set."""
    files: tuple[str, ...] | None = None
    """The program's own Python files inside the project that it had loaded when the windows ended; ``None`` in
    recordings that do not say."""
    sources: dict[str, dict[str, str]] = {}
    """Source text around sites: file → line number → text; empty with ``--no-source``."""
    notes: tuple[str, ...] = ()
    """What the collector could not do, one sentence each (a window ended early, and why)."""
    phase: str | None = None
    """The phase whose steps these windows recorded, by its name in ``run``."""
    run: RecordedRun | None = None
    """``None`` in recordings that did not look at the whole run."""
