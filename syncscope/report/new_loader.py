"""A loader that begins anew after each epoch, where that takes more of the run than any finding may save.

No window records what lies between epochs, so no finding is about it: the looks at the run tell the line.
"""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.report.finding_phrases import format_location, shorten_expression
from syncscope.report.first_change import MOST_SIGNS, Change
from syncscope.report.first_finding import NEARLY_AS_MUCH, is_known, most_of_run
from syncscope.report.phase_lines import begins_loader_anew, name_lines
from syncscope.report.run_phrases import describe_share
from syncscope.schema.findings import RACES, Finding
from syncscope.schema.report import TraceInfo
from syncscope.schema.run import PhaseLine, Run

LEAST = 0.25
"""Share of the run from which on it is what to begin with."""
FIX = "Keep its workers (persistent_workers=True), or one iterator for all epochs"


def find_new_loader(best: Finding | None, traces: Sequence[TraceInfo], trace: int) -> tuple[Change, str] | None:
    """The change that keeps the loader, with what the step's line says of it; ``None`` where the ``best`` finding may
    save as much of the run, or half of that for certain."""
    found = _between_epochs(traces[trace].run)
    if found is None or (best is not None and best.rule.startswith(RACES)):
        return None
    line, share = found
    least = share * NEARLY_AS_MUCH if best is not None and is_known(best, traces) else share
    if best is not None and most_of_run(best, traces) >= least:
        return None
    expression = line.site.expression
    change = Change(
        place=format_location(line.site),
        expression=shorten_expression(expression, MOST_SIGNS) if expression else None,
        gain=None,
        fix=FIX,
    )
    return change, f"{describe_share(share)} of the run is between epochs, where a loader begins anew"


def _between_epochs(run: Run | None) -> tuple[PhaseLine, float] | None:
    """The line that begins a loader anew after each epoch, with the share of the run that it takes; ``None`` where that
    is little, or an epoch ended only once."""
    for phase in run.phases if run is not None else ():
        line = next(iter(name_lines(phase)), None)
        if phase.kind != "epoch end" or phase.times < 2 or line is None or not begins_loader_anew(line.site, phase):
            continue
        if phase.share * line.share >= LEAST:
            return line, phase.share * line.share
    return None
