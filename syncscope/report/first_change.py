"""The change to make first: where it is, what it saves alone, and what to do. Not escaped."""

from __future__ import annotations

import msgspec

from syncscope.report.finding_phrases import format_location, name_loop, name_work_ends, shorten_expression
from syncscope.report.impact import Gain, measure_gain
from syncscope.report.numbers import percent, span
from syncscope.report.worth_phrases import LOW
from syncscope.schema.findings import PACED, RACES, Finding
from syncscope.schema.idle import main_cause
from syncscope.schema.report import TraceInfo

LEADS: dict[str, str] = {"known": "", "likely": "about "}
"""What comes before a saving, by how it is known. Of one of which only bounds are known, those are told instead."""
ALONE = "; to see what that saves, record on a device that nobody else uses"
"""What follows a fix of launches whose cost another process on the device hides."""
HIDDEN = 0.5
"""Launches of which no more than this share of their idle time can be saved are hidden by others on the device."""
MOST_SIGNS = 50
"""The most characters of an expression that are shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    """``train.py:21``, or what stands for a line."""
    expression: str | None
    """``loss.item()``, cut where it is long."""
    gain: str | None
    """``−14 %``, ``saving not known, at most 5 %``: of the step, by this change alone; ``None`` where nothing is known
    of it or it is not asked for."""
    fix: str
    """The first thing to do."""

    @property
    def where(self) -> str:
        """The place, with the expression where it is known."""
        return f"{self.place}  {self.expression}" if self.expression else self.place

    @property
    def said(self) -> str:
        """All of it in one line."""
        return f"{self.where}{f' ({self.gain})' if self.gain else ''}: {self.fix}"


def describe_change(finding: Finding, info: TraceInfo, *, with_gain: bool) -> Change:
    """Where the change that fixes a finding is and what it is, ``with_gain`` with what it saves of the step alone."""
    ends = name_work_ends(finding)
    site = finding.site if not ends else finding.work_ends_at[0].site if len(ends) == 1 else None
    gain = measure_gain(finding, info) if with_gain and not finding.rule.startswith(RACES) else None
    return Change(
        place=f"host work before {' and '.join(ends)}" if ends else describe_place(finding, info),
        expression=shorten_expression(site.expression, MOST_SIGNS) if site is not None and site.expression else None,
        gain=describe_gain(gain) if gain is not None and gain.step_ms else None,
        fix=f"{shorten_fix(finding.fix)}{ALONE}" if is_hidden(finding) else shorten_fix(finding.fix),
    )


def is_hidden(finding: Finding) -> bool:
    """Whether it is about launches that take far longer than what can be saved of that beside others on the device."""
    most, idle_ms = finding.saving_high_ms_per_step, finding.idle_ms_per_step
    return finding.rule == PACED and most is not None and idle_ms is not None and most < HIDDEN * idle_ms


def describe_gain(gain: Gain) -> str:
    """``about −14 %`` of the step; where only bounds are known, those: ``saving not known, at most 5 %``."""
    if gain.is_bound:
        return f"saving not known, {describe_bound(gain)}"
    return f"{LEADS[gain.kind]}−{percent(gain.ms, gain.step_ms)}"


def describe_bound(gain: Gain) -> str:
    """The bounds of a saving, as shares of the step: ``at most 5 %``, ``2 to 5 %``."""
    most, low = percent(gain.ms, gain.step_ms), gain.low or 0.0
    if gain.kind == "at most" or not gain.step_ms or low < LOW * gain.step_ms:
        return f"at most {most}"
    return span(percent(low, gain.step_ms), " to ", most)


def describe_place(finding: Finding, info: TraceInfo | None = None) -> str:
    """``train.py:21``; without a line the op, or of what is about the step as a whole the cause of idle time that its
    fix is for or the name of the rule, with the loop of the steps where the trace's ``info`` is given: ``data loading
    in the loop of train.py:12``."""
    if finding.site is not None:
        return format_location(finding.site)
    loop = name_loop(finding, info) if info is not None else None
    if finding.causes:
        cause = (main_cause(finding) or finding.causes[0]).cause
        return f"{cause} in the {loop}" if loop else cause
    if finding.annotation:
        return f"{finding.op or finding.name} in {finding.annotation}"
    if finding.op:
        return f"{finding.op} (line unknown)"
    return f"{finding.name} {loop}" if loop else finding.name


def shorten_fix(fix: str) -> str:
    """The first thing that a fix says to do: up to its first full stop, semicolon or ``, or`` outside of brackets."""
    depth = 0
    for number, sign in enumerate(fix):
        depth += (sign in "([{") - (sign in ")]}")
        if depth <= 0 and fix.startswith((". ", "; ", ", or "), number):
            return fix[:number]
    return fix.removesuffix(".")
