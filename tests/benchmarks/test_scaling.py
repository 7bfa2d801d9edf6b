"""The exponent that is fitted is that of the growth."""

import math

import pytest

pytest.importorskip("psutil")

from benchmarks import measure, read, scaling
from fixtures import many_waits, repeat
from syncscope import analyze, load, rules
from syncscope.timeline import Timeline
from syncscope.timeline.tables import Calls
from syncscope.trace import load as read_trace


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power_is_found(power):
    sizes = [100, 300, 1000]
    assert scaling.exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)


def test_one_size_has_no_exponent():
    assert math.isnan(scaling.exponent([100], [1.0]))


def test_every_stage_is_timed():
    (row,) = scaling.measured(scaling.repeated(repeat.BASE), [3000])
    assert row.size > 1000
    assert len(row.stages) == len(scaling.STAGES)
    assert min(row.stages) > 0
    assert row.peak_mb > 10


def test_a_trace_of_many_waits_has_a_finding_for_each_line(tmp_path):
    many_waits.write(tmp_path / "trace.json", waits=60, lines=20)
    found = [one for one in analyze(tmp_path / "trace.json").findings if one.rule == "SYN102"]
    assert {one.site.line for one in found if one.site} == set(range(1, 21))
    assert {one.count for one in found} == {3}


@pytest.mark.parametrize(("what", "size"), [("waits", 30), ("lines", 20), ("steps", 20), ("ranks", 2)])
def test_whatever_is_varied_is_measured(what, size):
    varied = scaling.VARIED[what]
    (row,) = scaling.measured(varied.write, [size], varied.code)
    assert row.size == size
    assert row.total > 0


def test_kernels_have_their_names_and_streams_in_turn(tmp_path):
    many_waits.write(tmp_path / "trace.json", waits=60, lines=20, names=5, streams=3)
    device = load(tmp_path / "trace.json").device
    kernels = device[device["kind"] == "kernel"]
    assert kernels["name"].nunique() == 5
    assert kernels["stream"].nunique() == 3


def test_the_tables_have_a_cell_for_each_column():
    rows = [scaling.Row(events, [events * 1e-6] * len(scaling.STAGES), 100.0) for events in (100, 1000)]
    lines = scaling.table(rows, "events").splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[-1].startswith("| exponent | 1.00 |")


def test_the_summary_has_a_row_with_the_exponent_of_each_thing_that_is_varied():
    rows = [scaling.Row(size, [size**2 * 1e-6] * len(scaling.STAGES), 100.0) for size in (100, 1000)]
    made = scaling.summary({"lines": rows, "steps": rows[:1]}).splitlines()
    assert made[2] == "| lines | 100 · 1,000 | 0.04 · 4.00 | 2.00 | 100 · 100 |"
    assert made[3].startswith("| steps | 100 | 0.04 | nan |")


def test_of_several_runs_the_quickest_counts(monkeypatch):
    took = iter([[3.0, 1, 1, 1], [2.0, 1, 1, 1]])
    monkeypatch.setattr(measure, "run", lambda *_: measure.Measured(next(took), 0.0, 5.0))
    (row,) = scaling.measured(lambda path, size: size, [7], runs=2)
    assert (row.size, row.total) == (7, 5.0)


def test_ratios_are_to_our_own_read_of_the_same_trace():
    rows = [read.Row("syncscope", "5 steps", 2.0, 4.0, 100.0), read.Row("HTA", "5 steps", 50.0, 50.0, 1000.0)]
    assert "| HTA | 5 steps | 50.00 | 25.00 | 50.0 | 1,000 |" in read.table(rows, 200)


def test_rules_look_at_all_calls_as_often_for_many_lines_as_for_few(tmp_path, monkeypatch):
    """Else their time grows with the product of lines and calls."""
    looks = []
    real = Calls.do

    def do(calls, roles):
        looks.append(len(calls))
        return real(calls, roles)

    monkeypatch.setattr(Calls, "do", do)
    often = []
    for lines in (20, 60):
        path = tmp_path / f"{lines}.json"
        many_waits.write(path, waits=10 * lines, lines=lines)
        looks.clear()
        timeline = Timeline(read_trace(path))
        rules.find(timeline)
        whole = len(timeline.calls)
        often.append(sum(number == whole for number in looks))
    assert often[0] == often[1]
