"""What the HTML page says, before any browser: sentences, figures, parts, and which finding a bar belongs to."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report import html_page
from syncscope.report.conclusion import conclude
from syncscope.report.picture.lanes import Spot
from syncscope.rules import RULES
from syncscope.schema.report import EachStep, Overlap, Report
from tests.report.sample import finding, lanes, report, trace_info


def overlap(**figures: float) -> Overlap:
    idle = {key[5:]: value for key, value in figures.items() if key.startswith("idle_") and key != "idle_ms"}
    base = dict.fromkeys(
        ("device_busy_ms", "compute_ms", "copy_ms", "copy_exposed_ms", "comm_ms", "comm_exposed_ms", "idle_ms"), 0.0
    )
    known = {**base, **{k: v for k, v in figures.items() if k in base}}
    return Overlap(**known, idle_by_cause=idle, longest_kernel=None)


def with_overlap(value: Overlap | None) -> Report:
    return report([msgspec.structs.replace(trace_info(), overlap=value)])


def test_the_parts_of_a_step_add_up_to_the_step() -> None:
    one = trace_info().overlap
    assert one is not None
    assert sum(part.ms for part in html_page.split_step(one)) == pytest.approx(one.device_busy_ms + one.idle_ms)


def test_hidden_copies_are_cut_out_of_compute_and_exposed_ones_stand_alone() -> None:
    made = {
        p.key: p.ms for p in html_page.split_step(overlap(device_busy_ms=5, compute_ms=4, copy_ms=2, copy_exposed_ms=1))
    }
    assert made == {"compute": 3, "copy_hidden": 1, "copy_exposed": 1}


def test_small_causes_of_idle_time_share_one_part() -> None:
    made = html_page.split_step(
        overlap(device_busy_ms=90, compute_ms=90, idle_ms=10, idle_wait=9, idle_a=0.6, idle_b=0.4)
    )
    assert [(part.label, part.ms) for part in made[1:]] == [("Idle: wait", 9), ("Idle: other causes", 1.0)]


def test_idle_time_without_a_cause_says_so() -> None:
    made = html_page.split_step(overlap(device_busy_ms=5, compute_ms=5, idle_ms=5, idle_wait=3))
    assert {part.label: part.ms for part in made}["Idle: cause unknown"] == pytest.approx(2)


def test_a_trace_without_device_rows_has_no_parts_and_unknown_figures() -> None:
    view = html_page.make_views(with_overlap(None), ())[0]
    assert view.parts == ()
    assert {figure.label: figure.ms for figure in view.figures}["Device idle"] is None


def test_the_figures_have_one_time_base_and_name_the_other() -> None:
    figures = {figure.label: figure for figure in html_page.make_views(report(), [lanes()])[0].figures}
    assert (figures["Recorded step"].ms, figures["Recorded step"].share) == (6.0, None)
    assert "5.1 ms without it" in figures["Recorded step"].note
    assert figures["Device idle"].share == pytest.approx(1.6 / 6.0)


def test_on_one_device_nothing_is_said_of_collectives() -> None:
    def labels(value: Overlap, ranks: int | None) -> list[str]:
        info = msgspec.structs.replace(trace_info(), overlap=value, world_size=ranks)
        return [figure.label for figure in html_page.make_figures(info, None)]

    alone = overlap(device_busy_ms=5, compute_ms=5)
    assert "Collectives exposed" not in labels(alone, None)
    assert "Collectives exposed" in labels(alone, 2)
    assert "Collectives exposed" in labels(overlap(device_busy_ms=5, comm_ms=1), None)


def test_the_host_s_wait_comes_from_the_lanes_else_from_the_steps() -> None:
    with_lanes, without = html_page.make_views(report(), [lanes()])[0], html_page.make_views(report(), ())[0]
    known = EachStep(length_ms=(6.0, 6.0), blocked_ms=(1.0, 3.0), copy_exposed_ms=None)
    each = html_page.make_views(report([msgspec.structs.replace(trace_info(), each_step=known)]), ())[0]
    blocked = [
        figure.ms for view in (with_lanes, without, each) for figure in view.figures if figure.label == "Host blocked"
    ]
    assert blocked == [2.08, None, 2.0]


def test_one_of_several_traces_with_nothing_to_report_says_what_was_not_looked_at() -> None:
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(2)]
    text = " ".join(html_page.make_views(report(infos, found=()), ())[0].details)
    assert "No unexpected findings." in text
    assert "1 rule could not be checked" in text


def test_what_the_lines_above_say_of_the_only_trace_is_not_said_again() -> None:
    made = report(found=())
    assert dict(conclude(made).lines)["first"].endswith("; 1 rule could not be checked")
    assert "could not be checked" not in " ".join(html_page.make_views(made, ())[0].details)


def test_one_step_is_no_mean() -> None:
    notes = [
        html_page.make_figures(msgspec.structs.replace(trace_info(), steps=steps), None)[0].note
        for number in (1, 3)
        for steps in [msgspec.structs.replace(trace_info().steps, count=number, bare_ms=None)]
    ]
    assert notes == ["under the profiler", "under the profiler, mean of 3"]


def test_lanes_belong_to_the_trace_of_their_path() -> None:
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(3)]
    views = html_page.make_views(report(infos), [lanes("out/rank2.json", 2), lanes("out/rank0.json", 0)])
    assert [view.lanes for view in views] == [1, None, 0]
    assert [view.label for view in views] == ["rank 0", "rank 1", "rank 2"]


def test_traces_without_ranks_go_by_file_name() -> None:
    views = html_page.make_views(report([trace_info("a/x.json"), trace_info("a/y.json")]), ())
    assert [view.label for view in views] == ["x.json", "y.json"]


def owners(made: Report, *spots: tuple[int, ...], trace: int = 0) -> list[int | None]:
    picture = msgspec.structs.replace(
        lanes(made.traces[trace].path),
        spots=tuple(Spot(file="train.py", line=5, findings=numbers) for numbers in spots),
    )
    return list(html_page.make_views(made, [picture])[trace].owners)


def test_a_bar_belongs_to_the_first_of_its_findings_wherever_that_stands_in_the_report() -> None:
    found = [finding("CPY201", "pageable-copy", 5, "x", number=4), finding("SYN101", "blocking-copy", 5, "x", number=2)]
    assert owners(report(found=found), (2, 4), (4, 2), ()) == [1, 0, None]


def test_a_bar_whose_first_finding_was_not_selected_belongs_to_the_next() -> None:
    found = [finding("CPY201", "pageable-copy", 5, "x", number=4)]
    assert owners(report(found=found), (2, 4), (2,)) == [0, None]


def test_numbers_are_those_of_the_findings_own_trace() -> None:
    infos = [trace_info(f"rank{rank}.json", rank) for rank in range(2)]
    found = [msgspec.structs.replace(finding("SYN102", "scalar-read", 5, "x", number=0), trace=t) for t in (1, 0)]
    assert owners(report(infos, found), (0,), trace=0) == [1]
    assert owners(report(infos, found), (0,), trace=1) == [0]


def test_a_finding_without_a_number_owns_no_bar() -> None:
    assert owners(report(found=[finding("DST601", "straggling-sync", 5, "x")]), (0,), ()) == [None, None]


def test_documentation_is_there_for_every_rule_spoken_of() -> None:
    docs = html_page.document_rules(report(found=[finding(rule.code, rule.name, 1, "x") for rule in RULES]))
    assert [doc.code for doc in docs] == sorted((rule.code for rule in RULES), key=lambda code: code[3:])
    assert all(doc.summary and "Bad:" in doc.doc for doc in docs)
    late = [finding("OVL303", "device-starved", 1, "x")]  # HAZ401 could not be checked
    assert [doc.code for doc in html_page.document_rules(report(found=late))] == ["OVL303", "HAZ401"]
    silent = msgspec.structs.replace(report(found=()), not_checked=())
    assert html_page.document_rules(silent) == ()
