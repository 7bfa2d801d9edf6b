"""What the HTML page says, before any browser: sentences, figures, parts, and which finding a bar belongs to."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report import page
from syncscope.report.picture.lanes import Spot
from syncscope.rules import RULES
from syncscope.schema.report import EachStep, Overlap, Report
from tests.report.sample import finding, lanes, report, trace_info


def overlap(**figures: float) -> Overlap:
    idle = {key[5:]: value for key, value in figures.items() if key.startswith("idle_") and key != "idle_ms"}
    base = dict.fromkeys(
        ("device_busy_ms", "compute_ms", "copy_ms", "copy_exposed_ms", "comm_ms", "comm_exposed_ms", "idle_ms"), 0.0
    )
    return Overlap(**{**base, **{k: v for k, v in figures.items() if k in base}}, idle_by_cause=idle)


def with_overlap(value: Overlap | None) -> Report:
    return report([msgspec.structs.replace(trace_info(), overlap=value)])


def test_the_parts_of_a_step_add_up_to_the_step() -> None:
    one = trace_info().overlap
    assert one is not None
    assert sum(part.ms for part in page.parts(one)) == pytest.approx(one.device_busy_ms + one.idle_ms)


def test_hidden_copies_are_cut_out_of_compute_and_exposed_ones_stand_alone() -> None:
    made = {p.key: p.ms for p in page.parts(overlap(device_busy_ms=5, compute_ms=4, copy_ms=2, copy_exposed_ms=1))}
    assert made == {"compute": 3, "copy_hidden": 1, "copy_exposed": 1}


def test_small_causes_of_idle_time_share_one_part() -> None:
    made = page.parts(overlap(device_busy_ms=90, compute_ms=90, idle_ms=10, idle_wait=9, idle_a=0.6, idle_b=0.4))
    assert [(part.label, part.ms) for part in made[1:]] == [("Idle: wait", 9), ("Idle: other causes", 1.0)]


def test_idle_time_without_a_cause_says_so() -> None:
    made = page.parts(overlap(device_busy_ms=5, compute_ms=5, idle_ms=5, idle_wait=3))
    assert {part.label: part.ms for part in made}["Idle: cause unknown"] == pytest.approx(2)


def test_a_trace_without_device_rows_has_no_parts_and_unknown_figures() -> None:
    view = page.views(with_overlap(None), ())[0]
    assert view.parts == ()
    assert "no device activity" in view.verdict
    assert {figure.label: figure.ms for figure in view.figures}["Device idle"] is None


def test_the_verdict_names_the_largest_loss() -> None:
    cases = [
        (overlap(device_busy_ms=60, compute_ms=50, copy_ms=10, copy_exposed_ms=10, idle_ms=40), "idle for 40 %"),
        (overlap(device_busy_ms=90, compute_ms=60, copy_ms=30, copy_exposed_ms=30, idle_ms=10), "Copies"),
        (overlap(device_busy_ms=99, compute_ms=69, comm_ms=30, comm_exposed_ms=30, idle_ms=1), "Collectives"),
        (overlap(device_busy_ms=99, compute_ms=99, idle_ms=1), "busy for 99 %"),
    ]
    for value, words in cases:
        assert words in page.views(with_overlap(value), ())[0].verdict


def test_the_host_s_wait_comes_from_the_lanes_else_from_the_steps() -> None:
    with_lanes, without = page.views(report(), [lanes()])[0], page.views(report(), ())[0]
    assert "blocked for 2.08 ms a step" in " ".join(with_lanes.details)
    known = EachStep(length_ms=(6.0, 6.0), blocked_ms=(1.0, 3.0), copy_exposed_ms=None)
    each = page.views(report([msgspec.structs.replace(trace_info(), each_step=known)]), ())[0]
    blocked = [
        figure.ms for view in (with_lanes, without, each) for figure in view.figures if figure.label == "Host blocked"
    ]
    assert blocked == [2.08, None, 2.0]


def test_a_trace_with_nothing_to_report_says_what_was_not_looked_at() -> None:
    text = " ".join(page.views(report(found=()), ())[0].details)
    assert "No unexpected findings." in text
    assert "1 rule could not be checked" in text


def test_lanes_belong_to_the_trace_of_their_path() -> None:
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(3)]
    views = page.views(report(infos), [lanes("out/rank2.json", 2), lanes("out/rank0.json", 0)])
    assert [view.lanes for view in views] == [1, None, 0]
    assert [view.label for view in views] == ["rank 0", "rank 1", "rank 2"]


def test_traces_without_ranks_go_by_file_name() -> None:
    views = page.views(report([trace_info("a/x.json"), trace_info("a/y.json")]), ())
    assert [view.label for view in views] == ["x.json", "y.json"]


def spot(line: int | None, expression: str | None = None, op: str = "aten::item") -> Spot:
    return Spot(
        file=None if line is None else "train.py",
        line=line,
        expression=expression,
        at_file=None if line is None else "<site-packages>/lib/metrics.py",
        at_line=None if line is None else 88,
        op=op,
    )


def test_a_wait_and_a_copy_of_one_place_belong_to_their_own_findings() -> None:
    found = (
        finding("CPY201", "pageable-copy", 5, "x.to(d)", op="aten::copy_"),
        finding("SYN101", "blocking-copy", 5, "x.to(d)", op="aten::copy_"),
    )
    assert page.spot_findings(report(found=found), 0, [spot(5, "x.to(d)", "aten::copy_")]) == ((1, 0),)


def test_expressions_of_one_line_are_told_apart() -> None:
    found = (finding("SYN102", "scalar-read", 5, "a.item()"), finding("SYN102", "scalar-read", 5, "b.item()"))
    assert page.spot_findings(report(found=found), 0, [spot(5, "b.item()")]) == ((1, 1),)


def test_without_lines_the_operation_decides() -> None:
    found = (
        finding("SYN109", "library-sync", None, None, op="aten::linalg_inv_ex"),
        finding("SYN102", "scalar-read", None, None, op="aten::item"),
    )
    spots = [spot(None, op="aten::item"), spot(None, op="aten::other")]
    assert page.spot_findings(report(found=found), 0, spots) == ((1, 1), (None, None))


def test_another_trace_s_findings_are_not_this_one_s() -> None:
    found = (msgspec.structs.replace(finding("SYN102", "scalar-read", 5, "a.item()"), trace=1),)
    assert page.spot_findings(report(found=found), 0, [spot(5, "a.item()")]) == ((None, None),)


def test_documentation_is_there_for_every_rule_spoken_of() -> None:
    docs = page.rule_docs(report(found=[finding(rule.code, rule.name, 1, "x") for rule in RULES]))
    assert [doc.code for doc in docs] == sorted(rule.code for rule in RULES)
    assert all(doc.summary and "Bad:" in doc.doc for doc in docs)
    silent = msgspec.structs.replace(report(found=()), not_checked=())
    assert page.rule_docs(silent) == ()


def test_numbers_keep_three_digits_in_the_unit_that_suits() -> None:
    assert [page.milliseconds(ms) for ms in (0.0124, 1.634, 163.4, 4321.0)] == [
        "12.4 µs",
        "1.63 ms",
        "163 ms",
        "4321 ms",
    ]
    assert [page.percent(*pair) for pair in ((0.001, 1), (0.27, 1), (1, None), (0, 1))] == [
        "under 1 %",
        "27 %",
        "—",
        "0 %",
    ]
