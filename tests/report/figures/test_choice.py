"""``Report.figure``: what each figure shows, and what it says where there is nothing to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import syncscope
from syncscope.report.figures.colours import on_page
from syncscope.report.figures.savings import MOST_ROWS, find_savings
from syncscope.report.forms import Report
from syncscope.report.html import render
from syncscope.schema.findings import IdleCause
from syncscope.schema.report import Overlap, Steps
from tests.report import sample, sample_run
from tests.report.sample import HOSTILE

TRACES = Path(__file__).parents[3] / "fixtures" / "traces"


def recorded(case: str) -> Report:
    return syncscope.analyze(TRACES / case / "trace.json.gz")


def one(**changes: object) -> Report:
    """A report of one trace with something changed in it."""
    return sample.report([msgspec.structs.replace(sample.trace_info(), **changes)])


def test_the_step_is_a_bar_whose_pieces_lie_end_to_end() -> None:
    overlap = Overlap(
        device_busy_ms=8.0, compute_ms=6.0, copy_ms=3.0, copy_exposed_ms=2.0, comm_ms=0.0, comm_exposed_ms=0.0,
        idle_ms=2.0, idle_by_cause={"wait": 2.0},
    )  # fmt: skip
    figure = one(overlap=overlap).figure("step")
    pieces = {(bar.legendgroup, bar.base[0], bar.x[0]) for bar in figure.data}
    assert pieces == {
        ("Compute alone", 0.0, 5.0),
        ("Copy, hidden by compute", 5.0, 1.0),
        ("Copy, exposed", 6.0, 2.0),
        ("Idle: wait", 8.0, 2.0),
    }
    named = [bar.name for bar in figure.data if bar.showlegend]
    assert named == [
        "Compute alone, 5 ms, 50 %", "Copy, hidden by compute, 1 ms, 10 %", "Copy, exposed, 2 ms, 20 %",
        "Idle: wait, 2 ms, 20 %",
    ]  # fmt: skip


def test_savings_are_told_as_what_is_left_of_the_step() -> None:
    figure = recorded("quadrant_pageable_default").figure("savings")
    left, saved = figure.data[0], figure.data[1]
    step = left.x[0]
    assert [round(a + b, 6) for a, b in zip(left.x[1:], saved.x, strict=True)] == [round(step, 6)] * 3
    assert list(saved.base) == list(left.x[1:])
    said = [note.text for note in figure.layout.annotations]
    assert said[:4] == ["the step as it is", "<b>15.2 ms</b>", "workload.py:16  source.cuda(non_blocking=True)",
                        "<b>4.23 ms, −72 %</b>"]  # fmt: skip
    assert said[-2] == "all of them together"


def test_a_saving_that_is_only_likely_has_its_range() -> None:
    likely = msgspec.structs.replace(
        sample.findings()[0], saving_ms_per_step=None, likely_saving_ms_per_step=1.0,
        saving_low_ms_per_step=0.5, saving_high_ms_per_step=2.0,
    )  # fmt: skip
    figure = sample.report(found=[likely]).figure("savings")
    (line,) = (trace for trace in figure.data if trace.type == "scatter")
    assert [round(x, 6) for x in line.x] == [3.1, 4.6]
    assert figure.layout.annotations[3].text == "<b>about 4.1 ms, −20 %</b>"


def test_of_many_changes_the_greatest_have_a_bar_in_the_order_of_the_findings() -> None:
    found = [
        sample.finding("SYN102", "scalar-read", 100 + n, f"a[{n}].item()", severity="error", saving=0.1 + n / 100)
        for n in range(MOST_ROWS + 3)
    ]
    rows = find_savings(sample.report(found=found), 0)
    assert [round(row.saved_ms, 2) for row in rows[:MOST_ROWS]] == [0.13, 0.14, 0.15, 0.16, 0.17, 0.18, 0.19, 0.2]


def test_launches_and_a_wait_at_one_line_have_names_of_their_own() -> None:
    wait = sample.finding("SYN103", "dynamic-shape", 7, "loss.backward()", severity="error", saving=0.5)
    launches = sample.finding("LCH501", "launch-bound", 7, "loss.backward()", severity="warning", saving=2.5)
    names = [row.name for row in find_savings(sample.report(found=[launches, wait]), 0)[:2]]
    assert names == ["train.py:7  launch-bound", "train.py:7  loss.backward()"]


def test_a_cause_that_is_the_first_change_has_the_first_bar() -> None:
    found = [sample.finding("SYN102", "scalar-read", 7, "a.item()", severity="error", saving=0.5)]
    report = sample.report(found=found)
    cause = IdleCause(cause="data loading", ms_per_step=2.0)
    loading = msgspec.structs.replace(found[0], rule="OVL303", site=None, causes=(cause,), saving_ms_per_step=1.5)
    rows = find_savings(report, 0, loading)
    assert [(row.name.split()[-1], row.saved_ms) for row in rows[:2]] == [("loading", 1.5), ("a.item()", 0.5)]
    assert rows[0].fingerprint == loading.fingerprint
    assert find_savings(report, 0, report.findings[0]) == find_savings(report, 0)
    assert find_savings(report, 0, msgspec.structs.replace(loading, trace=1)) == find_savings(report, 0)


@pytest.mark.parametrize(("run_per_step", "drawn"), [(0.9, True), (0.1, False)])
def test_what_is_told_of_the_steps_of_the_run_has_a_bar_in_the_recorded_one(run_per_step: float, drawn: bool) -> None:
    """Unless it is rare: two of the five recorded steps may have what every tenth has."""
    report = sample_run.report()
    lead = next(one for one in report.findings if one.saving_ms_per_step)
    told = sample_run.rate(lead, run_per_step, 400, run_saving_ms_per_step=3.0)
    told = msgspec.structs.replace(told, per_step=1.0)
    rows = find_savings(msgspec.structs.replace(report, findings=(told,)), 0)
    assert [row.saved_ms for row in rows] == ([lead.saving_ms_per_step] if drawn else [])


def test_the_timeline_is_two_steps_of_the_page_cut_to_what_is_seen() -> None:
    figure = recorded("item_logging").figure("timeline")
    assert [label.strip() for label in figure.layout.yaxis.ticktext][1:] == ["MainThread", "idle", "stream 7"]
    end = figure.layout.xaxis.range[1]
    assert 29 < end < 30
    for bar in figure.data:
        assert min(bar.base) >= 0 and max(a + b for a, b in zip(bar.base, bar.x, strict=True)) <= end * (1 + 1e-5)
    waits = next(bar for bar in figure.data if bar.name == "wait")
    assert sum(waits.x) == pytest.approx(2 * 12.8, rel=0.02)
    assert "cudaStreamSynchronize" in waits.customdata[0]
    assert len(figure.to_json()) < 20_000


def test_the_run_is_drawn_where_it_was_counted() -> None:
    figure = sample_run.report().figure("run")
    assert {"train", "evaluate", "epoch end"} <= {trace.name for trace in figure.data}


NO_STEPS = Steps(count=0, profiled_ms=None, bare_ms=None, source="none")


@pytest.mark.parametrize(
    ("report", "name", "said"),
    [
        (one(overlap=None), "step", "the trace holds no device activity; record with `syncscope profile`"),
        (one(path="gone/trace.json"), "timeline", "which is not at 'gone/trace.json'; analyze it anew"),
        (one(), "run", "without --no-count to count the whole run"),
        (sample.report(found=()), "savings", "no change is known to save 1 % of the step"),
        (one(steps=NO_STEPS, replay=None), "savings", "call `syncscope.step()` at the end of each"),
        (one(), "savigns", "there are 'step', 'timeline', 'savings', 'run'"),
        (sample.report([], []), "step", "the report holds no trace"),
    ],
)
def test_what_is_not_there_says_what_to_record(report: Report, name: str, said: str) -> None:
    with pytest.raises(ValueError, match="figure") as raised:
        report.figure(name)  # type: ignore[arg-type]
    assert said in str(raised.value)


def test_a_trace_that_is_not_in_the_report_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no trace 3; the report has 1, from 0"):
        one().figure("step", trace=3)


def test_a_file_that_is_no_trace_any_more_is_told(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text("{")
    with pytest.raises(ValueError, match="can no longer be read"):
        one(path=str(file)).figure("timeline")


def test_names_are_no_markup_of_plotly() -> None:
    site = msgspec.structs.replace(sample.findings()[0].site, expression=HOSTILE, file=HOSTILE)  # type: ignore[type-var]
    found = [msgspec.structs.replace(sample.findings()[0], site=site)]
    text = " ".join(note.text for note in sample.report(found=found).figure("savings").layout.annotations)
    assert "<b>bold" not in text and "<img" not in text


def test_the_page_draws_the_same_step_and_savings() -> None:
    report = recorded("quadrant_pageable_default")
    page = render(report)
    for name in ("step", "savings"):
        bars = report.figure(name).data
        for bar in bars:
            assert msgspec.json.encode([float(f"{x:.17g}") for x in bar.x]).decode() in page
    assert on_page("compute") in page


def test_plotly_is_loaded_only_for_a_figure() -> None:
    program = (
        "import sys, syncscope; report = syncscope.analyze(sys.argv[1]); report._repr_html_(); print(repr(report)); "
        "print('plotly' in sys.modules); report.to_html(); print('plotly' in sys.modules); "
        "report.figure('step'); print('plotly' in sys.modules)"
    )
    trace = str(TRACES / "item_logging" / "trace.json.gz")
    done = subprocess.run([sys.executable, "-c", program, trace], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["False", "False", "True"]


def test_a_step_in_which_the_host_runs_ahead_is_as_long_as_its_device_work() -> None:
    report = recorded("clean_loop")
    info = report.traces[0]
    assert info.steps.profiled_ms is not None
    assert report.figure("timeline").layout.xaxis.range[1] == pytest.approx(2 * info.steps.profiled_ms, rel=0.02)


def without_asking(report: Report) -> Report:
    """The report, as if all its fixes could be made."""
    known = tuple(msgspec.structs.replace(one, asks_for_more=False) for one in report.findings)
    return msgspec.structs.replace(report, findings=known)


def test_idle_time_is_named_by_the_cause_that_is_not_another_findings() -> None:
    report = recorded("generate")
    rows = find_savings(without_asking(report), 0)
    assert [(row.name, row.said) for row in rows] == [
        ("launch-bound", "0.766 ms, −78 %"),
        ("workload.py:11  model.generate(prompt, max_new_tokens=60, do_sample=True)", "3.43 ms, −1.7 %"),
        ("workload.py:11  model.generate(prompt, max_new_tokens=60, do_sample=True)", "3.43 ms, −1.4 %"),
        ("device-starved: host work", "at most −24 %"),
        ("all of them together", "0.512 ms, −85 %"),
    ]
    assert "device-starved: host work" not in [row.name for row in find_savings(report, 0)]
    straggler = syncscope.analyze(TRACES / "ddp_straggler" / "trace" / "rank1.json.gz")
    rows = find_savings(without_asking(straggler), 0)
    assert [row.name for row in rows[:2]] == ["workload.py:22  loss.item()", "workload.py:22  host work"]
