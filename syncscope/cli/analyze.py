"""``syncscope analyze``: report on traces."""

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
    OnlyPhase,
    Open,
    Output,
    Scheduler,
    Select,
    Top,
    Traces,
    Verbose,
    codes,
)


def analyze(
    traces: Traces,
    format: Format = None,
    output: Output = None,
    verbose: Verbose = False,
    top: Top = None,
    open: Open = False,
    select: Select = None,
    ignore: Ignore = None,
    phase: OnlyPhase = None,
    bare_ms: BareMs = None,
    hta: HTA = False,
    config: Config = None,
    jobs: Jobs = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Show where a program waits, what each wait costs, what its fix saves, and how to remove it.

    The saving comes from a replay of the recorded steps without the wait. --select and --ignore also choose the
    findings in "all fixed together". The ranks of a run are read in parallel and compared: which rank waits for which,
    and how far apart their clocks are. Traces that cannot be read are named, and the report covers the others.

    [bold]Examples[/bold]

      syncscope analyze trace.json.gz
      syncscope analyze run/ -o report.html -o report.json
      syncscope analyze run/ --open
      syncscope analyze trace.json.gz --format concise --top 3
      syncscope analyze trace.json.gz --select SYN --format json
      syncscope analyze trace.json.gz -o sarif=waits.sarif -o markdown=-

      syncscope analyze s3://bucket/run/ --engine dask --scheduler tcp://head:8786

    [bold]Exit status[/bold]: 0 done, whatever was found; 2 wrong usage or configuration; 3 a trace cannot be read, even
    when others can.
    """
    from syncscope.cli.inputs import analyze_traces, choose_phase, exit_if_unread, reading_options, select_engine
    from syncscope.cli.output import Content, open_pages, view, with_page, with_stdout, write_outputs
    from syncscope.policy import load_policy

    policy = load_policy(Path.cwd(), config)
    report, pictures, wanted = analyze_traces(
        traces,
        with_page(with_stdout(output, format), open),
        policy,
        codes(select),
        codes(ignore),
        bare_ms=bare_ms,
        hta=hta,
        engine=select_engine(jobs, engine, scheduler),
        reading=reading_options(max_size, cache),
    )
    write_outputs(wanted, Content(choose_phase(report, phase), pictures, view=view(verbose, top)))
    open_pages(wanted, open)
    exit_if_unread(report)
