"""How to get the lines that a trace does not know."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.report.finding_phrases import group_alike
from syncscope.report.numbers import count
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report


def explain_missing_lines(findings: Sequence[Finding], report: Report) -> str | None:
    """How to get the lines that are not known, said once for all findings; ``None`` where all are. Not escaped."""
    leads = [group[0] for group in group_alike(findings)]
    unknown = [one for one in leads if one.site is None and one.op is not None]
    of_def = [one for one in leads if one.site is not None and one.site_source == "stack"]
    if not unknown and not of_def:
        return None
    ours = all("sites" in report.traces[one.trace].has for one in (*unknown, *of_def))
    stacks = all("stacks" in report.traces[one.trace].has for one in unknown)
    amd = any(_on_amd(one, report) for one in (*unknown, *of_def))
    ways = ([] if amd else ["`syncscope profile`"]) + ([] if stacks else ["torch.profiler's with_stack=True"])
    said = f"{_how_many(unknown, leads)} no line" if unknown else ""
    if of_def:
        said += f"{', ' if said else ''}{_how_many(of_def, leads)} only the line of the function's def"
    if ours:  # what recorded it knows no other way
        return said
    return f"{said}: to see lines, record with {' or '.join(ways)}" if ways else said


def _how_many(some: Sequence[Finding], leads: Sequence[Finding]) -> str:
    """``1 of 6 findings has``, ``the finding has``, ``all 3 findings have``."""
    if len(some) == len(leads):
        return "the finding has" if len(leads) == 1 else f"all {len(leads)} findings have"
    return f"{len(some)} of {count(len(leads), 'finding')} {'has' if len(some) == 1 else 'have'}"


def _on_amd(finding: Finding, report: Report) -> bool:
    """Whether a finding is of a device that ``syncscope profile`` cannot record."""
    return "AMD" in (report.traces[finding.trace].device or "") or (finding.op or "").startswith("hip")
