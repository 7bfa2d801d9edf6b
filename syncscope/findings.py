"""The vocabulary every layer shares: where a wait is, what it is, and the report made of them.

These structures *are* the JSON report (``Report.to_json`` / ``Report.from_json``): the field names are a
contract, added fields keep ``schema_version``, and a missing figure is ``None``, never 0.
Times are milliseconds per recorded step unless the name says otherwise; sizes are bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from syncscope.hta_tables import HTA
from syncscope.ranks import BetweenRanks, Unread

SCHEMA_VERSION = 1

Severity = Literal["error", "warning", "note"]
Status = Literal["unexpected", "expected", "baseline"]
SiteSource = Literal["hook", "stack", "op"]
StepSource = Literal["profiler", "user", "optimizer", "module", "seconds", "none"]
BudgetOutcome = Literal["kept", "exceeded", "not judged"]
RatchetOutcome = Literal["written", "held", "tightened", "not written"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
STATUSES: tuple[Status, ...] = ("unexpected", "baseline", "expected")


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One Python frame. ``file`` is normalised: relative to the project, ``<site-packages>/…`` or ``<python>/…``."""

    file: str
    line: int | None
    function: str


class Site(Frame, frozen=True, kw_only=True):
    """A frame with the text of the expression that was running, when the collector saw it."""

    expression: str | None = None
    column: int | None = None
    """Of the expression's first character, from 1; ``None`` where the recording does not know."""
    end_column: int | None = None
    """Just after its last character; ``None`` also where it ends on another line."""


class SketchLane(msgspec.Struct, frozen=True, kw_only=True):
    """The host or a stream in a picture of one step."""

    label: str
    busy: str
    """One digit a bin, 0 to 9 ninths of it taken; all bins of a report's pictures are of one length."""


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it was replayed."""

    step_ms: float
    lanes: tuple[SketchLane, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause: every occurrence of a rule at one site and one ``at``."""

    rule: str
    name: str
    severity: Severity
    status: Status = "unexpected"
    reason: str | None = None
    exceeds: str | None = None
    """What of the policy an unexpected finding goes beyond (``expected at most 1 a step, found 3``; ``baseline 1, now
    2``); ``None`` where nothing covers it."""
    site: Site | None
    """The user's line; ``None`` when the trace holds neither sites nor stacks."""
    at: Frame | None = None
    """The innermost Python frame, where PyTorch's own warning points."""
    chain: tuple[Frame, ...] = ()
    """The call chain, outermost first, ending at ``at``."""
    site_source: SiteSource
    earlier: tuple[Site, ...] = ()
    """Of a race the other lines: what may still run when this one reads or writes. The most frequent first."""
    related: tuple[str, ...] = ()
    """Fingerprints of findings with the same cause."""
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None
    thread: str | None = None
    op: str | None = None
    """The PyTorch op that waited, innermost (``aten::item``), or the runtime call where there is no op."""
    count: int
    """Occurrences inside the recorded steps (in the whole trace where it has no steps)."""
    per_step: float | None
    bytes: int | None = None
    """Bytes copied by all occurrences together."""
    stall_ms_per_step: float | None = None
    exposed_ms_per_step: float | None = None
    saving_ms_per_step: float | None = None
    saving_low_ms_per_step: float | None = None
    saving_high_ms_per_step: float | None = None
    saving_null_why: str | None = None
    """Why there is no saving, or only its bounds."""
    after: Sketch | None = None
    """The step with this fixed; before it is that of the trace's ``Replay``."""
    stall_ms: float | None = None
    """Milliseconds blocked by all occurrences together; set also where the trace has no steps."""
    first_ns: int | None = None
    """Start of the first occurrence, ns since the trace's base: where a timeline jumps to."""
    message: str
    fix: str
    fingerprint: str


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


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The replay behind the savings of a trace."""

    misfit: float | None = None
    """Share of the traced step by which the replay of the unchanged steps misses it."""
    host_scale: float | None = None
    """What the host's work, the profiler's cost taken off, was multiplied with to meet the bare step."""
    null_why: str | None = None
    """Why no saving of the trace could be told."""
    assumptions: tuple[str, ...] = ()
    """What was taken for granted where the trace does not show it, one sentence each."""
    before: Sketch | None = None


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """What a device was idle for: the greatest part of a bubble, and where, when a wait or a loader is behind it."""

    cause: str
    """As in ``Overlap.idle_by_cause``."""
    site: Site | None = None
    at: Frame | None = None
    chain: tuple[Frame, ...] = ()
    site_source: SiteSource = "op"
    ordinal: int = 0
    """Of the site's expression among equal ones of its function."""


class Collective(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A collective of a rank, or several in a row: where it meets the other ranks. They end it together, so who came
    last ran it for the shortest time. There are many: in JSON each is a list of its fields."""

    step: int
    """The number of the step."""
    name: str
    """Of what it is, and of its process group where the trace says so."""
    end_ms: float
    """When it ended, since the trace's base."""
    ms: float
    exposed_ms: float
    idle_ms: tuple[float, ...] = ()
    """How long the device was idle between the end of the one before and the begin of this one, ..."""
    delays: tuple[int, ...] = ()
    """... and for what: indices into ``Meetings.delays``, the longest first."""


class Meetings(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of a rank in the order that it ran them, to be compared with those of the others."""

    collectives: tuple[Collective, ...]
    delays: tuple[Delay, ...]
    base_ns: int | None = None
    """The trace's base, ns since the epoch by the clock of the rank's host; ``None`` where the file does not say."""


class EachStep(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of every recorded step, in order: what a spread is judged by."""

    length_ms: tuple[float, ...]
    """On the host, under the profiler."""
    blocked_ms: tuple[float, ...] | None
    """In which some thread is blocked; ``None`` without runtime calls."""
    copy_exposed_ms: tuple[float, ...] | None
    """Of the copies that the step asked for, what no compute hides; ``None`` without device activity."""


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
    ``attribution``, ``hazards``."""
    steps: Steps
    coverage: Coverage
    overlap: Overlap | None
    """``None`` when the trace holds no device activity."""
    replay: Replay | None = None
    each_step: EachStep | None = None
    """``None`` where the trace has no steps."""
    files: tuple[str, ...] | None = None
    """The program's own files, as recorded; ``None`` where the recording does not list them."""
    warnings: tuple[str, ...] = ()
    """What the reader of the report must know: a file cut short, events skipped, a window ended early."""
    meetings: Meetings | None = None
    """``None`` without collectives, and in a program of one rank."""
    hta: HTA | None = None
    """``None`` unless asked for."""


class NotChecked(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    why: str
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None
    partial: bool = False
    """The rule did look; ``why`` says what it cannot see. Does not count against a gate."""


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation that matched nothing."""

    rule: str
    where: str
    """The file and line of the expectation, the thing to delete."""
    reason: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: int = SCHEMA_VERSION
    tool: Tool
    traces: tuple[TraceInfo, ...]
    findings: tuple[Finding, ...]
    saving_all_ms_per_step: float | None = None
    """Of all findings of the report's one trace together; they do not add up."""
    saving_all_low_ms_per_step: float | None = None
    saving_all_high_ms_per_step: float | None = None
    not_checked: tuple[NotChecked, ...] = ()
    stale: tuple[Stale, ...] = ()
    between_ranks: BetweenRanks | None = None
    """``None`` where no collectives of two ranks could be compared."""
    unread: tuple[Unread, ...] = ()

    def to_json(self, *, indent: int = 2) -> str:
        """The JSON report."""
        return msgspec.json.format(msgspec.json.encode(self), indent=indent).decode()

    @classmethod
    def from_json(cls, data: str | bytes) -> Report:
        """Read a JSON report back. Raises ``msgspec.DecodeError`` on anything else."""
        return msgspec.json.decode(data, type=cls)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one budget on one trace."""

    name: str
    """As in the configuration: ``max_unexpected_syncs_per_step``, ``max_exposed_copy_ms``, ``max_stall_share``."""
    allowed: float
    found: float | None
    """In the budget's unit: the count a step, or the median of the steps; ``None`` when it could not be judged."""
    low: float | None = None
    high: float | None = None
    """Lower and upper quartile of the steps; ``None`` for a count."""
    outcome: BudgetOutcome
    message: str
    """One sentence: what was found and what is allowed, or why it could not be judged."""
    trace: int = 0
    """Index into ``Report.traces``."""
    rank: int | None = None


class Ratchet(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the baseline."""

    path: str
    outcome: RatchetOutcome
    covered: int
    """Findings that it covers."""
    fixed: int
    """Its entries that occur less often now, or not at all."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What stands against a report that is held to a gate. Nothing unexpected, stale, exceeded or unseen passes."""

    gate: tuple[str, ...]
    """Codes of the rules it was held to."""
    unexpected: tuple[Finding, ...] = ()
    """Findings of gated rules inside the steps. ``Finding.exceeds`` says where an expectation or baseline is not
    enough."""
    within_budget: tuple[Finding, ...] = ()
    """Unexpected waits that ``max_unexpected_syncs_per_step`` lets pass."""
    stale: tuple[Stale, ...] = ()
    budgets: tuple[Budget, ...] = ()
    """Every budget that is set, on every trace, whatever became of it."""
    not_checked: tuple[NotChecked, ...] = ()
    """Gated rules that could not be checked."""
    unread: tuple[Unread, ...] = ()
    baseline: Ratchet | None = None
    """``None`` where none was given."""

    @property
    def exceeded(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "exceeded")

    @property
    def not_judged(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.outcome == "not judged")

    @property
    def failed(self) -> bool:
        """Unexpected findings, stale expectations or budgets exceeded."""
        return bool(self.unexpected or self.stale or self.exceeded)

    @property
    def blind(self) -> bool:
        """A trace could not be read, a gated rule not be checked or a budget not be judged."""
        return bool(self.unread or self.not_checked or self.not_judged)

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """0 clean; 1 ``failed``; 3 ``blind``."""
        if self.failed:
            return 1
        return 3 if self.blind else 0


def fingerprint(rule: str, file: str, function: str, expression: str | None, ordinal: int = 0) -> str:
    """A key for a finding that survives moving code, other machines and other recording modes.

    ``ordinal`` tells apart equal expressions of one function, in source order. Neither line, op, device nor
    time takes part.
    """
    text = " ".join((expression or "").split())
    digest = hashlib.sha256("\x00".join((rule, file, function, text, str(ordinal))).encode()).hexdigest()
    return digest[:16]


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Unexpected first, notes last; then by what fixing is worth, where that is unknown by severity and what it
    blocks."""
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[object, ...]:
    blocked = (finding.stall_ms_per_step, finding.exposed_ms_per_step, finding.stall_ms)
    saving = finding.saving_ms_per_step if finding.saving_ms_per_step is not None else finding.saving_high_ms_per_step
    return (
        STATUSES.index(finding.status),
        finding.severity == "note",
        saving is None,
        -(saving or 0.0),
        SEVERITIES.index(finding.severity),
        -next((ms for ms in blocked if ms is not None), 0.0),
        finding.trace,
        finding.rule,
        finding.site.file if finding.site else "",
        finding.site.line or 0 if finding.site else 0,
    )
