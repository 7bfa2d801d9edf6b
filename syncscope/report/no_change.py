"""What stands in the place of the first change where no change alone is known to save something. Not escaped."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.report.device_time import find_whole, share_of_cause, share_of_compute, share_of_idle
from syncscope.report.finding_phrases import shorten_expression
from syncscope.report.first_change import MOST_SIGNS, describe_change, shorten_fix
from syncscope.report.numbers import count, percent
from syncscope.report.runs import is_counted_only
from syncscope.schema.findings import READS, Finding
from syncscope.schema.report import Report, TraceInfo

MOSTLY = 0.5
"""Of the step: where warm-up takes more, or idle time that nothing explains, other steps have to be recorded before
anything else."""
COMPUTES = 0.8
"""Of the step: a device that computes for more leaves waits, copies and launches little to gain."""
NEARLY_ALL = 0.95
"""The same where it does not matter what could not be checked: the rest of the step is all that anything can save."""
KERNELS = "look at the kernels"
"""How it begins where the device computes nearly all the time."""
IDLE = 0.1
"""Of the step: a device that is idle for more is something to wonder at, where nothing is known to change that."""


def explain_no_change(found: Sequence[Finding], report: Report, trace: int, *, all_help: bool) -> str:
    """Why nothing comes first: what else to do, or what fills the step. ``all_help`` is whether all changes together
    save something."""
    info = report.traces[trace]
    whole = name_whole(info)
    if is_mostly_unknown(info):
        unknown = percent(share_of_cause("unknown", info), 1.0)
        why = f"the trace does not show why the device is idle for {unknown} of this time"
        return f"record again, with a warm-up before the window and nobody else on the device: {why}"
    if info.run is None and info.overlap is None and "runtime" in info.has:
        unseen = _list_unchecked(report)
        some = f"; {count(len(unseen), 'rule')} could not be checked" if unseen else ""
        why = "nothing was launched, or the driver's profiler (CUPTI) could not be used"
        return f"record again: the trace holds calls to the device's runtime, but no device activity: {why}{some}"
    warm_up = share_of_cause("warm-up", info)
    if all_help and (warm_up < MOSTLY or info.steps.count):
        begin = f": begin with {describe_change(found[0], info, with_gain=False).where}" if found else ""
        return f"no single change is known to save 1 % of the {whole}, only all of them together{begin}"
    if warm_up >= MOSTLY:
        return f"record later steps: {percent(warm_up, 1.0)} of this time is warm-up, which they do not repeat"
    nothing = "nothing unexpected was found" if report.findings and not found else "nothing was found"
    computes, unseen = share_of_compute(info) or 0.0, _list_unchecked(report)
    some = f"; {count(len(unseen), 'rule')} could not be checked" if unseen else ""
    if computes >= NEARLY_ALL or (computes >= COMPUTES and READS not in unseen):
        busy = f"the device computes for {percent(computes, 1.0)} of the {whole}{_name_longest(info)}"
        little = any(_may_save(finding) for finding in found if not finding.saving_below_drift)
        known = "nothing is known to save" if little else f"{nothing} that saves"
        return f"{KERNELS}: {busy}; {known} 1 % of it{some if READS in unseen else ''}"
    none = f"no change is known to save 1 % of the {whole}" if found else nothing
    idle = share_of_idle(info) or 0.0
    of = "it" if found else f"the {whole}"
    though = f", though the device is idle for {percent(idle, 1.0)} of {of}" if idle >= IDLE else ""
    though += _what_to_do(found, info) if idle >= MOSTLY else ""
    return f"{none}{though}{some}"


def _may_save(finding: Finding) -> bool:
    """Whether something is known of what a change saves at most, or nothing of what may begin."""
    high = finding.saving_high_ms_per_step
    return high > 0 if high is not None else finding.severity != "note" and not finding.by_design


def is_mostly_unknown(info: TraceInfo) -> bool:
    """Whether the trace does not show why the device is idle for most of the time."""
    return share_of_cause("unknown", info) >= MOSTLY


def name_whole(info: TraceInfo) -> str:
    """What shares are of: a step, or the time of the whole trace or run."""
    counted = is_counted_only(info) and info.run is not None and info.run.steps
    return "step" if info.steps.count or counted else "time"


def _name_longest(info: TraceInfo) -> str:
    """The kernel that runs for longest, with its share of the recorded step."""
    longest, whole = info.overlap.longest_kernel if info.overlap else None, find_whole(info)
    if longest is None or not whole:
        return ""
    return f" ({percent(longest.ms, whole)} in {shorten_expression(longest.name.removeprefix('void '), MOST_SIGNS)})"


def _what_to_do(found: Sequence[Finding], info: TraceInfo) -> str:
    """What the finding about most of the device's time says to do."""
    most = MOSTLY * (find_whole(info) or 0.0)
    fix = next((one.fix for one in found if one.causes and (one.idle_ms_per_step or 0.0) >= most), None)
    return f": {shorten_fix(fix)}" if fix else ""


def _list_unchecked(report: Report) -> set[str]:
    """The rules that could not be checked on some trace though it may have what they look for."""
    return {entry.rule for entry in report.not_checked if not (entry.partial or entry.needless or entry.rest)}
