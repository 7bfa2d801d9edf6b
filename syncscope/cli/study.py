"""What ``analyze``, ``check`` and ``report`` have in common: traces in, a judged report out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.output import Target, needs_picture, targets
from syncscope.cli.progress import progress

if TYPE_CHECKING:
    from syncscope.findings import Report
    from syncscope.policy import Policy
    from syncscope.timeline.lanes import Lanes


def study(
    paths: Sequence[Path],
    output: Sequence[str] | None,
    policy: Policy,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    untouched: Sequence[Path] = (),
    bare_ms: float | None = None,
) -> tuple[Report, list[Lanes], list[Target]]:
    """The report on the traces, their pictures where an output shows them, and the outputs to write: none over an input
    or over one of ``untouched``."""
    from syncscope.analysis import analyze, analyze_timelines, find_traces, timelines
    from syncscope.timeline.lanes import lanes

    files = find_traces(paths)
    wanted = targets(output, [*paths, *files, *untouched])
    check_codes(select, ignore)
    with progress(files) as bar:
        if not needs_picture(wanted):  # one trace in memory at a time
            report = analyze(*files, select=select, ignore=ignore, policy=policy, bare_ms=bare_ms, progress=bar)
            return report, [], wanted
        read = timelines(*files, progress=bar)
        report = analyze_timelines(read, select=select, ignore=ignore, policy=policy, bare_ms=bare_ms)
        return report, [lanes(timeline) for timeline in read], wanted


def check_codes(select: Sequence[str], ignore: Sequence[str]) -> tuple[str, ...]:
    """The codes selected. Raises ``CommandError`` for an unknown one."""
    from syncscope.rules import select as select_rules

    try:
        return tuple(rule.code for rule in select_rules(select, ignore))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
