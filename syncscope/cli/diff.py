"""``syncscope diff BEFORE AFTER``: compare two recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from syncscope.cli.errors import UNREADABLE, CommandError
from syncscope.cli.inputs import analyze_traces, is_report, read_report, reading_options, select_codes
from syncscope.cli.options import Cache, Config, Ignore, MaxSize, Select, codes

if TYPE_CHECKING:
    from syncscope.policy import Policy
    from syncscope.schema.report import Report
    from syncscope.trace.source import Reading

SIDE = "A trace, a folder of traces, or a saved report."


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=SIDE, show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=SIDE, show_default=False)],
    format: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option("--format", help="markdown suits a comment on a pull request."),
    ] = "text",
    select: Select = None,
    ignore: Ignore = None,
    max_size: MaxSize = None,
    cache: Cache = False,
    config: Config = None,
) -> None:
    """Show what changed between two recordings: findings that are new, fixed, or occur more or less often a step.

    Findings are matched by rule, function and expression, so moving code changes nothing. A finding is neither new nor
    fixed when one of the recordings could not be checked for its rule. Step times are compared only when both were
    measured in the same way.

    [bold]Examples[/bold]

      syncscope diff main/trace.json.gz trace.json.gz
      syncscope diff main/report.json out/report.json --format markdown > comment.md

    [bold]Exit status[/bold]: 0 done, whatever changed; 2 wrong usage or configuration; 3 a file cannot be read.
    """
    from syncscope.cli.console import stdout, write_stdout
    from syncscope.compare.diff import diff as compare
    from syncscope.policy import load_policy

    selected = select_codes(codes(select), codes(ignore))
    policy = load_policy(Path.cwd(), config)
    reading = reading_options(max_size, cache)
    changes = compare(_report(before, policy, selected, reading), _report(after, policy, selected, reading))
    if format == "json":
        from syncscope.report.escape import json_text

        write_stdout(json_text(changes.to_json()) + "\n")
    elif format == "markdown":
        from syncscope.report.markdown_diff import render as render_markdown

        write_stdout(render_markdown(changes))
    else:
        from syncscope.report.text_diff import render

        render(changes, stdout())


def _report(path: str, policy: Policy, selected: tuple[str, ...], reading: Reading) -> Report:
    from syncscope.analysis.analyze import only

    if is_report(Path(path)):
        report = read_report(Path(path))
    else:
        report = analyze_traces([path], None, policy, reading=reading)[0]
    if report.unread:  # findings of that rank alone would look as if they were fixed, or new
        missing = report.unread[0]
        raise CommandError(f"{path}: a trace could not be read: {missing.path}: {missing.why}", UNREADABLE)
    return only(report, frozenset(selected))
