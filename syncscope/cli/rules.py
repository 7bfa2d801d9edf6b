"""``syncscope rules``: list the rules, or explain one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import complete_rules
from syncscope.schema.catalogue import RuleEntry, read_catalogue


def rules(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="RULE",
            help="A rule's code or name, or how codes begin.",
            show_default=False,
            autocompletion=complete_rules,
        ),
    ] = None,
) -> None:
    """List the rules, or explain one.

    [bold]Examples[/bold]

      syncscope rules
      syncscope rules CPY
      syncscope rules SYN102
      syncscope rules scalar-read

    [bold]Exit status[/bold]: 0 done; 2 an unknown rule.
    """
    every = read_catalogue()
    if code is None:
        _list(every)
        return
    for rule in every:
        if code.upper() == rule.code or code.lower() == rule.name:
            _explain(rule)
            return
    if alike := [rule for rule in every if rule.code.startswith(code.upper())]:
        _list(alike)
        return
    from difflib import get_close_matches

    known = [name for rule in every for name in (rule.code, rule.name)]
    close = get_close_matches(code, known, n=1) or get_close_matches(code.upper(), known, n=1)
    hint = f', did you mean "{close[0]}"?' if close else "; `syncscope rules` lists them"
    raise CommandError(f'unknown rule "{code}"{hint}', USAGE)


def _list(rules: Sequence[RuleEntry]) -> None:
    """A table on a terminal, else a line a rule, for other programs."""
    from syncscope.cli.console import may_be_terminal, stdout, write_stdout

    rows = [(rule.code, rule.name, rule.severity, rule.summary) for rule in rules]
    if not may_be_terminal(sys.stdout):
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        write_stdout("".join(f"{line}\n" for line in lines))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    stdout().print(table)


def _explain(rule: RuleEntry) -> None:
    from rich.text import Text

    from syncscope.cli.console import stdout, unwrap

    console = stdout()
    console.print(Text.assemble((f"{rule.code} {rule.name}", "bold"), (f"  {rule.severity}", "dim")))
    for paragraph in unwrap(rule.doc):
        console.print()
        console.print(Text(paragraph), soft_wrap="\n" in paragraph)
