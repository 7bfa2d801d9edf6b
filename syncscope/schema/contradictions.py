"""What a saved report may not hold, though each of its fields is valid by itself."""

from syncscope.schema.report import Report


def find_contradiction(report: Report) -> str | None:
    """Why a report cannot be used: it is of nothing, or has a finding of a trace that it does not have."""
    if not report.traces and not report.unread:
        return "it is of no trace"
    pointing = [(finding.rule, finding.trace) for finding in report.findings]
    pointing += [(entry.rule, entry.trace) for entry in report.not_checked]
    for rule, trace in pointing:
        if not 0 <= trace < max(len(report.traces), 1):
            return f"{rule} is of trace {trace}, and there are {len(report.traces)}"
    return None
