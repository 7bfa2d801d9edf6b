"""A report in Python and in notebooks."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

import syncscope
from syncscope.report import text_diff
from syncscope.report.forms import Report
from syncscope.report.text import to_text
from tests.report import sample
from tests.report.hostile import HOSTILE, spoiled


def test_it_is_a_line_in_a_list_and_the_summary_when_printed() -> None:
    report = sample.report()
    assert repr(report) == "<syncscope.Report: traces: 1, unexpected findings: 3>"
    assert str(report) == to_text(report).rstrip("\n")


def test_a_report_read_from_json_can_be_shown_too() -> None:
    program = "import sys; from syncscope import Report; print(Report.from_json(sys.stdin.read()))"
    shown = subprocess.run(
        [sys.executable, "-c", program], input=sample.report().to_json(), capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("step      5.1 → 4.7 ms")


def test_a_cell_shows_what_to_know_first_and_a_row_for_each_place() -> None:
    cell = sample.report()._repr_html_()
    assert "<b>step</b> 5.1 → 4.7 ms, −7.8 %, with all 3 changes" in cell
    assert cell.count("<tr>") == 1 + 3
    assert "<code>loss.item()</code>" in cell


def test_a_cell_does_not_grow_without_end() -> None:
    found = [msgspec.structs.replace(sample.findings()[0], fingerprint=str(number)) for number in range(50)]
    cell = sample.report(found=found)._repr_html_()
    assert cell.count("<tr>") == 1 + 20
    assert "… and 30 more" in cell


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_cell_are_no_markup(name: str) -> None:
    cell, plain = (spoiled(sample.report(), text)._repr_html_() for text in (name, "name"))
    if name:  # an empty expression is left out
        assert cell.count("<") == plain.count("<")
    assert "<img" not in cell and "<script" not in cell and "<b>bold" not in cell


def test_the_page_is_a_string() -> None:
    assert Report.from_json(sample.report().to_json()).to_html().startswith("<!doctype html>")


def test_a_comparison_is_a_line_in_a_list_and_what_the_command_prints_when_printed() -> None:
    changes = syncscope.diff(sample.report(), sample.report(found=()))
    assert repr(changes) == f"<syncscope.Diff: changes: {len(changes.changes)}, the same: 0>"
    assert str(changes) == text_diff.to_text(changes).rstrip("\n")
    assert "fixed SYN102 scalar-read" in str(changes)


def test_in_a_notebook_too_they_are_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(sample.report()).startswith("step      5.1 → 4.7 ms")
    assert str(syncscope.diff(sample.report(), sample.report())).endswith("nothing changed, 5 the same")
