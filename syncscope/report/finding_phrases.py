"""What several outputs say of a finding: where it is, how often it occurs, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from syncscope.report.numbers import between, milliseconds, percent
from syncscope.report.run_phrases import describe_frequency
from syncscope.report.runs import find_phase
from syncscope.report.worth_phrases import describe_saving, find_step_of_run, is_firm, range_of_run
from syncscope.schema.expressions import shorten
from syncscope.schema.findings import BETWEEN_RANKS, COMPILED, COUNTED, PACED, Finding, Frame
from syncscope.schema.numbers import three_digits
from syncscope.schema.report import TraceInfo

RARELY = 0.1
"""Times a step below which it is told once in how many."""

ENGINE, LIBRARY = ("_engine_run_backward", "run_backward"), "<"
"""The functions of PyTorch from which a backward pass runs, and how files of libraries begin."""
MOST_OF_IT = 0.5
"""Share of the host work at whose ends a reader begins to look."""
MUCH = 0.05
"""Of the step: what blocks the host or is exposed for longer is seen by whoever looks at the trace."""


def group_alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """One group for the same place in the same phase on several traces, the heaviest first; two findings of one trace
    stay two."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for finding in findings:
        key = (finding.rule, finding.fingerprint, finding.at, finding.phase)
        groups.setdefault((*key, seen[(*key, finding.trace)]), []).append(finding)
        seen[(*key, finding.trace)] += 1
    return list(groups.values())


def describe_cost(finding: Finding, traces: Sequence[TraceInfo]) -> str:
    """How often it occurs, how long it is blocked or exposed, and its saving with the step that it is of: over the run
    where that is known, else in the recorded steps. Unknown figures are left out."""
    return " · ".join(_describe(finding, traces, saving=True))


def describe_occurrences(finding: Finding, traces: Sequence[TraceInfo], *, brief: bool = False) -> str:
    """``describe_cost`` without the saving, and where that is ``brief`` without how it was sampled; empty where nothing
    is known."""
    return " · ".join(_describe(finding, traces, saving=False, brief=brief))


def describe_often(finding: Finding, traces: Sequence[TraceInfo], *, brief: bool = False) -> list[str]:
    """How often it occurs, over the run where that is known, else in the recorded steps; nothing for idle time."""
    often = describe_frequency(finding, traces, brief=brief)
    return [often] if often is not None else _often(finding)


def describe_much(finding: Finding, traces: Sequence[TraceInfo]) -> list[str]:
    """For how long it blocks the host or is exposed a step, where that is much: its saving is not. Of the steps of the
    run, where it was counted over the run."""
    info, exposed = traces[finding.trace], finding.exposed_ms_per_step
    if finding.run_per_step is not None:
        stall, exposed, whole = finding.run_stall_ms_per_step, None, find_step_of_run(finding, info)
    elif finding.per_step is None:
        stall, exposed, whole = finding.stall_ms, finding.exposed_ms, _find_base(finding, info)[0]
    else:
        stall, whole = finding.stall_ms_per_step, _find_base(finding, info)[0]
    named = ((_label_stall(finding), stall), (_label_exposed(finding), exposed))
    much = [(label, ms) for label, ms in named if whole and ms is not None and MUCH * whole <= ms <= whole]
    return [f"{label} {milliseconds(ms)} ({percent(ms, whole or 0.0)})" for label, ms in much[:1]]


def _describe(finding: Finding, traces: Sequence[TraceInfo], *, saving: bool, brief: bool = False) -> list[str]:
    often, info = describe_frequency(finding, traces, brief=brief), traces[finding.trace]
    if often is not None:
        return [often, *_cost_of_run(finding, info, saving)]
    if finding.per_step == 0:
        return _often(finding)
    stall = finding.stall_ms if finding.per_step is None else finding.stall_ms_per_step
    recorded = [*_often(finding), *_recorded(finding, info, stall)]
    of = " a recorded step" if info.steps.count else ""
    return [*recorded, *(f"{text}{of}" for text in describe_saving(finding, info) if saving)]


def _often(finding: Finding) -> list[str]:
    """How often it was recorded; nothing for idle time, since bubbles are no events of the program."""
    if finding.idle_ms_per_step is not None and finding.per_step != 0:
        return []
    if finding.site_source == COMPILED and not finding.count:
        return []
    if finding.per_step is None and finding.site_source == COUNTED and not finding.count:
        return [f"seen in {finding.phase}, not counted" if finding.phase else "not counted"]
    if finding.per_step is None:
        return ["once" if finding.count == 1 else f"{finding.count} times in all"]
    if finding.per_step == 0:
        return ["outside the steps"]
    if finding.per_step < RARELY:
        return [f"once in {three_digits(1 / finding.per_step)} steps"]
    return ["once a step" if finding.per_step == 1 else f"{finding.per_step:.4g} times a step"]


def _label_stall(finding: Finding) -> str:
    """What the host does while a finding holds it. What was only counted was timed by its whole call."""
    if finding.site_source == COMPILED:
        return "compiling"
    return "blocked at most" if finding.site_source == COUNTED else "blocked"


def _label_exposed(finding: Finding) -> str:
    """What the exposed time of a finding is: that of its own collectives or copies, or that for which its rank holds
    the others in theirs."""
    return "holds others" if finding.rule.startswith(BETWEEN_RANKS) else "exposed"


def _recorded(finding: Finding, info: TraceInfo, stall: float | None, of: str = " of the recorded step") -> list[str]:
    """How long it was blocked, exposed and idle, with the share of the recorded step, or of the device's
    time where there are no steps. What is nothing is left out."""
    named = (
        (_label_stall(finding), stall),
        (_label_exposed(finding), finding.exposed_ms_per_step),
        ("idle", finding.idle_ms_per_step),
    )
    told = [(label, ms, _share(ms, finding, info, of)) for label, ms in named if ms]
    bare = _share_of_bare(finding, info)
    return [f"{label} {milliseconds(ms)}{bare if label == 'idle' and bare else share}" for label, ms, share in told]


def _share_of_bare(finding: Finding, info: TraceInfo) -> str | None:
    """What the idle time of launches that keep the device waiting is of: the profiler makes them slower, so it is that
    without. ``None`` for other idle time."""
    if finding.rule != PACED or finding.idle_ms_per_step is None:
        return None
    bare = info.steps.bare_ms
    if bare is None:
        return " without the profiler, at a guess"
    return f" ({percent(finding.idle_ms_per_step, bare)} of the step without the profiler)"


def _share(ms: float, finding: Finding, info: TraceInfo, of: str) -> str:
    whole, of_all = _find_base(finding, info)
    if not whole or ms > whole:  # a wait before or after all rows of the device is no share of its time
        return ""
    return f" ({percent(ms, whole)}{of_all or of})"


def _find_base(finding: Finding, info: TraceInfo) -> tuple[float | None, str]:
    """What a finding's times are shares of, in ms, and how that is called where it is no recorded step."""
    if finding.per_step is not None:
        return info.steps.profiled_ms, ""
    overlap = info.overlap
    return (overlap.device_busy_ms + overlap.idle_ms if overlap else None), " of the device's time"


def _cost_of_run(finding: Finding, info: TraceInfo, with_saving: bool) -> list[str]:
    """Amounts a step of the run, and those of the recorded steps that are not known over the run. What they are per is
    said after the last of each."""
    facts = []
    stall, saving = finding.run_stall_ms_per_step, finding.run_saving_ms_per_step
    of_run_step = "a step of the run" if with_saving else "a step"
    turn = of_run_step if finding.run_steps is not None else ""  # before the first phase there are no steps
    step_ms = find_step_of_run(finding, info)

    def of_run(ms: float) -> str:
        return milliseconds(ms) + (f" ({percent(ms, step_ms)})" if step_ms else "")

    if stall is not None and (not step_ms or stall <= step_ms):  # else it is an estimate that cannot be
        facts.append((turn, f"{_label_stall(finding)} {of_run(stall)}"))
    if saving is not None and with_saving:
        limits = range_of_run(finding)
        if limits is None or is_firm(saving, *limits, step_ms, info):
            facts.append((turn, f"saves {of_run(saving)}"))
        else:
            facts.append((turn, f"saves about {of_run(saving)}, {between(*limits)}"))
    unseen = finding.stall_ms_per_step if stall is None else None
    facts += [("a recorded step", text) for text in _recorded(finding, info, unseen, of="")]
    if saving is None and with_saving:
        facts += [("a recorded step", text) for text in describe_saving(finding, info)]
    following = [*(unit for unit, _ in facts), ""][1:]
    pairs = zip(facts, following, strict=True)
    return [text if unit in (after, "") else f"{text} {unit}" for (unit, text), after in pairs]


def tells_more(finding: Finding) -> bool:
    """Whether the innermost frame of a finding says more than its line: that of backward, from which the engine runs
    all its ops, does not."""
    at, site = finding.at, finding.site
    if at is None or (site is not None and at.function in ENGINE and at.file.startswith(LIBRARY)):
        return False
    return site is None or (at.file, at.line, at.function) != (site.file, site.line, site.function)


def format_place(finding: Finding, info: TraceInfo | None = None) -> str:
    """The finding's line, else the annotation that it is in; of what is about the step as a whole the loop of the
    steps, where the trace's ``info`` tells it. As they stand in the report: not escaped."""
    if finding.site is not None:
        return format_location(finding.site)
    if finding.annotation:
        return f"in {finding.annotation}, line unknown"
    loop = name_loop(finding, info) if info is not None else None
    return f"the {loop}" if loop else "line unknown"


def format_location(frame: Frame) -> str:
    """``train.py:21``, as it stands in the report: not escaped."""
    return frame.file if frame.line is None else f"{frame.file}:{frame.line}"


def name_loop(finding: Finding, info: TraceInfo) -> str | None:
    """``loop of train.py:12``, of what is about the steps of a phase as a whole; ``None`` of what has a place of its
    own, and where the loop is not known."""
    phase = find_phase(info.run, finding.phase)
    if phase is None or not phase.where or finding.site is not None or finding.annotation or finding.op:
        return None
    return f"loop of {phase.where.rsplit(' ', 1)[0]}"


def name_work_ends(finding: Finding) -> list[str]:
    """The lines of the copies at which most of the host work ends that nothing names: the fewest that stand for half
    of it; not escaped."""
    named, share = [], 0.0
    for end in finding.work_ends_at:
        if share < MOST_OF_IT:
            named.append(format_location(end.site))
            share += end.share
    return named


def describe_work_ends(finding: Finding) -> list[str]:
    """``93 % of the host work ends at the copy of serve.py:33, 4 % at that of serve.py:40``, as one sentence; none
    where it is not known."""
    ends = [(format_location(end.site), percent(end.share, 1.0)) for end in finding.work_ends_at]
    if not ends:
        return []
    (first, share), *others = ends
    said = "".join(f", {part} at that of {line}" for line, part in others)
    return [f"{share} of the host work ends at the copy of {first}{said}"]


def shorten_expression(expression: str, most: int) -> str:
    """An expression in one line of at most so many characters, without the colon that ends a statement; not escaped."""
    return shorten(expression, most)


def shorten_message(finding: Finding, most: int) -> str:
    """What happens at a finding's line, its expression cut to so many characters; not escaped."""
    expression = finding.site.expression if finding.site is not None else None
    if not expression or len(expression) <= most:
        return finding.message
    whole = " ".join(expression.split())
    return " ".join(finding.message.split()).replace(whole, shorten_expression(whole, most))


def describe_finding(finding: Finding) -> list[str]:
    """What happens at a finding's line, and what must be known of it; one sentence each, without what to do."""
    caveats = ["the line is that of the def"] if finding.site is not None and finding.site_source == "stack" else []
    return [finding.message, *([finding.exceeds] if finding.exceeds else []), *caveats]
