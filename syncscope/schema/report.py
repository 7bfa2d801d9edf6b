"""The report: the traces that were read, what was found in them, and what could not be checked.

The structure *is* the JSON report (``Report.to_json``, ``Report.from_json``), under the same contract as
:mod:`.findings`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from syncscope.schema.findings import TRAINING, Finding, Frame, Site, SiteSource, Sketch
from syncscope.schema.gpu import Gpu
from syncscope.schema.hta import HTA
from syncscope.schema.ranks import BetweenRanks, MissingRanks, Unread
from syncscope.schema.run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

SCHEMA_VERSION = 1
StepSource = Literal[
    "profiler", "user", "optimizer", "module", "gradient", "turn", "seconds", "server", "kernels", "none"
]  # fmt: skip


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    profiled_ms: float | None
    """Mean length of a recorded step, under the profiler."""
    bare_ms: float | None
    """Mean length of a step with no profiler running."""
    source: StepSource


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many blocking runtime calls inside steps have an exact line (the profiler's own excluded)."""

    waits: int
    with_line: int


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one kernel."""

    name: str
    ms: float
    """Per recorded step (over the whole trace where it has no steps)."""


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Where the device's time goes, per recorded step (over the whole trace where it has no steps)."""

    device_busy_ms: float
    compute_ms: float
    copy_ms: float
    copy_exposed_ms: float
    comm_ms: float
    comm_exposed_ms: float
    idle_ms: float
    idle_by_cause: dict[str, float]
    longest_kernel: Kernel | None = None
    """The kernel, no collective, that runs for longest in all; ``None`` where the device computes for less than four
    fifths of the time."""


SavingOf = Literal["bare", "recorded"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would save that no finding speaks of."""

    question: str
    """The change, as a user would say it: ``two more workers``."""
    saving_ms_per_step: float | None = None
    saving_low_ms_per_step: float | None = None
    saving_high_ms_per_step: float | None = None


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The replay behind the savings of a trace."""

    misfit: float | None = None
    """Share of the traced step by which the replay of the unchanged steps misses it."""
    host_scale: float | None = None
    """The factor on the host's work, without the profiler's cost, at which the replay meets the bare step."""
    doubt: float | None = None
    """Share of the step by which every saving may be off, because the replay does not meet the traced step or the bare
    one: ranges are wider, and savings only likely. ``None`` where it meets both."""
    null_why: str | None = None
    """Why no saving of the trace could be estimated."""
    bounds_why: str | None = None
    """Why ``doubt``, and what the steps differ in."""
    assumptions: tuple[str, ...] = ()
    """What was assumed because the trace does not show it, one sentence each."""
    saving_of: SavingOf | None = None
    """The step that the savings of the trace are of, but for ``run_saving_ms_per_step``: ``bare`` the usual one without
    a profiler, ``recorded`` the recorded ones less the profiler's cost, where no bare step is known or it is not met.
    ``None`` where nothing was replayed."""
    before: Sketch | None = None
    """One step, the last; the others may be longer or shorter."""
    step_ms: float | None = None
    """The mean of the recorded steps as they were replayed, of which savings are a part. ``None`` in reports of
    versions that did not have it."""
    asked: tuple[Asked, ...] = ()
    """Changes that no finding speaks of and that were tried, too: of the loader, and CUDA graphs."""


START = "start"
"""The cause of a delay before the device's first work, in a trace without steps."""


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """What a device was idle for: the greatest part of a bubble, and where, when a wait or a loader is behind it."""

    cause: str
    """As in ``Overlap.idle_by_cause``, or ``START``."""
    site: Site | None = None
    at: Frame | None = None
    chain: tuple[Frame, ...] = ()
    site_source: SiteSource = "op"
    ordinal: int = 0
    """The number of the site's expression among equal ones of its function."""


class Collective(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A collective of a rank, or several in a row: where it meets the other ranks. They end it together, so who came
    last ran it for the shortest time. There are many: in JSON each is a list of its fields."""

    step: int
    """The number of the step."""
    name: str
    """The kind of collective, and its process group where the trace has it."""
    end_ms: float
    """When it ended, since the trace's base."""
    ms: float
    exposed_ms: float
    idle_ms: tuple[float, ...] = ()
    """How long the device was idle between the end of the one before and the begin of this one, ..."""
    delays: tuple[int, ...] = ()
    """... and for what: indices into ``Meetings.delays``, the longest first."""
    each_ms: tuple[float, ...] = ()
    """How long each ran, where it is several in a row; nothing where they are many."""
    each_exposed_ms: tuple[float, ...] = ()
    """How much of each its finding counts as exposed; nothing where they are many, or in reports of earlier
    versions."""
    found_in: tuple[int, ...] = ()
    """The finding that each is part of, as ``Finding.meets``, −1 for none; one number where it is the same for all."""
    each_last_ms: tuple[tuple[float, ...], ...] = ()
    """How much of each is exposed in its last eighth, in its last two eighths and so on; one 0 of one that is not
    exposed at all, nothing of one that is as a whole."""
    in_graph: bool = False
    """Whether a CUDA graph runs it, where the trace does not have its process group: others of the kind may be of
    another."""

    def exposed_last(self, place: int, ms: float) -> float:
        """How much of the last ``ms`` of one of the collectives is exposed."""
        points = self.each_last_ms[place] if place < len(self.each_last_ms) else ()
        length = self.each_ms[place] if self.each_ms else self.ms
        if not points or not length:
            return ms
        eighths = min(ms / length, 1.0) * len(points)
        known = (0.0, *points, points[-1])
        whole = int(eighths)
        return known[whole] + (known[whole + 1] - known[whole]) * (eighths - whole)

    @property
    def findings(self) -> tuple[int, ...]:
        """The finding of each."""
        return self.found_in * len(self.each_exposed_ms) if len(self.found_in) == 1 else self.found_in


class Meetings(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of a rank in the order that it ran them, to be compared with those of the others."""

    collectives: tuple[Collective, ...]
    delays: tuple[Delay, ...]
    base_ns: int | None = None
    """The trace's base, ns since the epoch by the clock of the rank's host; ``None`` where the file does not say."""
    begin_ms: float | None = None
    """When the first step begins, since the trace's base; in a trace without steps, when the host's first row does.
    ``None`` where there is neither."""
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    """What the program calls its process groups, by their names in ``collectives``."""
    unseen_ms: float = 0.0
    """For how long a step the host may wait for collectives where the trace has no row of a wait: it is in calls for
    memory, or makes no call, and goes on as the collective ends."""


class EachStep(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of every recorded step, in order. They show how much the steps differ."""

    length_ms: tuple[float, ...]
    """On the host, under the profiler."""
    blocked_ms: tuple[float, ...] | None
    """Time in which some thread is blocked; ``None`` without runtime calls."""
    copy_exposed_ms: tuple[float, ...] | None
    """Time of the copies that the step launched that no compute hides; ``None`` without device activity."""
    comm_exposed_ms: tuple[float, ...] | None = None
    """Time of the collectives that the step launched that no compute hides; ``None`` without device activity."""
    comm_exposed_by_group_ms: dict[str, tuple[float, ...]] | None = None
    """The same by process group; ``None`` where the trace does not say which group every collective is of."""
    device_ms: tuple[float, ...] | None = None
    """From when the device has finished what earlier steps launched to when it has finished what this one did;
    ``None`` without device activity."""
    idle_ms: tuple[float, ...] | None = None
    """How much of that the device is idle."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str


class TraceInfo(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    rank: int | None
    device: str | None
    torch: str | None
    has: tuple[str, ...]
    """What the trace holds: ``runtime``, ``cpu_op``, ``cuda_sync``, ``stacks``, ``sites``, ``steps``,
    ``attribution``, ``hazards``, ``counts`` (the waits of the whole run were counted)."""
    steps: Steps
    coverage: Coverage
    overlap: Overlap | None
    """``None`` when the trace holds no device activity, or collectives alone."""
    replay: Replay | None = None
    each_step: EachStep | None = None
    """``None`` where the trace has no steps."""
    files: tuple[str, ...] | None = None
    """The program's own files, as recorded; ``None`` where the recording does not list them."""
    warnings: tuple[str, ...] = ()
    """What the reader of the report must know: a file cut short, events skipped, a window ended early."""
    lost: tuple[str, ...] = ()
    """Those of ``warnings`` that say which part of the file could not be read: what it held is unknown."""
    world_size: int | None = None
    """How many ranks the run had; ``None`` where the trace does not say."""
    meetings: Meetings | None = None
    """``None`` without collectives, and in a program of one rank."""
    hta: HTA | None = None
    """``None`` unless HTA was requested."""
    mode: Literal["windows", "full"] | None = None
    """How syncscope recorded the steps; ``None`` for another profiler's trace."""
    phase: str | None = None
    """The phase of the program that was recorded; ``None`` where the recording does not say."""
    run: Run | None = None
    """``None`` where only these steps were looked at."""
    gpu: Gpu | None = None
    """``None`` where the recording says nothing of the GPU's power and clock."""

    @property
    def in_training(self) -> bool:
        """Whether its phase is one of training."""
        phases = self.run.phases if self.run else ()
        return any(phase.name == self.phase and phase.kind == TRAINING for phase in phases)

    @property
    def only_counted(self) -> bool:
        """Whether the run was counted, and no window of it is in the trace."""
        return "counts" in self.has and "runtime" not in self.has and not self.steps.count


class NotChecked(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    why: str
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None
    partial: bool = False
    """The rule did look; ``why`` says what it cannot see. Does not count against a gate."""
    needless: bool | msgspec.UnsetType = msgspec.UNSET
    """Nothing in the trace is what the rule is about, so most likely there is nothing to find: no code was compiled, or
    nothing was copied. Outputs for people leave it out, unless they name all; for a gate it is as any other."""
    rest: bool | msgspec.UnsetType = msgspec.UNSET
    """The rule did look at the rest of the trace: ``why`` names rows that are lost at its start alone. Outputs for
    people call it checked in part; for a gate it is as any other."""


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation that matched nothing."""

    rule: str
    where: str
    """The file and line of the expectation, the thing to delete."""
    reason: str | None = None


class HTATrace(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    rank: int | None
    hta: HTA


class HTAReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON report of ``syncscope hta``: HTA on several traces, each on its own."""

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    traces: tuple[HTATrace, ...]

    def to_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()


FORMS: dict[Literal["text", "page", "cell"], Callable[[Report], str]] = {}
"""How a report is shown; ``syncscope.report.forms`` enters the renderers."""
FigureName = Literal["step", "timeline", "savings", "run"]
DRAW: list[Callable[[Report, FigureName, int | None], go.Figure]] = []
"""What draws a report's figures; ``syncscope.report.forms`` enters it."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: int = SCHEMA_VERSION
    tool: Tool
    traces: tuple[TraceInfo, ...]
    findings: tuple[Finding, ...]
    rules: tuple[str, ...] | None = None
    """Codes of the rules whose findings are here; ``None`` in a report of a version that did not say so."""
    saving_all_ms_per_step: float | None = None
    """The saving of all findings of the report's one trace together. Savings of single findings do not add up."""
    saving_all_low_ms_per_step: float | None = None
    saving_all_high_ms_per_step: float | None = None
    """The most that all of them save, with those of which only a bound is known."""
    likely_saving_all_ms_per_step: float | None = None
    """As ``Finding.likely_saving_ms_per_step``, of those of which more than a bound is known, like
    ``saving_all_ms_per_step``."""
    likely_saving_all_high_ms_per_step: float | None = None
    """The most that those save of which more than a bound is known; ``None`` where that is
    ``saving_all_high_ms_per_step``."""
    saving_all_below_drift: bool = False
    """As ``Finding.saving_below_drift``, of the same."""
    not_checked: tuple[NotChecked, ...] = ()
    stale: tuple[Stale, ...] = ()
    between_ranks: BetweenRanks | None = None
    """``None`` where no collectives of two ranks could be compared."""
    unread: tuple[Unread, ...] = ()
    missing_ranks: tuple[MissingRanks, ...] = ()

    def to_json(self, *, indent: int = 2) -> str:
        """The JSON report."""
        return msgspec.json.format(msgspec.json.encode(self.without_numbers()), indent=indent).decode()

    def to_html(self) -> str:
        """The HTML page, without the timeline, which needs the traces: ``syncscope report TRACE --open``."""
        return FORMS["page"](self)

    def figure(self, name: FigureName, trace: int | None = None) -> go.Figure:
        """A plotly figure of one trace: ``step``, where a step goes; ``timeline``, two steps over time, which reads
        the trace again; ``savings``, what each change makes of the step; ``run``, phases and waits of the whole run.

        ``trace`` is an index into ``traces``; without it the trace is drawn that has the most to gain. Raises
        ``ValueError`` for what there is no data for, and says what to record.
        """
        return DRAW[0](self, name, trace)

    def __repr__(self) -> str:
        """One line; ``print`` shows the summary."""
        own = sum(finding.status == "unexpected" for finding in self.findings)
        return f"<syncscope.Report: traces: {len(self.traces)}, unexpected findings: {own}>"

    def __str__(self) -> str:
        """What ``syncscope analyze`` prints."""
        return FORMS["text"](self) if FORMS else repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: what to know first, and a table of the findings."""
        return FORMS["cell"](self)

    def without_numbers(self) -> Report:
        """The report as it is saved, without ``Finding.number``, which means nothing outside the program."""
        findings = tuple(msgspec.structs.replace(finding, number=msgspec.UNSET) for finding in self.findings)
        return msgspec.structs.replace(self, findings=findings)

    @classmethod
    def from_json(cls, data: str | bytes) -> Report:
        """Read a JSON report back. Raises ``msgspec.DecodeError`` on anything else."""
        return msgspec.json.decode(data, type=cls)
