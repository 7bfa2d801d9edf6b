"""``syncscope diff BEFORE AFTER``: compare two recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from syncscope.cli.console import stdout, write_stdout
from syncscope.cli.errors import UNREADABLE, CommandError
from syncscope.cli.inputs import analyze_traces, is_report, read_report, reading_options, select_codes
from syncscope.cli.options import OUTPUT, Cache, Config, Ignore, MaxSize, Open, Select, codes
from syncscope.cli.output import STDOUT, needs_picture, open_pages, say_written, targets, with_page, write

if TYPE_CHECKING:
    from syncscope.compare.diff import Diff
    from syncscope.policy import Policy
    from syncscope.report.picture.lanes import Lanes
    from syncscope.schema.report import Report
    from syncscope.trace.source import Reading

SIDE = "A trace, a folder of traces, or a saved report."


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=SIDE, show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=SIDE, show_default=False)],
    format: Annotated[
        Literal["text", "json", "markdown", "html"] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            rich_help_panel=OUTPUT,
            help="What is printed: text (the default), json, markdown (for a comment on a pull request) or html.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="[FORMAT=]PATH",
            rich_help_panel=OUTPUT,
            help="Write a file; the ending decides: .txt, .json, .html or .md. Repeatable.",
            show_default=False,
        ),
    ] = None,
    open: Open = False,
    select: Select = None,
    ignore: Ignore = None,
    max_size: MaxSize = None,
    cache: Cache = False,
    config: Config = None,
) -> None:
    """Show what changed between two recordings: findings that are new, fixed, or that occur more or less often.

    Findings are matched by rule, function and expression, so moving code changes nothing. A finding is neither new nor
    fixed when one of the recordings could not be checked for its rule. Step times are compared only when both were
    measured in the same way. What the fixed findings were predicted to save is compared with the change of the step.

    [bold]Examples[/bold]

      syncscope diff main/trace.json.gz trace.json.gz
      syncscope diff main/report.json out/report.json --format markdown > comment.md
      syncscope diff before.json.gz after.json.gz -o diff.html

    [bold]Exit status[/bold]: 0 done, whatever changed; 2 wrong usage or configuration; 3 a file cannot be read.
    """
    from syncscope.compare.diff import diff as compare
    from syncscope.policy import load_policy

    wanted = targets(with_page(output or [], open), [before, after], RENDERERS)
    drawn = format == "html" or needs_picture(wanted)
    selected = select_codes(codes(select), codes(ignore))
    policy = load_policy(Path.cwd(), config)
    reading = reading_options(max_size, cache)
    (old, old_lanes), (new, new_lanes) = (_report(path, policy, selected, reading, drawn) for path in (before, after))
    sides = Sides(compare(old, new), old, new, (old_lanes, new_lanes))
    for target in wanted:
        if target.path != STDOUT:
            write(target.path, [RENDERERS[target.format](sides).encode("utf-8", errors="replace")])
            say_written(target.path)
    named = [target.format for target in wanted if target.path == STDOUT]
    for one in named if format is None and named else [*named, format or "text"]:
        _print(one, sides)
    open_pages(wanted, open)


def _print(format: str, sides: Sides) -> None:
    if format == "text":
        from syncscope.report.text_diff import render

        render(sides.diff, stdout())
    else:
        write_stdout(RENDERERS[format](sides))


class Sides(msgspec.Struct, frozen=True):
    """The input of every renderer."""

    diff: Diff
    before: Report
    after: Report
    lanes: tuple[Sequence[Lanes], Sequence[Lanes]]


def _text(sides: Sides) -> str:
    from syncscope.report.text_diff import to_text

    return to_text(sides.diff)


def _json(sides: Sides) -> str:
    from syncscope.report.escape import json_text

    return json_text(sides.diff.to_json()) + "\n"


def _markdown(sides: Sides) -> str:
    from syncscope.report.markdown_diff import render

    return render(sides.diff)


def _html(sides: Sides) -> str:
    from syncscope.report.html_diff import render

    return render(sides.diff, sides.before, sides.after, sides.lanes)


RENDERERS: dict[str, Callable[[Sides], str]] = {"text": _text, "json": _json, "markdown": _markdown, "html": _html}


def _report(
    path: str, policy: Policy, selected: tuple[str, ...], reading: Reading, drawn: bool
) -> tuple[Report, Sequence[Lanes]]:
    """One side, and its pictures where they are ``drawn``: of a saved report those of the traces in its folder."""
    from syncscope.analysis.finish import only

    lanes: Sequence[Lanes] = ()
    if is_report(Path(path)):
        report = read_report(Path(path))
        if drawn:
            from syncscope.analysis.analyze import draw_beside  # which loads what judges

            report, lanes = draw_beside(report, Path(path).parent, reading)
    else:
        report, lanes, _ = analyze_traces([path], None, policy, reading=reading, pictures=drawn)
    if report.unread:  # findings of that rank alone would look as if they were fixed, or new
        missing = report.unread[0]
        raise CommandError(f"{path}: a trace could not be read: {missing.path}: {missing.why}", UNREADABLE)
    return only(report, frozenset(selected)), lanes
