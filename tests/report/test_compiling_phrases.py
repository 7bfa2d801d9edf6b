"""What is said of waits that a program makes only while it compiles."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from syncscope.report.compiling_phrases import describe_compiling
from syncscope.report.html_run import make_runs
from syncscope.report.markdown import render as render_markdown
from syncscope.report.text import render
from syncscope.schema.findings import Frame, Site
from syncscope.schema.report import Report
from syncscope.schema.run import CompilingWaits, Counted, Run
from tests.report.hostile import HOSTILE, unseen
from tests.report.sample_run import info, report, run

AT = Frame(file="<site-packages>/torch/_inductor/fx_passes/joint_graph.py", line=295, function="fold")
SAID = "train.py:30 model(x), while it compiles: 61 waits in all (not part of a step)"


def waits(number: int, line: int = 30, expression: str | None = "model(x)", **more: bool) -> CompilingWaits:
    site = Site(file="train.py", line=line, function="main", expression=expression)
    return CompilingWaits(site=site, at=AT, waits=number, **more)


def compiling(*some: CompilingWaits) -> Run:
    return run(counted=Counted(one_in=1.0, overhead_share=0.004, compiling=some))


def in_terminal(made: Report, width: int) -> list[str]:
    buffer = io.StringIO()
    render(made, Console(file=buffer, width=width, color_system=None))
    return buffer.getvalue().splitlines()


def test_all_waits_of_a_line_are_one_sentence() -> None:
    assert describe_compiling(compiling(waits(49), msgspec.structs.replace(waits(12), at=AT))) == [SAID]
    assert describe_compiling(compiling(waits(1, expression=None))) == [
        "train.py:30, while it compiles: 1 wait in all (not part of a step)"
    ]


def test_where_steps_were_not_counted_there_may_be_more() -> None:
    (said,) = describe_compiling(compiling(waits(49, at_least=True), waits(12)))
    assert said == "train.py:30 model(x), while it compiles: at least 61 waits (not part of a step)"


def test_few_lines_are_named() -> None:
    said = describe_compiling(compiling(*(waits(9 - number, number) for number in range(6))))
    assert len(said) == 5
    assert said[-1] == "2 more lines, while they compile: 9 waits"


@pytest.mark.parametrize("counted", [None, Counted(one_in=1.0, overhead_share=None)])
def test_nothing_is_said_where_nothing_is_known(counted: Counted | None) -> None:
    assert describe_compiling(run(counted=counted)) == []


def test_text_page_and_markdown_say_it() -> None:
    made = report([info(run=compiling(waits(61)))])
    assert f"  {SAID}" in in_terminal(made, 100)
    assert make_runs(made).views[0].lines == (f"{SAID}.",)
    assert r"while it compiles\: 61 waits in all" in render_markdown(made)
    again = Report.from_json(made.to_json().encode()).traces[0].run
    assert again is not None and again.counted == Counted(one_in=1.0, overhead_share=0.004, compiling=(waits(61),))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_names_stay_names(text: str) -> None:
    one = msgspec.structs.replace(waits(61), site=Site(file=text, line=1, function=text, expression=text))
    lines = in_terminal(report([info(run=compiling(one))]), 80)
    assert not unseen("\n".join(lines))
    assert not [line for line in lines if line.lstrip().startswith("::")]
