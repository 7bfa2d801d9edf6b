"""Several ranks in a terminal, and a thousand."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from syncscope.report import html, junit, markdown, text_ranks
from syncscope.report.notable import notable, reduced
from syncscope.report.text import to_text
from syncscope.report.trace_phrases import group_warnings, join_labels
from syncscope.report.view import View
from syncscope.schema.findings import Finding
from syncscope.schema.ranks import BetweenRanks, RankBetween, Unread, WaitsFor
from syncscope.schema.report import Asked, NotChecked, Report
from tests.report import sample

MANY = 1024
LATE = 517


def of_ranks(number: int, late: int, clock_ms: float = 0.0) -> Report:
    """Each rank has the sample's findings; one holds all others, and the second half has another clock."""
    infos, findings, unseen = [], [], []
    for rank in range(number):
        infos.append(sample.trace_info(f"run/rank{rank}.json.gz", rank))
        mine = sample.findings(rank=rank)
        findings += [msgspec.structs.replace(finding, trace=rank) for finding in mine]
        if rank:
            unseen.append(NotChecked(rule="SYN110", why="nobody looked", trace=rank, rank=rank))
    straggler = sample.finding("DST601", "straggling-sync", 7, "log(loss)", rank=late)
    findings.append(msgspec.structs.replace(straggler, trace=late))
    rows = tuple(
        RankBetween(
            trace=rank, rank=rank, collectives=10, last=10 * (rank == late),
            waits_ms_per_step=0.0 if rank == late else 2.0, holds_ms_per_step=2.0 if rank == late else 0.0,
            waits_for=() if rank == late else (WaitsFor(trace=late, rank=late, ms_per_step=1.5),),
            clock_offset_ms=clock_ms if rank >= number // 2 else 0.0, clock_spread_ms=0.001,
        )
        for rank in range(number)
    )  # fmt: skip
    report = sample.report(infos, findings)
    between = BetweenRanks(steps=2, collectives=10, reference=0, ranks=rows)
    return msgspec.structs.replace(
        report, not_checked=tuple(unseen), between_ranks=between, saving_all_ms_per_step=None
    )


@pytest.fixture(scope="module")
def many() -> Report:
    return of_ranks(MANY, LATE, 31.7)


def test_warnings_of_ranks_that_differ_in_a_time_alone_are_one() -> None:
    def grouped(*warnings: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        report = of_ranks(len(warnings), 0)
        told = zip(report.traces, warnings, strict=True)
        traces = tuple(msgspec.structs.replace(info, warnings=own) for info, own in told)
        return group_warnings(msgspec.structs.replace(report, traces=traces))

    ranks = [f"rank {number}" for number in range(3)]
    found = grouped(("begins with 87.5 ms", "3 rows"), ("begins with 1.2 s",), ("begins with 100 ms", "4 rows"))
    assert found == [("begins with 87.5 ms to 1.2 s", ranks), ("3 rows", ranks[:1]), ("4 rows", ranks[2:])]
    assert grouped(("5 ms once",), ("5 ms once",), ("60 µs once",)) == [("60 µs to 5 ms once", ranks)]
    # Two of one rank are two.
    assert len(grouped(("5 ms", "7 ms"), ("5 ms",))) == 2


def test_what_a_change_of_the_loader_saves_is_told_once_a_phase() -> None:
    asked = Asked(
        question="two more workers", saving_ms_per_step=1.0, saving_low_ms_per_step=0.99, saving_high_ms_per_step=1.01
    )
    infos = [
        msgspec.structs.replace(
            sample.trace_info(f"{number}.json.gz"), phase=phase,
            replay=msgspec.structs.replace(sample.REPLAY, asked=answers),
        )
        for number, (phase, answers) in enumerate([("train", (asked,)), ("train", (asked,)), ("evaluate", ())])
    ]  # fmt: skip
    said = " ".join(to_text(sample.report(infos, ())).split())
    assert said.count("Two more workers would save") == 1
    assert "Two more workers would save 1 ms a step (20 %)." in said


def test_eight_ranks_are_all_shown_with_whom_they_wait_for() -> None:
    text = to_text(of_ranks(8, 5))
    assert "the ranks met 10 times in 2 steps, where collectives in a row count as one" in text.replace("\n", " ")
    rows = [line.split() for line in text.splitlines() if line.startswith("  rank ")]
    assert [row[1] for row in rows] == [str(rank) for rank in range(8)] * 2
    assert rows[8] == ["rank", "0", "0", "×", "0", "µs", "2", "ms", "rank", "5", "75", "%"]
    assert rows[13] == ["rank", "5", "10", "×", "2", "ms", "0", "µs", "–"]
    assert "their clocks agree within 0 µs" in text


@pytest.mark.parametrize(
    ("name", "idle", "cut"),
    [
        ("train", "recorded idle", False),
        ("evaluate 2 in eval_fn", "idle", False),
        ("evaluate in a_function_with_a_name_of_forty_letters", "idle", True),
    ],
)
def test_figures_are_never_cut_but_headings_and_names_are(name: str, idle: str, cut: bool) -> None:
    report = sample.report([sample.trace_info("a.json.gz"), sample.trace_info("b.json.gz")], [])
    traces = (
        msgspec.structs.replace(report.traces[0], phase=name),
        msgspec.structs.replace(report.traces[1], phase="x"),
    )
    console = Console(file=io.StringIO(), width=80, color_system=None)
    text_ranks.render(msgspec.structs.replace(report, traces=traces), console)
    head, row = console.file.getvalue().splitlines()[1:3]  # type: ignore[attr-defined]
    assert head.split("with line")[1].split()[0] == idle.split()[0]
    assert (name in row) is not cut and ("…" in row) is cut
    assert "…" not in head and row.rstrip().endswith("s") and len(row) <= 80


def test_waits_from_before_the_recorded_steps_are_told_beside_the_table() -> None:
    report = of_ranks(2, 1)
    assert report.between_ranks is not None
    assert "began the first recorded step later" not in to_text(report)
    rows = tuple(msgspec.structs.replace(row, holds_before_ms=7.0 * row.last) for row in report.between_ranks.ranks)
    later = msgspec.structs.replace(report, between_ranks=msgspec.structs.replace(report.between_ranks, ranks=rows))
    said = " ".join(to_text(later).split())
    assert "rank 1 began the first recorded step later: the others waited 70 ms once for it" in said


def test_a_clock_is_shown_only_where_one_is_another() -> None:
    text = to_text(of_ranks(4, 1, clock_ms=-31.7))
    shown = [line.rstrip().rpartition("  ")[2].strip() for line in text.splitlines() if line.startswith("  rank ")]
    assert shown[4:] == ["reference", "the same", "−31.7 ms ± 1 µs", "−31.7 ms ± 1 µs"]
    assert "clocks agree" not in text
    assert "clock" not in to_text(of_ranks(4, 1, clock_ms=0.004)).replace("their clocks agree within 4 µs", "")


def test_a_thousand_ranks_are_as_many_lines_as_a_few(many: Report) -> None:
    text = to_text(many)
    assert len(text.splitlines()) < 170
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "  rank 517" in text
    assert "median of all" in text
    assert f"on {MANY} of {MANY} traces, rank 0 shown" in " ".join(text.split())
    assert "not checked SYN110: nobody looked (on ranks 1–1023)" in to_text(many, view=View(verbose=True))
    assert text.count("The file was cut short") == 1


def test_the_notable_ranks_are_the_first_the_stragglers_and_the_heaviest(many: Report) -> None:
    slow = msgspec.structs.replace(
        many.traces[99], steps=msgspec.structs.replace(many.traces[99].steps, profiled_ms=99.0)
    )
    heavy = msgspec.structs.replace(many.findings[0], trace=600, rank=600, saving_ms_per_step=88.0, fingerprint="other")
    traces = (*many.traces[:99], slow, *many.traces[100:])
    changed = msgspec.structs.replace(many, traces=traces, findings=(heavy, *many.findings))
    found = notable(changed, 8)
    assert len(found) == 8 and found == sorted(found)
    assert {0, LATE, 600, 99} <= set(found)
    assert notable(many, MANY) == list(range(MANY))


def test_a_reduced_report_speaks_of_the_traces_it_has(many: Report) -> None:
    few = reduced(many, 8)
    ranks = [info.rank for info in few.traces]
    assert len(ranks) == 8 and {0, LATE} <= set(ranks)
    assert few.between_ranks is not None
    assert [row.rank for row in few.between_ranks.ranks] == ranks
    entries: list[Finding | NotChecked | RankBetween] = [*few.findings, *few.not_checked, *few.between_ranks.ranks]
    assert all(ranks[entry.trace] == entry.rank for entry in entries)
    assert all(ranks[one.trace] == one.rank for row in few.between_ranks.ranks for one in row.waits_for)
    assert len(few.findings) == 8 * len(sample.findings()) + 1
    assert reduced(few, 8) is few


def test_a_thousand_ranks_make_a_page_a_browser_can_open(many: Report) -> None:
    page = html.render(many, [sample.lanes(f"run/rank{rank}.json.gz", rank) for rank in (0, LATE, 900)])
    assert len(page) < len(html.render(of_ranks(html.MOST_TRACES, 5))) + 300_000
    assert f'"left_out":{MANY - html.MOST_TRACES}' in page
    assert "and 1023 more" in page.partition("</title>")[0]


def test_other_outputs_of_a_thousand_ranks(many: Report) -> None:
    text = markdown.render(many)
    assert len(text) < 60_000
    assert "… and 992 more" in text and "`rank 517`" in text
    assert junit.render(many).count("<testsuite ") == MANY + 1  # and the stale expectations


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["rank 3"], "rank 3"),
        ([f"rank {n}" for n in (0, 1, 2, 5)], "ranks 0–2, 5"),
        ([f"rank {n}" for n in (9, 1, 3, 5, 7, 11, 12)], "ranks 1, 3, 5, 7 and 3 more"),
        (["#1", "#2", "#4"], "#1–2, #4"),
    ],
)
def test_ranks_in_a_sentence(names: list[str], says: str) -> None:
    assert join_labels(names) == says


@given(st.sets(st.integers(0, 5000), min_size=1))
def test_ranks_in_a_sentence_are_few_words(numbers: set[int]) -> None:
    assert len(join_labels(f"rank {number}" for number in numbers)) < 80


def test_a_hundred_ranks_that_were_not_read_are_ten_lines_and_a_number() -> None:
    report = msgspec.structs.replace(
        of_ranks(2, 1), unread=tuple(Unread(path=f"lost{number}.json", why="is empty") for number in range(100))
    )
    assert to_text(report).count("not read lost") == 10
    assert "not read 90 more" in to_text(report)
    assert "100 traces not read" in to_text(report)
