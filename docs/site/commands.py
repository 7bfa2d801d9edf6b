"""The page on the options of the commands, made from the command line itself."""

from __future__ import annotations

import re
from typing import Any

import typer

from docs.site.markdown import cell, code_cell, fenced
from syncscope.cli import app
from syncscope.cli.console import unwrap

HEAD = """\
# Options of the commands

This page is made from the commands: `syncscope COMMAND --help` says the same.
[Commands and outputs](docs/outputs.md) shows how to use them.
"""
BOLD = re.compile(r"\[/?bold\]")


def render() -> str:
    """The page. Links lead from the root of the repository."""
    group: Any = typer.main.get_command(app)
    parent = group.make_context("syncscope", [], resilient_parsing=True)
    return "\n".join([HEAD, *(_command(name, group.get_command(parent, name), parent) for name in group.commands)])


def _command(name: str, command: Any, parent: Any) -> str:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    usage = f"syncscope {name} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"## syncscope {name}\n", fenced(usage, "text"), *map(_paragraph, unwrap(command.help or ""))]
    rows: dict[str, list[str]] = {"argument": [], "option": []}
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            rows[parameter.param_type_name].append(f"| {code_cell(record[0])} | {cell(record[1])} |")
    parts += [f"| {kind} | meaning |\n|---|---|\n" + "\n".join(found) + "\n" for kind, found in rows.items() if found]
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    """A paragraph of the help, whose lines are indented where it is code."""
    if text.startswith("  "):
        return fenced("\n".join(line[2:] for line in text.splitlines()), "console")
    return BOLD.sub("**", text.replace("<", "&lt;")) + "\n"
