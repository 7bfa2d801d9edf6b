"""``syncscope analyze``."""

from __future__ import annotations

from pathlib import Path

from syncscope.cli.options import BareMs, Config, Format, Ignore, Output, Select, Traces, codes


def analyze(
    traces: Traces,
    format: Format = "text",
    output: Output = None,
    select: Select = None,
    ignore: Ignore = None,
    bare_ms: BareMs = None,
    config: Config = None,
) -> None:
    """Show where traces wait, what each wait blocks, what its fix is worth and how to be rid of it.

    What a fix is worth comes from a replay of the recorded steps without it. --select and --ignore also say which
    fixes "all fixed together" are.

    [bold]Examples[/bold]

      syncscope analyze trace.json.gz
      syncscope analyze run/ -o report.html -o report.json
      syncscope analyze trace.json.gz --select SYN --format json

    [bold]Exit status[/bold]: 0 whatever is found; 2 wrong usage or configuration; 3 a trace that cannot be read.
    """
    from syncscope.cli.console import stdout, write_stdout
    from syncscope.cli.output import write_all
    from syncscope.cli.study import study
    from syncscope.policy import load_policy
    from syncscope.report.text import render

    policy = load_policy(Path.cwd(), config)
    report, lanes, wanted = study(traces, output, policy, codes(select), codes(ignore), bare_ms)
    write_all(wanted, report, lanes)
    if format == "json":
        write_stdout(report.to_json() + "\n")
    else:
        render(report, stdout())
