"""``syncscope analyze``."""

from __future__ import annotations

from pathlib import Path

from syncscope.cli.options import (
    HTA,
    BareMs,
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
    Traces,
    codes,
)


def analyze(
    traces: Traces,
    format: Format = None,
    output: Output = None,
    select: Select = None,
    ignore: Ignore = None,
    bare_ms: BareMs = None,
    hta: HTA = False,
    config: Config = None,
    jobs: Jobs = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Show where traces wait, what each wait blocks, what its fix is worth and how to be rid of it.

    What a fix is worth comes from a replay of the recorded steps without it. --select and --ignore also say which
    fixes "all fixed together" are. The ranks of a run are read side by side and compared: who waits for whom, and how
    far their clocks are apart. Those that cannot be read are named, and the others reported on.

    [bold]Examples[/bold]

      syncscope analyze trace.json.gz
      syncscope analyze run/ -o report.html -o report.json
      syncscope analyze trace.json.gz --select SYN --format json
      syncscope analyze trace.json.gz -o sarif=waits.sarif -o markdown=-

      syncscope analyze s3://bucket/run/ --engine dask --scheduler tcp://head:8786 -o report.json

    [bold]Exit status[/bold]: 0 whatever is found; 2 wrong usage or configuration; 3 a trace that cannot be read, also
    where others could be.
    """
    from syncscope.cli.output import Content, deliver, with_stdout
    from syncscope.cli.study import chosen, end_unread, reading, study
    from syncscope.policy import load_policy

    policy = load_policy(Path.cwd(), config)
    report, lanes, wanted = study(
        traces,
        with_stdout(output, format),
        policy,
        codes(select),
        codes(ignore),
        bare_ms=bare_ms,
        hta=hta,
        how=chosen(jobs, engine, scheduler),
        reading=reading(max_size, cache),
    )
    deliver(wanted, Content(report, lanes))
    end_unread(report)
