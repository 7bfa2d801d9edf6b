"""The tables of the page on evidence, from what proofs left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.public.evidence import PAGE, ROWS, TOTALS, kept_rows, main, read_rows, totals, written

EMPTY = f"before\n{TOTALS[0]}old\n{TOTALS[1]}between\n{ROWS[0]}{ROWS[1]}after\n"


def line(warned: int, reported: float) -> dict[str, Any]:
    return {"file": "a.py", "line": 1, "warned": warned, "counted": reported, "reported": reported}


def result(program: str, *lines: dict[str, Any], one_in: float = 1.0, **statuses: int) -> dict[str, Any]:
    phases = [
        {"name": "start", "kind": "start", "steps": 0},
        {"name": "train", "kind": "train", "steps": 1200},
        {"name": "epoch end", "kind": "epoch end", "steps": 0},
    ]
    compared = {"lines": lines, "one_in": one_in, "phases": [*phases, *phases], "windows": ["rank 0 train 25-30 of 60"]}
    ended = {"bare": 0, "oracle": 0, "profile": 0, **statuses}
    return {"program": program, "compared": compared, "runs": {mode: {"status": ended[mode]} for mode in ended}}


def write(folder: Path, *results: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "details.jsonl").write_text("".join(json.dumps(one) + "\n" for one in results))
    return folder


def test_totals_are_the_sums_of_the_rows(tmp_path: Path) -> None:
    whole = result("mnist", line(10, 10), line(5, 4.0), line(3, 0))
    drawn = result("vae", line(1000, 1010.2), line(7, 7.2), one_in=8.0)
    rows = read_rows([("H100", write(tmp_path / "one", whole, drawn))])
    assert [row.program.name for row in rows] == ["mnist", "vae"]
    said = totals(rows)
    assert said.startswith("2 programs of 1 repositories, and 5 lines")
    assert "| every step was counted | 1 | 3 | 2 | 1 |" in said
    assert "counting paused | 1 | 2 | 2 | 1 |" in said


def test_a_row_says_what_the_run_did(tmp_path: Path) -> None:
    rows = read_rows([("H100", write(tmp_path / "one", result("mnist", line(1200, 1210.4), profile=1)))])
    cells = [cell.strip() for cell in rows[0].in_markdown().split("|")][1:-1]
    assert cells[0] == "mnist (pytorch/examples)" and cells[2:9] == ["H100", "1", "1", "0", "1,200", "1,210", "1"]
    assert cells[9:] == ["2 × train: 1,200", "train 25–29", "0→1"]


def test_of_a_program_that_ran_twice_the_last_counts_and_one_that_failed_alone_does_not(tmp_path: Path) -> None:
    first = write(tmp_path / "one", result("mnist", line(1, 1)), result("vae", line(1, 1)))
    second = write(tmp_path / "two", result("mnist", line(2, 2)), result("vae", line(2, 2), bare=1))
    rows = read_rows([("H100", first), ("H200", second)])
    assert [(row.program.name, row.device, row.sum_of("warned")) for row in rows] == [
        ("mnist", "H200", 2), ("vae", "H100", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["bare", "oracle", "profile"])
def test_a_program_of_which_a_run_was_cut_has_no_row(tmp_path: Path, mode: str) -> None:
    cut = result("mnist", line(2, 1))
    cut["runs"][mode]["status"] = "timeout"
    assert read_rows([("H100", write(tmp_path / "one", cut))]) == []


def test_the_page_keeps_what_is_around_its_tables(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", result("mnist", line(1, 1)))
    page = tmp_path / "page.md"
    page.write_text(EMPTY)
    main([f"H100={folder}", "--page", str(page)])
    text = page.read_text()
    assert "old" not in text and text.startswith("before\n") and text.endswith("after\n") and "\nbetween\n" in text
    assert "| mnist (pytorch/examples) |" in text
    assert written(text, read_rows([("H100", folder)])) == text
    with pytest.raises(SystemExit):
        main(["no folder"])


def test_rows_of_other_programs_stay_where_that_is_asked(tmp_path: Path) -> None:
    first = write(tmp_path / "one", result("mnist", line(3, 3), line(2, 0)), result("vae", line(9, 7), one_in=2.0))
    second = write(tmp_path / "two", result("mnist", line(2, 2)))
    page = tmp_path / "page.md"
    page.write_text(EMPTY)
    main([f"H100={first}", "--page", str(page)])
    main([f"H200={second}", "--page", str(page), "--add"])
    text = page.read_text()
    assert [row.program.name for row in kept_rows(text)] == ["mnist", "vae"]
    assert "| every step was counted | 1 | 1 | 1 | 1 |" in text
    assert "counting paused | 1 | 1 | 1 | 0 |" in text
    main([f"H200={second}", "--page", str(page)])
    assert [row.program.name for row in kept_rows(page.read_text())] == ["mnist"]


def test_the_page_has_a_place_for_both() -> None:
    text = PAGE.read_text()
    assert all(text.count(mark) == 1 for mark in (*TOTALS, *ROWS))
