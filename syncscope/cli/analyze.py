"""``syncscope analyze``."""

from __future__ import annotations

from pathlib import Path

from syncscope.cli.options import BareMs, Config, Format, Ignore, Output, Select, Traces, codes


def analyze(
    traces: Traces,
    format: Format = None,
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
      syncscope analyze trace.json.gz -o sarif=waits.sarif -o markdown=-

    [bold]Exit status[/bold]: 0 whatever is found; 2 wrong usage or configuration; 3 a trace that cannot be read.
    """
    from syncscope.cli.output import Content, deliver, with_stdout
    from syncscope.cli.study import study
    from syncscope.policy import load_policy

    policy = load_policy(Path.cwd(), config)
    report, lanes, wanted = study(
        traces, with_stdout(output, format), policy, codes(select), codes(ignore), bare_ms=bare_ms
    )
    deliver(wanted, Content(report, lanes))
