"""``syncscope check``: the gate for CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from syncscope.cli.baseline import read_saved, with_baseline
from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import (
    Cache,
    Config,
    Engine,
    Format,
    Ignore,
    Jobs,
    MaxSize,
    Output,
    Scheduler,
    Select,
    Top,
    TracesOrReports,
    Verbose,
    codes,
)

if TYPE_CHECKING:
    from syncscope.policy import Policy

GATE = "Gate"
"""Group of options in ``--help``."""

BaselineFile = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        rich_help_panel=GATE,
        help="File of findings that may stay: each passes unless it occurs more often.",
        readable=False,  # else typer asks, and answers with more than a line
        show_default=False,
    ),
]
WriteBaseline = Annotated[
    bool, typer.Option("--write-baseline", rich_help_panel=GATE, help="Write the baseline file, which must not exist.")
]
Update = Annotated[
    bool,
    typer.Option("--update", rich_help_panel=GATE, help="Remove fixed findings from the baseline. It never adds any."),
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", rich_help_panel=GATE, help="Exit with 0 instead of 1.")]

AllowPartial = Annotated[
    bool,
    typer.Option(
        "--allow-partial",
        rich_help_panel=GATE,
        help="Pass although part of a trace, a whole trace or a rank was not seen.",
    ),
]


def check(
    traces: TracesOrReports,
    format: Format = None,
    output: Output = None,
    verbose: Verbose = False,
    top: Top = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    baseline: BaselineFile = None,
    write_baseline: WriteBaseline = False,
    update: Update = False,
    exit_zero: ExitZero = False,
    allow_partial: AllowPartial = False,
    jobs: Jobs = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Fail when traces or saved reports have unexpected waits: the gate for CI.

    The gate counts how often a step waits and ignores time, so the verdict is the same on every machine. Gated rules,
    expected findings and budgets are set under tool.syncscope in pyproject.toml, or in syncscope.toml. A comment in the
    program can expect the findings on its line. --select replaces the gated rules, and --ignore removes some. A saved
    JSON report of analyze, profile or watch is judged again, by the present configuration. Name all traces of a run at
    once: an expectation that matches nothing in them is stale, and a stale expectation fails.

    In a project with many waits, run it once with --baseline FILE --write-baseline, which writes the present findings
    to the file. From then on, runs with --baseline FILE fail on findings that are new or occur more often.

    [bold]Examples[/bold]

      syncscope check trace.json.gz
      syncscope check out/report.json
      syncscope check run/ --select SYN101,SYN102 -o report.html
      syncscope check trace.json.gz --format github -o waits.sarif -o junit.xml
      syncscope check run/ --baseline syncscope-baseline.json --write-baseline
      syncscope check run/ --baseline syncscope-baseline.json
      syncscope check run/ --baseline syncscope-baseline.json --update

    [bold]A line that may wait[/bold]

      show(loss.item())  # syncscope: expect SYN102 -- once every 100 steps

    [bold]Exit status[/bold]: 0 clean; 1 unexpected findings, stale expectations or exceeded budgets; 2 wrong usage or
    configuration, or a baseline that cannot be read; 3 a trace cannot be read, or holds too little to check a gated
    rule or a budget. Where both 1 and 3 apply, it is 1.
    """
    from syncscope.cli.inputs import analyze_or_read, print_unread, reading_options, select_engine
    from syncscope.cli.output import Content, view, with_stdout, write_outputs
    from syncscope.policy import check_baseline, check_gate, load_policy

    policy = _select_gate(load_policy(Path.cwd(), config), codes(select), codes(ignore))
    if allow_partial:
        policy = replace(policy, allow_partial=True)
    saved = read_saved(baseline, write_baseline, update)
    report, pictures, wanted = analyze_or_read(
        traces,
        with_stdout(output, format),
        policy,
        untouched=[baseline] if baseline else [],
        engine=select_engine(jobs, engine, scheduler),
        reading=reading_options(max_size, cache),
    )
    compared = check_baseline(report, policy, saved) if baseline else None
    report = compared.report if compared else report
    verdict = check_gate(report, policy)
    if baseline is not None and compared is not None:
        verdict = with_baseline(verdict, compared, baseline, saved, update)
    write_outputs(wanted, Content(report, pictures, verdict, view(verbose, top)))
    print_unread(report)
    raise typer.Exit(verdict.exit_code if not exit_zero else 3 if verdict.blind else 0)


def _select_gate(policy: Policy, select: list[str], ignore: list[str]) -> Policy:
    from syncscope.cli.inputs import select_codes

    selected = select_codes(select, ignore)
    narrowed = policy.only(selected, selected if select else ())
    if not narrowed.gate and policy.gate:
        raise CommandError("--select and --ignore leave no rule to check", USAGE)
    return narrowed
