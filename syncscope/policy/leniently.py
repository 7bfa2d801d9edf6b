"""The policy, applied to what was just recorded: a mistake in it does not cost the report."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from syncscope.policy.config import ConfigError, load_policy
from syncscope.policy.expectations import apply
from syncscope.schema.report import Report


def apply_leniently(report: Report, start: Path) -> Report:
    """The report with the policy of the folder ``start`` applied, or with a warning that says why it was not."""
    try:
        return apply(report, load_policy(start))
    except ConfigError as error:
        return with_warning(report, f"No expectation was applied: {error}")


def with_warning(report: Report, warning: str, trace: int = 0) -> Report:
    """The report with one more warning about a trace."""
    traces = list(report.traces)
    traces[trace] = structs.replace(traces[trace], warnings=(*traces[trace].warnings, warning))
    return structs.replace(report, traces=tuple(traces))
