"""What of a run a report has not seen: part of a file, a file, a rank."""

from __future__ import annotations

from syncscope.policy.policy import Policy
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.report import NotChecked, Report

COUNTS = ("counts",)
"""What a rule needs that is about the count of a run, and about nothing where the run was not counted."""


def unseen_parts(report: Report) -> list[tuple[int, str]]:
    """What was lost of the traces and which ranks are missing: the index of the trace, and a sentence."""
    lost = [(index, text) for index, info in enumerate(report.traces) for text in info.lost]
    return lost + [(missing.trace, missing.text) for missing in report.missing_ranks if missing.given > 1]


def is_partial(report: Report) -> bool:
    """Whether the report saw only part of what it was given, so that what is not in it may have been there."""
    return bool(report.unread or unseen_parts(report))


def rules_with_unseen_parts(report: Report, policy: Policy) -> tuple[NotChecked, ...]:
    """The gated rules that what was not seen could have broken, once for each trace."""
    rules = rules_by_code()
    # What races a recording holds is in its own key, which is read or missing as a whole.
    codes = [code for code in policy.gated if rules[code].needs != ("hazards",)]
    why: dict[int, str] = {}
    for index, text in unseen_parts(report):
        why.setdefault(index, text)
    return tuple(
        NotChecked(rule=code, why=text, trace=index, rank=report.traces[index].rank)
        for index, text in why.items()
        for code in codes
        if "counts" in report.traces[index].has or rules[code].needs != COUNTS
    )
