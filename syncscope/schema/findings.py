"""Where a wait is and what it is: the finding, which every layer shares.

These structures *are* the JSON report: the field names are a contract, added fields keep ``schema_version``, and a
missing figure is ``None``, never 0. Times are milliseconds per recorded step unless the name says otherwise; sizes
are bytes.
"""

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from syncscope.schema.counting import PhaseKind

Severity = Literal["error", "warning", "note"]
Status = Literal["unexpected", "expected", "baseline"]
SiteSource = Literal["hook", "stack", "op", "count", "compile"]
"""``count``: no window recorded it, but it was counted over the run. ``compile``: ``torch.compile`` said it."""
COUNTED: Final[SiteSource] = "count"
COMPILED: Final[SiteSource] = "compile"
UNEXPLAINED: Final = "SYN100"
"""The rule of a counted wait whose op is not known. Baselines, expectations and reports match it with any rule about
waits at the same expression."""
READS: Final = "SYN102"
"""The rule about the most frequent wait: where a trace does not allow to check it, nothing is known of waits."""
PACED: Final = "LCH501"
"""The rule whose findings hold the idle time of a step without the profiler, as far as that can be told."""
STARVED: Final = "OVL303"
"""The rule about all that a device is idle for."""
TRAINING: Final[PhaseKind] = "train"
"""The kind of phase that a run is judged by, where it has one; the names of such phases begin with it."""
RACES: Final = "HAZ"
"""How the codes of the rules about races begin. A race makes results wrong, whatever it costs."""
BETWEEN_RANKS: Final = "DST"
"""How the codes of the rules begin that compare the ranks of a run."""
LATE_PEER: Final = "it is the wait for another rank: what is gained there shows in the traces of all of them"
"""Why nothing is known of what collectives gain that wait for another rank."""
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
    """The column of the expression's first character, from 1; ``None`` where the recording does not have it."""
    end_column: int | None = None
    """The column just after its last character; ``None`` also where it ends on another line."""


class SketchLane(msgspec.Struct, frozen=True, kw_only=True):
    """The host or a stream in a picture of one step."""

    label: str
    busy: str
    """One digit a bin, 0 to 9 ninths of it taken; all bins of a report's pictures are of one length."""


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it was replayed."""

    step_ms: float
    lanes: tuple[SketchLane, ...]


class IdleCause(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of a device's idle time, and what it would save if nothing waited for it."""

    cause: str
    """As in ``Overlap.idle_by_cause``."""
    ms_per_step: float
    """Idle milliseconds that are due to it (over the whole trace where it has no steps)."""
    saving_ms_per_step: float | None = None
    saving_low_ms_per_step: float | None = None
    saving_high_ms_per_step: float | None = None
    likely_saving_ms_per_step: float | None = None
    """As in ``Finding``."""
    saving_null_why: str | None = None
    """Why there is no saving, or only its bounds."""
    covered_by: tuple[str, ...] = ()
    """Fingerprints of the findings that are about the same idle time: its saving is theirs. Empty where no other
    finding names it."""
    site: Site | None = None
    at: Frame | None = None


class WorkEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A line at which work of the host ends that nothing names."""

    site: Site
    share: float
    """Of all host work for which the device is idle, from 0 to 1."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause: every occurrence of a rule at one place."""

    rule: str
    name: str
    severity: Severity
    status: Status = "unexpected"
    reason: str | None = None
    exceeds: str | None = None
    """How an unexpected finding exceeds the policy (``expected at most 1 a step, found 3``; ``baseline 1, now 2``);
    ``None`` where nothing covers it."""
    site: Site | None
    """The user's line; ``None`` when the trace holds neither sites nor stacks."""
    at: Frame | None = None
    """The innermost Python frame outside of PyTorch's wrappers of functions (``torch/utils/_device.py``,
    ``torch/overrides.py``, a library's ``__torch_function__``), where PyTorch's own warning points without those."""
    chain: tuple[Frame, ...] = ()
    """The call chain, outermost first, ending at ``at``."""
    site_source: SiteSource
    annotation: str | None = None
    """The innermost ``record_function`` around it, where there is no frame. Numbers that end a word are ``N``."""
    earlier: tuple[Site, ...] = ()
    """The other lines of a race, the most frequent first: what may still run when this one reads or writes."""
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
    """Of the recorded steps; ``None`` where there are none of its phase."""
    bytes: int | None = None
    """Bytes copied by all occurrences together."""
    collectives: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Of a finding about collectives their kinds, with the process group where the trace has it, as ``BetweenRanks``
    compares them."""
    meets: int | msgspec.UnsetType = msgspec.UNSET
    """Of a finding about collectives its number among those of its trace, by which ``Collective.found_in`` names it."""
    stall_ms_per_step: float | None = None
    exposed_ms_per_step: float | None = None
    idle_ms_per_step: float | None = None
    """Milliseconds for which the device is idle, of a finding that is about idle time."""
    causes: tuple[IdleCause, ...] = ()
    """Of a finding about idle time: what it is due to, the longest first."""
    work_ends_at: tuple[WorkEnd, ...] = ()
    """Of a finding about idle time whose host work nothing names: the copies to the device right before which the host
    works, that with the most work first. They are where the work ends, not what takes the time."""
    sums_up: bool = False
    """Whether other findings name all that it is about: it only sums them up."""
    asks_for_more: bool = False
    """Whether its fix only asks to record or to sample more: the recording names nothing to change yet."""
    by_design: bool = False
    """Whether PyTorch's own algorithm waits there, so that only another one leaves the wait out: it comes behind what
    can be changed, and gates as any other."""
    saving_ms_per_step: float | None = None
    """Of the recorded steps, as are its bounds (of the whole trace where it has no steps)."""
    saving_low_ms_per_step: float | None = None
    saving_high_ms_per_step: float | None = None
    saving_null_why: str | None = None
    """Why there is no saving, or only its bounds."""
    likely_saving_ms_per_step: float | None = None
    """What the severity and the order of findings go by: the saving; where only its bounds are known, the saving if the
    profiler slowed the host as it usually does. ``None`` where nothing was replayed, or only what there is to save at
    most."""
    saving_below_drift: bool = False
    """Whether the saving is less than can be told: under 1 % of the step, by which the same program differs from one
    time it is measured to the next."""
    after: Sketch | None = None
    """The step with this fixed; before it is that of the trace's ``Replay``."""
    stall_ms: float | None = None
    """Milliseconds blocked by all occurrences together; set also where the trace has no steps."""
    exposed_ms: float | None = None
    """Milliseconds exposed by all occurrences together; set also where the trace has no steps."""
    phase: str | None = None
    """The phase of the program, where the run was counted."""
    run_per_step: float | None = None
    """Occurrences a step of that phase over the whole run (each time that the program enters it, where the phase has no
    steps); ``None`` where they were not counted."""
    run_per_step_low: float | None = None
    run_per_step_high: float | None = None
    """The 95 % interval where only some steps were counted, ``None`` where those are too few to tell; equal to
    ``run_per_step`` where all were counted."""
    occurrences: int | None = None
    """In that phase over the whole run; an estimate where only some steps were counted."""
    run_steps: tuple[int, int] | None = None
    """The first and the last step of the phase, from 0, in which it was counted."""
    run_steps_with: int | None = None
    """In how many of the counted steps of the phase it occurs, at most; ``None`` where the phase has no steps."""
    run_stall_ms_per_step: float | None = None
    """Milliseconds blocked a step of that phase over the whole run: measured, where the entry point is wrapped, else as
    long an occurrence as in the recorded steps. Of a copy the whole call is measured, in which the host may convert
    what it copies: where steps were recorded, no occurrence counts for longer than there."""
    run_saving_ms_per_step: float | None = None
    """The saving of an occurrence in the recorded steps, as often as it occurs over the whole run."""
    first_ns: int | None = None
    """Start of the first occurrence, ns since the trace's base: where a timeline jumps to."""
    message: str
    fix: str
    fingerprint: str
    expected_by: Literal["project"] | msgspec.UnsetType = msgspec.UNSET
    """Who expects an expected finding, where it is the configuration or a comment: another one may not. Else it is the
    program itself."""
    number: int | msgspec.UnsetType = msgspec.UNSET
    """Its number among the findings of the rules in its trace, by which its waits and copies are known. It exists only
    inside the program: a saved report has none, and neither has a finding of a ``RunRule``."""


def fingerprint(rule: str, file: str, function: str, expression: str | None, ordinal: int = 0) -> str:
    """A key for a finding that survives moving code, other machines and other recording modes.

    ``ordinal`` tells apart equal expressions of one function, in source order. Neither line, op, device nor
    time takes part.
    """
    text = " ".join((expression or "").split())
    digest = hashlib.sha256("\x00".join((rule, file, function, text, str(ordinal))).encode()).hexdigest()
    return digest[:16]


def identity(finding: Finding) -> tuple[object, ...]:
    """A key of a finding within its trace, for findings without numbers. Estimate and policy change nothing in it."""
    return (
        finding.rule, finding.fingerprint, finding.site, finding.at, finding.op, finding.first_ns, finding.count,
        finding.bytes,
    )  # fmt: skip


def numbered(findings: Iterable[Finding], known: Iterable[Finding]) -> list[Finding]:
    """The ``findings`` of a trace, each with the number of the same finding in ``known``, the findings of the rules in
    it.

    A finding that has a number keeps it; one that is not among ``known`` has none.
    """
    numbers: dict[object, list[int]] = {}
    for one in known:
        if one.number is not msgspec.UNSET:
            numbers.setdefault(identity(one), []).append(one.number)
    renumbered = []
    for finding in findings:
        same = numbers.get(identity(finding))
        if finding.number is msgspec.UNSET and same:
            finding = msgspec.structs.replace(finding, number=same.pop(0))
        renumbered.append(finding)
    return renumbered


NOTHING = 5e-7
"""Milliseconds that are shown as 0."""

OF_BOUND = 0.5
"""What a saving counts for where only the most that it can be is known, as a share of that."""


def gain(finding: Finding) -> float | None:
    """Milliseconds a step that fixing a finding likely gains: over the run where that is known, else in the recorded
    steps; between the least and the likely where the likely is a guess, and half of the most where only that is known
    or nothing is likely, for launches half of what the device waits at a guess, if that is less; ``None`` unknown. Of
    what asks for more it is that of the cause whose saving is known."""
    if finding.asks_for_more:
        return max((one for one in map(_gain_of_cause, finding.causes) if one is not None), default=None)
    if finding.run_saving_ms_per_step is not None:
        return finding.run_saving_ms_per_step
    low, most = finding.saving_low_ms_per_step, finding.saving_high_ms_per_step
    guess = finding.likely_saving_ms_per_step
    if guess is not None and (guess >= NOTHING or finding.saving_below_drift):
        guess = guess if low is None else (guess + low) / 2
    elif most is not None:
        waits = finding.idle_ms_per_step if finding.rule == PACED else None
        guess = OF_BOUND * (most if waits is None else min(most, waits))
    likely = guess if finding.saving_ms_per_step is None else finding.saving_ms_per_step
    if likely is None or finding.run_per_step is None or not finding.per_step:
        return likely
    return likely / finding.per_step * finding.run_per_step


def _gain_of_cause(cause: IdleCause) -> float | None:
    """What a cause that no other finding is about likely gains, as ``gain``; ``None`` where that is nothing or
    unknown."""
    likely, low = cause.likely_saving_ms_per_step, cause.saving_low_ms_per_step
    if cause.covered_by or likely is None or likely < NOTHING:
        return None
    return likely if low is None else (likely + low) / 2


def is_exposed(finding: Finding) -> bool:
    """Whether a finding is about collectives or copies with no compute beside them for a time that is known."""
    return finding.exposed_ms is not None or finding.exposed_ms_per_step is not None
