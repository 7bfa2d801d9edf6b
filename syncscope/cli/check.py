"""``syncscope check``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import Config, Format, Ignore, Output, Select, Traces, codes


def check(
    traces: Traces,
    format: Format = None,
    output: Output = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
) -> None:
    """Fail when traces hold waits that nobody expects: the gate for CI.

    Judges by how often a step waits, never by time, so the verdict is the same on every machine. Which rules are
    gated and which findings are expected stands under tool.syncscope in pyproject.toml, or in syncscope.toml;
    --select gates other rules instead, --ignore fewer. Give all traces of a run at once: an expectation that
    matches nothing in them is stale, and fails.

    [bold]Examples[/bold]

      syncscope check trace.json.gz
      syncscope check run/ --select SYN101,SYN102
      syncscope check trace.json.gz -o report.html
      syncscope check trace.json.gz --format github -o waits.sarif -o junit.xml

    [bold]Exit status[/bold]: 0 clean; 1 unexpected findings or stale expectations; 2 wrong usage or configuration;
    3 a trace cannot be read or a gated rule not be checked.
    """
    from syncscope.cli.output import Content, deliver, with_stdout
    from syncscope.cli.study import check_codes, study
    from syncscope.policy import load_policy, verdict

    policy = load_policy(Path.cwd(), config)
    selected = check_codes(codes(select), codes(ignore))
    gate = selected if select else tuple(code for code in policy.gate if code in selected)
    if not gate and policy.gate:
        raise CommandError("--select and --ignore leave no rule to check", USAGE)
    policy = replace(policy, gate=gate)
    report, lanes, wanted = study(traces, with_stdout(output, format), policy)
    outcome = verdict(report, policy)
    deliver(wanted, Content(report, lanes, outcome))
    raise typer.Exit(outcome.exit_code)
