"""The whole run of a program in the JSON report: ``traces[].run``."""

import msgspec

from syncscope.schema.counting import PhaseKind
from syncscope.schema.findings import Frame, Site


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of a phase's steps over the run, with no profiler running."""

    median: float
    p95: float
    mean: float | None = None
    """Without steps three times as long as ``p95``. Where the host runs ahead of the device, most steps are short and a
    few wait for all of them: the mean is what a step takes. ``None`` in a report that does not say."""

    @property
    def typical(self) -> float:
        """What a step takes."""
        return self.median if self.mean is None else self.mean


class PhaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the program at which it was found in a phase."""

    site: Site
    share: float
    """Of the looks at the program in that phase."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: PhaseKind
    where: str | None
    """``train.py:42 main``: the loop, where it can be told."""
    steps: int
    counted_steps: int
    one_in: float
    """One step in so many was counted, on average."""
    times: int
    """How often the program entered it. What is saved without a step in between is one checkpoint."""
    share: float
    """Of the time that was counted."""
    step_ms: StepTime | None
    waits_per_step: float | None
    """Of a phase without steps, waits each time that the program entered it; ``None`` where nothing was counted."""
    recorded: bool
    """Windows of it were recorded."""
    recorded_steps: tuple[int, int] | None = None
    """The first and the last step of its timed window, from 0."""
    looks: int = 0
    """How often the program was looked at in it, about twice a second."""
    lines: tuple[PhaseLine, ...] = ()
    """The innermost lines of the user's at which it was then, the most frequent first."""


class CompilingWaits(msgspec.Struct, frozen=True, kw_only=True):
    """Waits that ``torch.compile`` makes while it compiles or tunes. They are part of no step, and of no finding."""

    site: Site
    """The program's line that calls what is compiled. In a backward, which runs on a thread of its own, PyTorch's."""
    at: Frame
    """The compiler's line that waits."""
    waits: int
    at_least: bool = False
    """There were steps or times that nobody counted, in which it may have compiled as well."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    one_in: float
    """Of the phase that ``check`` judges by: one step in so many was counted, on average."""
    overhead_share: float | None
    compiling: tuple[CompilingWaits, ...] = ()
    """Over the whole run, the most first. Empty also in a report that does not tell them apart."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A stretch of the run in one phase. There are many: in JSON each is a list of its fields."""

    start_s: float
    seconds: float
    phase: int
    """Index into ``Run.phases``."""
    steps: int
    waits_per_step: float | None
    windows: bool
    """Windows were being recorded in it."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run of the process that wrote the trace."""

    id: str
    seconds: float
    complete: bool
    """``False``: the program was killed, or had not ended."""
    stopped: bool
    """It was ended after its windows, as asked."""
    steps: int
    """Of all training phases; without training, of the longest phase."""
    counted: Counted | None
    """``None`` where waits were not counted."""
    pid: int | None = None
    """The process that wrote the trace."""
    processes: int = 1
    """How many processes of this run left a trace."""
    shared_device: bool | None = None
    """Whether other processes used the GPU; ``None`` where nothing could tell."""
    main: bool = True
    """Of several traces of one process, the one that speaks for phases without a trace of their own."""
    phases: tuple[Phase, ...] = ()
    stretches: tuple[Stretch, ...] = ()
