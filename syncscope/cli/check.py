"""``syncscope check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

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
    Traces,
    codes,
)

if TYPE_CHECKING:
    from syncscope.policy import Baseline, Held, Policy
    from syncscope.schema.verdict import RatchetOutcome, Verdict

BaselineFile = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="What may stay: findings in this file pass, more of them fail. Written by the first run.",
        show_default=False,
    ),
]
Update = Annotated[
    bool, typer.Option("--update", help="Take out of the baseline what is fixed. Nothing is ever added to it.")
]
ExitZero = Annotated[
    bool, typer.Option("--exit-zero", help="Exit with 0 where findings, stale expectations or budgets would be a 1.")
]


def check(
    traces: Traces,
    format: Format = None,
    output: Output = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    baseline: BaselineFile = None,
    update: Update = False,
    exit_zero: ExitZero = False,
    jobs: Jobs = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Fail when traces hold waits that nobody expects: the gate for CI.

    Judges by how often a step waits, not by time, so the verdict is the same on every machine. Which rules are gated,
    which findings are expected, and budgets, which may be in time, stand under tool.syncscope in pyproject.toml, or in
    syncscope.toml; a comment on a line of the program expects what is found there. --select gates other rules instead,
    --ignore fewer. Give all traces of a run at once: an expectation that matches nothing in them is stale, and fails.

    A project full of waits begins with --baseline: the first run writes down what is there, later ones fail on what is
    new or occurs more often.

    [bold]Examples[/bold]

      syncscope check trace.json.gz
      syncscope check run/ --select SYN101,SYN102 -o report.html
      syncscope check trace.json.gz --format github -o waits.sarif -o junit.xml
      syncscope check trace.json.gz --baseline syncscope-baseline.json
      syncscope check trace.json.gz --baseline syncscope-baseline.json --update

    [bold]A line that may wait[/bold]

      history.append(loss.item())  # syncscope: expect SYN102 -- one read every 100 steps

    [bold]Exit status[/bold]: 0 clean; 1 unexpected findings, stale expectations or budgets exceeded; 2 wrong usage or
    configuration; 3 a trace or baseline cannot be read, a gated rule not be checked or a budget not be judged. What the
    other ranks show is a 1 also where one cannot be read.
    """
    from syncscope.cli.output import Content, deliver, with_stdout
    from syncscope.cli.study import chosen, reading, study, tell_unread
    from syncscope.policy import hold, load_policy, verdict

    policy = _gated(load_policy(Path.cwd(), config), codes(select), codes(ignore))
    saved = _saved(baseline, update)
    report, lanes, wanted = study(
        traces,
        with_stdout(output, format),
        policy,
        untouched=[baseline] if baseline else [],
        how=chosen(jobs, engine, scheduler),
        reading=reading(max_size, cache),
    )
    held = hold(report, policy, saved) if baseline else None
    report = held.report if held else report
    outcome = verdict(report, policy)
    if baseline is not None and held is not None:
        outcome = _ratcheted(outcome, held, baseline, saved, update)
    deliver(wanted, Content(report, lanes, outcome))
    tell_unread(report)
    raise typer.Exit(outcome.exit_code if not exit_zero else 3 if outcome.blind else 0)


def _gated(policy: Policy, select: list[str], ignore: list[str]) -> Policy:
    from syncscope.cli.study import check_codes

    selected = check_codes(select, ignore)
    chosen = policy.only(selected, selected if select else ())
    if not chosen.gate and policy.gate:
        raise CommandError("--select and --ignore leave no rule to check", USAGE)
    return chosen


def _saved(path: Path | None, update: bool) -> Baseline | None:
    from syncscope.policy import read_baseline

    if path is None:
        if update:
            raise CommandError("--update is for a baseline: name it with --baseline", USAGE)
        return None
    if not path.parent.is_dir():
        raise CommandError(f"{path}: its folder does not exist", USAGE)
    return read_baseline(path)


def _ratcheted(outcome: Verdict, held: Held, path: Path, saved: Baseline | None, update: bool) -> Verdict:
    """The verdict with what became of the baseline: written at first, tightened when asked to, and otherwise, and
    whenever anything is worse or could not be checked, left as it is."""
    from syncscope.cli.output import write
    from syncscope.schema.verdict import Ratchet

    became: RatchetOutcome = "held"
    if saved is None or (update and held.tightened != saved):
        became = "not written"
        if not outcome.unexpected and not outcome.not_checked and not outcome.unread:
            became = "written" if saved is None else "tightened"
            write(path, [held.tightened.to_json().encode()])
    ratchet = Ratchet(path=str(path), outcome=became, covered=held.covered, fixed=held.fixed)
    return msgspec.structs.replace(outcome, baseline=ratchet)
