"""The figure of the whole run, as data for plotly."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report.figures.run import draw_run, name_colours
from syncscope.report.html_run import MOST_FIGURES, MOST_PHASES, make_runs
from syncscope.schema.run import Stretch
from tests.report import sample
from tests.report.sample import HOSTILE
from tests.report.sample_run import EPOCH_END, EVALUATE, START, TRAIN, info, ranks, report, run


def traces(figure: Any, axis: str) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data if trace.yaxis == axis}


def stretch(start: float, seconds: float, phase: int, **changes: Any) -> Stretch:
    known = {"steps": 10, "waits_per_step": 2.0, "windows": False} | changes
    return Stretch(start_s=start, seconds=seconds, phase=phase, **known)


def test_phases_lie_where_they_were_and_stretches_of_one_are_joined() -> None:
    made = run(seconds=30.0, stretches=(
        stretch(0, 2, START, steps=0, waits_per_step=None), stretch(2, 8, TRAIN), stretch(10, 10, TRAIN),
        stretch(20, 4, EVALUATE), stretch(24, 6, TRAIN),
    ))  # fmt: skip
    strip = traces(draw_run(made), "y2")
    assert set(strip) == {"start", "train", "evaluate"}
    assert list(strip["train"].x) == [11.0, 27.0]
    assert list(strip["train"].width) == [18.0, 6.0]


def test_waits_a_step_are_as_high_as_counted_and_absent_where_unknown() -> None:
    made = run(seconds=30.0, stretches=(
        stretch(0, 10, TRAIN, waits_per_step=2.5), stretch(10, 10, TRAIN, waits_per_step=0.0),
        stretch(20, 10, EPOCH_END, waits_per_step=None),
    ))  # fmt: skip
    bars = traces(draw_run(made), "y")
    assert list(bars["train"].y) == [2.5, 0.0]
    assert "epoch end" not in bars


def test_a_phase_that_dwarfs_the_others_makes_the_axis_logarithmic() -> None:
    near, far = (
        run(stretches=(stretch(0, 1, TRAIN), stretch(1, 1, EVALUATE, waits_per_step=waits))) for waits in (50.0, 200.0)
    )
    assert draw_run(near).layout.yaxis.type is None
    assert draw_run(far).layout.yaxis.type == "log"


def test_stretches_in_no_order_or_of_no_length_are_drawn() -> None:
    stretches = (stretch(8, 2, TRAIN), stretch(3, 2, TRAIN), stretch(9, -4, EVALUATE))
    made = run(seconds=30.0, stretches=stretches)
    assert [width for trace in draw_run(made).data if trace.yaxis == "y2" for width in trace.width] == [7.0, 0.0]


def test_waits_of_a_sliver_of_the_run_leave_only_its_phases() -> None:
    sliver = run(seconds=30.0, stretches=(stretch(0, 0.1, TRAIN), stretch(0.1, 29.9, TRAIN, waits_per_step=None)))
    quiet = run(seconds=30.0, stretches=(stretch(0, 30, TRAIN, waits_per_step=0.0),))
    for made in (sliver, quiet):
        figure = draw_run(made)
        assert traces(figure, "y") == {}
        assert figure.layout.height < draw_run(run(seconds=30.0, stretches=(stretch(0, 30, TRAIN),))).layout.height


def test_each_recorded_stretch_has_one_mark() -> None:
    made = run(seconds=40.0, stretches=(
        stretch(0, 10, TRAIN, windows=True), stretch(10, 10, TRAIN), stretch(20, 4, TRAIN, windows=True),
        stretch(24, 6, TRAIN, windows=True),
    ))  # fmt: skip
    (marks,) = (trace for trace in draw_run(made).data if trace.type == "scatter")
    assert list(marks.x) == [5.0, 25.0]
    assert [trace.type for trace in draw_run(run(stretches=(stretch(0, 1, TRAIN),))).data] == ["bar", "bar"]


@pytest.mark.parametrize(("seconds", "unit", "last"), [(61.2, " s", 61.2), (600.0, " min", 10.0), (36000.0, " h", 10)])
def test_time_is_in_the_unit_that_suits(seconds: float, unit: str, last: float) -> None:
    axis = draw_run(run(seconds=seconds)).layout.xaxis
    assert (axis.ticksuffix, axis.range[1]) == (unit, pytest.approx(last))


def test_the_longest_phases_have_a_colour_of_their_own() -> None:
    one = run().phases[TRAIN]
    phases = [msgspec.structs.replace(one, name=f"p{n}", share=0.1 + n / 100) for n in range(7)]
    made = run(phases=(*phases, msgspec.structs.replace(run().phases[START], share=0.9)))
    assert name_colours(made) == [
        "phase-rest", "phase-rest", "phase-5", "phase-4", "phase-3", "phase-2", "phase-1", "phase-rest"
    ]  # fmt: skip


def test_names_are_no_markup_of_plotly() -> None:
    phases = tuple(msgspec.structs.replace(phase, name=HOSTILE) for phase in run().phases)
    text = draw_run(run(phases=phases)).to_json()
    assert "<b>bold" not in text and "u003cb\\u003ebold" not in text
    assert "&lt;b&gt;bold" in text or "\\u0026lt;b\\u0026gt;bold" in text


def test_a_stretch_of_a_phase_that_is_not_there_is_left_out() -> None:
    broken = run(stretches=(stretch(0, 1, TRAIN), stretch(1, 1, 99, windows=True), stretch(2, 1, -1)))
    assert {trace.name for trace in draw_run(broken).data} == {"train"}


def test_where_nothing_was_counted_the_phases_stand_alone() -> None:
    figure = draw_run(run(stretches=(stretch(0, 1, TRAIN, waits_per_step=None),)))
    assert set(traces(figure, "y2")) == {"train"}
    assert traces(figure, "y") == {}
    assert not figure.layout.annotations
    assert figure.layout.height < draw_run(run()).layout.height


def test_a_run_of_no_time_is_not_drawn() -> None:
    assert make_runs(report([info(run=run(seconds=0.0))])).views[0].figure is None


def test_a_run_without_stretches_is_no_figure_but_rows() -> None:
    (view,) = make_runs(report([info(run=run(stretches=()))])).views
    assert view.figure is None
    assert [row.name for row in view.phases] == ["train", "evaluate", "epoch end", "start"]


def test_of_many_phases_the_shortest_share_a_row() -> None:
    phases = tuple(msgspec.structs.replace(run().phases[TRAIN], name=f"p{n}", share=0.02) for n in range(50))
    (view,) = make_runs(report([info(run=run(phases=phases))])).views
    assert len(view.phases) == MOST_PHASES + 1
    assert (view.phases[-1].name, view.phases[-1].share) == ("34 more", "68 %")


def test_the_page_has_one_run_for_all_traces_of_a_process() -> None:
    runs = make_runs(ranks(3))
    assert runs.of == (0, 0, 1, 1, 2, 2)
    assert len(runs.views) == 3
    assert runs.views[0].differences == (
        "rank 2 differs: train: 380 steps, not 412; train: 3.1 waits a step, not 2.1.",
    )
    assert runs.often[0] == "every 10 steps (41 in 412)"


def test_of_many_processes_only_the_first_are_drawn() -> None:
    views = make_runs(ranks(MOST_FIGURES + 2, odd=None)).views
    assert sum(view.figure is not None for view in views) == MOST_FIGURES


def test_a_figure_of_many_stretches_is_small() -> None:
    many = tuple(
        stretch(n * 3.3333333, 3.3333333, TRAIN if n % 2 else EVALUATE, waits_per_step=2.123456789) for n in range(400)
    )
    (view,) = make_runs(report([info(run=run(stretches=many, seconds=1333.3))])).views
    assert len(msgspec.json.encode(view)) < 120_000


def test_a_report_without_a_run_has_none() -> None:
    assert make_runs(sample.report()).views == ()
