"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE",
        help="Chrome traces of torch.profiler or of syncscope profile (.json, .json.gz), or folders of them: "
        "the ranks of one run. With the extra remote also URLs, as in s3://bucket/run/.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["text", "json", "sarif", "junit", "github", "markdown"] | None,
    typer.Option(
        "--format",
        help="What standard output gets: text unless something else is named. github: annotations for GitHub Actions, "
        "and the job's summary.",
        show_default=False,
    ),
]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="[FORMAT=]PATH",
        help="Write a file: text, json, html, sarif, junit, markdown or github, as named or by its ending (.txt, "
        ".json, .html, .sarif, .xml, .md); the path - is standard output. Repeatable.",
        show_default=False,
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", metavar="RULES", help="Only these rules: codes or prefixes, as in SYN,CPY201.", show_default=False
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="RULES", help="Not these rules: codes or prefixes.", show_default=False),
]
BareMs = Annotated[
    float | None,
    typer.Option(
        "--bare-ms",
        metavar="MS",
        min=0.001,
        help="Mean length of a step with no profiler, for savings from traces that do not hold it.",
        show_default=False,
    ),
]
HTA = Annotated[
    bool,
    typer.Option("--hta", help="Add the tables of HolisticTraceAnalysis, as syncscope hta prints them (extra: hta)."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Processes that read traces; each holds one trace in memory. Default: one a processor, where there is "
        "enough to read.",
        show_default=False,
    ),
]
Engine = Annotated[
    Literal["local", "dask"],
    typer.Option("--engine", help="local: this machine. dask: the workers of a cluster, with the extra cluster."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of the dask cluster, as in tcp://host:8786. Its workers must see the traces under the same paths.",
        show_default=False,
    ),
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        help="The largest trace read, inflated, as in 500M or 20G; 8G unless something else is named. A damaged one "
        "may be a quarter of it.",
        show_default=False,
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache",
        help="Keep what was read as columns in your cache folder, and take it from there the next time; needs the "
        "extra cache.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration to use instead of the nearest syncscope.toml or pyproject.toml with a "
        "tool.syncscope table, in this folder or above.",
        show_default=False,
    ),
]


def codes(values: list[str] | None) -> list[str]:
    """What ``--select A,B --select C`` lists."""
    return [code.strip() for value in values or () for code in value.split(",") if code.strip()]
