"""``syncscope diff BEFORE AFTER``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from syncscope.cli.errors import UNREADABLE, CommandError
from syncscope.cli.options import Cache, Config, Ignore, MaxSize, Select, codes
from syncscope.cli.saved import is_report, read_report

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
        typer.Option("--format", help="markdown is made for a comment on a pull request."),
    ] = "text",
    select: Select = None,
    ignore: Ignore = None,
    max_size: MaxSize = None,
    cache: Cache = False,
    config: Config = None,
) -> None:
    """Show what changed between two recordings: findings that are new, fixed, or occur more or less often a step.

    Findings are matched by rule, function and expression, so moving code changes nothing. What only one of the two
    could look for is neither new nor fixed. Step times are compared only where both were measured the same way.

    [bold]Examples[/bold]

      syncscope diff main/trace.json.gz trace.json.gz
      syncscope diff main/report.json out/report.json --format markdown > comment.md

    [bold]Exit status[/bold]: 0 whatever changed; 2 wrong usage or configuration; 3 a file that cannot be read.
    """
    from syncscope.cli.console import stdout, write_stdout
    from syncscope.cli.study import check_codes, reading
    from syncscope.compare.diff import diff as compare
    from syncscope.policy import load_policy

    wanted = check_codes(codes(select), codes(ignore))
    policy = load_policy(Path.cwd(), config)
    how = reading(max_size, cache)
    found = compare(_report(before, policy, wanted, how), _report(after, policy, wanted, how))
    if format == "json":
        from syncscope.report.escape import json_text

        write_stdout(json_text(found.to_json()) + "\n")
    elif format == "markdown":
        from syncscope.report.markdown_diff import render as render_markdown

        write_stdout(render_markdown(found))
    else:
        from syncscope.report.text_diff import render

        render(found, stdout())


def _report(path: str, policy: Policy, wanted: tuple[str, ...], how: Reading) -> Report:
    from syncscope.analysis.analyze import only
    from syncscope.cli.study import study

    found = read_report(Path(path)) if is_report(Path(path)) else study([path], None, policy, reading=how)[0]
    if found.unread:  # what only that rank shows would look as if it were fixed, or new
        missing = found.unread[0]
        raise CommandError(f"{path}: lacks a trace that could not be read: {missing.path}: {missing.why}", UNREADABLE)
    return only(found, frozenset(wanted))
