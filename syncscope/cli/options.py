"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

OUTPUT, CHOICE, READING = "Output", "Findings", "Reading traces"
"""Groups of options in ``--help``."""


def complete_rules(incomplete: str) -> Iterator[tuple[str, str]]:
    """The codes that the last of ``SYN101,CP`` may become, each with its rule's name."""
    from syncscope.schema.catalogue import read_catalogue

    before, comma, last = incomplete.rpartition(",")
    for rule in read_catalogue():
        if rule.code.startswith(last.upper()):
            yield f"{before}{comma}{rule.code}", rule.name


_TRACES = "Traces of torch.profiler or syncscope profile (.json, .json.gz), or folders of traces: the ranks of one run."
_REMOTE = "With the extra remote also URLs, such as s3://bucket/run/."
Traces = Annotated[list[str], typer.Argument(metavar="TRACE", help=f"{_TRACES} {_REMOTE}", show_default=False)]
TracesOrReports = Annotated[
    list[str],
    typer.Argument(metavar="TRACE|REPORT.json", help=f"{_TRACES} Or saved reports. {_REMOTE}", show_default=False),
]
Script = Annotated[
    list[str] | None,
    typer.Argument(metavar="SCRIPT [ARGS]", help="The program, and its own options.", show_default=False),
]
Module = Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")]
Format = Annotated[
    Literal["text", "concise", "json", "html", "sarif", "junit", "github", "markdown"] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        rich_help_panel=OUTPUT,
        help="What is printed: text (the default), concise (one line a finding), json, html, sarif, junit, github "
        "(annotations for GitHub Actions and the job's summary) or markdown.",
        show_default=False,
    ),
]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="[FORMAT=]PATH",
        rich_help_panel=OUTPUT,
        help="Write a file. Its ending says the format: .txt, .json, .html, .sarif, .xml or .md; or name it: text, "
        "concise, json, html, sarif, junit, github, markdown. The path - is standard output. Repeatable.",
        show_default=False,
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="RULES",
        rich_help_panel=CHOICE,
        help="Only these rules: codes or prefixes, such as SYN,CPY201.",
        show_default=False,
        autocompletion=complete_rules,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="RULES",
        rich_help_panel=CHOICE,
        help="All rules but these: codes or prefixes.",
        show_default=False,
        autocompletion=complete_rules,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", rich_help_panel=OUTPUT, help="Show all findings in full, and what lies behind their figures."
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="N",
        min=1,
        rich_help_panel=OUTPUT,
        help="Show only the first N findings.",
        show_default=False,
    ),
]
Open = Annotated[bool, typer.Option("--open", rich_help_panel=OUTPUT, help="Open the HTML report in the browser.")]
BareMs = Annotated[
    float | None,
    typer.Option(
        "--bare-ms",
        metavar="MS",
        min=0.001,
        rich_help_panel=CHOICE,
        help="Mean length of a step without a profiler. Savings need it where the trace does not have it.",
        show_default=False,
    ),
]
HTA = Annotated[
    bool,
    typer.Option(
        "--hta",
        rich_help_panel=OUTPUT,
        help="Add the tables of HolisticTraceAnalysis that syncscope hta prints (extra: hta).",
    ),
]
OnlyPhase = Annotated[
    str | None,
    typer.Option(
        "--phase",
        metavar="NAME",
        rich_help_panel=CHOICE,
        help="Only what is found in this phase of the program: its name, or a kind such as train, evaluate or "
        "generate.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        rich_help_panel=READING,
        help="Number of processes that read traces. Each holds one trace in memory. Default: one for each processor, "
        "or one process when there is little to read.",
        show_default=False,
    ),
]
Engine = Annotated[
    Literal["local", "dask"],
    typer.Option(
        "--engine",
        rich_help_panel=READING,
        help="Read traces on this machine (local) or on a cluster (dask; extra: cluster).",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        rich_help_panel=READING,
        help="Address of the dask scheduler, such as tcp://host:8786. The workers must see the traces under the same "
        "paths.",
        show_default=False,
    ),
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        rich_help_panel=READING,
        help="Largest uncompressed size of a trace, such as 500M or 20G; default: 8G. For a damaged trace the limit is "
        "a quarter of it.",
        show_default=False,
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache",
        rich_help_panel=READING,
        help="Keep the columns of each trace, and what was found in it, in your cache folder, and read them from there "
        "the next time (extra: cache).",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        rich_help_panel=CHOICE,
        help="Configuration file. Default: the nearest syncscope.toml, or pyproject.toml with a tool.syncscope table, "
        "in this folder or above.",
        readable=False,  # as of the baseline of check
        show_default=False,
    ),
]


def codes(values: list[str] | None) -> list[str]:
    """The codes in ``--select A,B --select C``."""
    return [code.strip() for value in values or () for code in value.split(",") if code.strip()]
