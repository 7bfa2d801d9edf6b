"""The job summary: what stands against the gate in a table, the rest in a line each."""

from __future__ import annotations

import msgspec
from markdown_it import MarkdownIt

from syncscope.report.markdown import MOST_ROWS, render
from syncscope.schema.findings import WorkEnd
from syncscope.schema.report import NotChecked
from syncscope.schema.verdict import Budget, Verdict
from tests.report import sample


def html(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_the_headline_is_how_the_gate_ended() -> None:
    report = sample.report()
    page = html(render(report, Verdict(gate=("SYN102",), unexpected=report.findings[:1], stale=report.stale)))
    assert page.startswith(
        "<h3>syncscope: failed: 1 unexpected finding, 1 stale expectation · 1 expected · 1 in the baseline</h3>"
    )
    assert html(render(report, Verdict(gate=("SYN102",)))).startswith("<h3>syncscope: passed: SYN102 · ")
    assert html(render(report)).startswith("<h3>syncscope: 3 findings · 1 expected · ")


def test_a_finding_is_a_row_with_its_line_weight_and_fix() -> None:
    report = sample.report()
    page = html(render(report, Verdict(gate=("SYN102",), unexpected=report.findings[:1])))
    assert "<td>saves 3.7 %<br>0.19 ms<br><strong>SYN102</strong> scalar-read</td>" in page
    assert "<td><code>train.py:42</code><br><code>loss.item()</code><br>in <code>train_step</code></td>" in page
    assert "<td>once a step · blocked 1.63 ms (27 % of the recorded step)</td>" in page
    assert "<br><strong>Fix:</strong> Keep the value on the device and read it once an epoch.</td>" in page
    assert "CPY201" not in page


def test_host_work_that_ends_at_a_line_is_before_it() -> None:
    (read,) = sample.findings()[:1]
    assert read.site is not None
    ended = msgspec.structs.replace(read, work_ends_at=(WorkEnd(site=read.site, share=0.9),))
    assert "<td>before <code>train.py:42</code>" in html(render(sample.report(found=[ended])))


def test_what_goes_beyond_a_baseline_says_so() -> None:
    more = msgspec.structs.replace(sample.findings()[0], exceeds="baseline 1, now 2")
    assert "<br>baseline 1, now 2<br><strong>Fix:" in html(render(sample.report(found=[more])))


def test_stale_budgets_and_rules_not_checked_have_a_line_each() -> None:
    report = sample.report(found=[])
    budget = Budget(name="max_stall_share", allowed=0.1, found=0.4, outcome="exceeded", message="40 % of 10 %")
    unseen = NotChecked(rule="SYN102", why="no ops")
    page = html(render(report, Verdict(gate=(), stale=report.stale, budgets=(budget,), not_checked=(unseen,))))
    assert "<li>stale expectation <code>pyproject.toml:41</code>: SYN103 matches nothing; delete it" in page
    assert "<li>budget exceeded: <code>max_stall_share</code>, 40 % of 10 %</li>" in page
    assert "<li>not checked: SYN102: no ops</li>" in page


def test_every_trace_has_its_row_and_its_warnings() -> None:
    page = html(render(sample.report()))
    assert "<td><code>trace.json.gz</code></td>\n<td><code>NVIDIA H200</code></td>" in page
    assert "The file was cut short" in page


def test_what_to_know_first_stands_under_the_headline() -> None:
    assert "<p><strong>step</strong> 5.1 → 4.7 ms" in html(render(sample.report()))


def test_many_findings_are_cut_and_counted() -> None:
    found = [
        msgspec.structs.replace(sample.findings()[0], fingerprint=f"{number:016x}") for number in range(MOST_ROWS + 3)
    ]
    text = render(sample.report(found=found))
    assert text.count("scalar") == MOST_ROWS
    assert "… and 3 more" in text
