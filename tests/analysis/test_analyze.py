"""The public way in: paths to a report."""

import weakref
from pathlib import Path

import pytest

import syncscope
from syncscope.analysis import analyze as analysis
from syncscope.analysis.analyze import analyze, analyze_files, analyze_timelines, choose_engine, find_traces
from syncscope.policy import Expectation, Policy
from syncscope.timeline import Timeline
from tests.cli import traces


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with three ranks."""
    for rank in (0, 1, 10):
        traces.waiting(rank=rank).write(tmp_path / f"rank{rank}.json.gz")
    return tmp_path


def test_one_call_reads_and_reports(run: Path) -> None:
    report = syncscope.analyze(run / "rank1.json.gz")
    (finding,) = [finding for finding in report.findings if finding.rule == "SYN102"]
    assert finding.site == syncscope.Site(file="train.py", line=21, function="train_step", expression="loss.item()")
    assert report.tool.version == syncscope.__version__


def test_every_rank_of_a_folder_is_in_the_report_in_order(run: Path) -> None:
    report = analyze(run)
    assert [info.rank for info in report.traces] == [0, 1, 10]
    assert {finding.rank for finding in report.findings} == {0, 1, 10}
    assert all(report.traces[finding.trace].rank == finding.rank for finding in report.findings)


def test_without_a_policy_nothing_is_stale_and_with_one_it_is_applied(run: Path) -> None:
    expected = Expectation(rule="SYN102", codes=frozenset({"SYN102"}), reason="logs", where="here:1")
    stale = Expectation(rule="SYN105", codes=frozenset({"SYN105"}), reason="old", where="here:2")
    assert {finding.status for finding in analyze(run).findings} == {"unexpected"}
    report = analyze(run, policy=Policy(expect=(expected, stale)))
    assert {finding.status for finding in report.findings if finding.rule == "SYN102"} == {"expected"}
    assert [entry.where for entry in report.stale] == ["here:2"]


def test_an_unknown_rule_is_a_value_error(run: Path) -> None:
    with pytest.raises(ValueError, match="SYN9"):
        analyze(run, select=["SYN9"])


def test_an_unreadable_trace_is_a_trace_error_that_names_it(run: Path) -> None:
    (run / "rank2.json.gz").write_bytes(b"")
    with pytest.raises(syncscope.TraceError) as caught:
        analyze(run / "rank2.json.gz")
    assert str(caught.value).startswith(f"{run / 'rank2.json.gz'}: ")


def test_an_unreadable_trace_among_others_is_in_the_report(run: Path) -> None:
    whole = analyze(run)
    (run / "rank2.json.gz").write_bytes(b"")
    report = analyze(run)
    assert [(entry.path, entry.why) for entry in report.unread] == [(str(run / "rank2.json.gz"), "is empty")]
    assert (report.traces, report.findings) == (whole.traces, whole.findings)


def test_an_expectation_that_matches_nothing_is_not_stale_where_a_trace_was_not_read(run: Path) -> None:
    policy = Policy(expect=(Expectation(rule="SYN105", codes=frozenset({"SYN105"}), reason="old", where="here:2"),))
    assert analyze(run, policy=policy).stale
    (run / "rank2.json.gz").write_bytes(b"")
    assert analyze(run, policy=policy).stale == ()


def test_of_many_traces_the_notable_ones_are_drawn(tmp_path: Path) -> None:
    for rank in range(12):
        (traces.waiting if rank == 9 else traces.clean)(rank=rank).write(tmp_path / f"rank{rank}.json")
    report, pictures = analyze_files(find_traces([tmp_path]), choose_engine(), pictures=True)
    assert len(report.traces) == 12
    assert len(pictures) == 8
    assert {0, 9} <= {picture.rank for picture in pictures}
    assert {picture.path for picture in pictures} <= {info.path for info in report.traces}


def test_progress_hears_of_each_file_and_of_the_end(run: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    analyze(run, progress=lambda path, done, total: calls.append((Path(path).name, done, total)))
    assert calls == [
        ("rank0.json.gz", 0, 3),
        ("rank1.json.gz", 1, 3),
        ("rank10.json.gz", 2, 3),
        ("rank10.json.gz", 3, 3),
    ]


def test_digits_that_are_no_decimals_sort_as_letters(tmp_path: Path) -> None:
    names = ["m²", "m2", "m10", "m①"]
    for name in names:
        (tmp_path / name).mkdir()
        traces.clean().write(tmp_path / name / "t.json")
    assert {Path(file).parent.name for file in find_traces([tmp_path])} == set(names)
    assert [Path(file).parent.name for file in find_traces([tmp_path])][:2] == ["m2", "m10"]


def test_a_long_run_is_not_held_in_memory(run: Path) -> None:
    alive: list[weakref.ref[Timeline]] = []
    most = 0

    def one_by_one() -> object:
        nonlocal most
        for file in find_traces([run]):
            timeline = Timeline(analysis.load(file))
            alive.append(weakref.ref(timeline))
            yield timeline
            del timeline
            most = max(most, sum(reference() is not None for reference in alive))

    analyze_timelines(one_by_one())  # type: ignore[arg-type]
    assert most <= 1


def test_hidden_folders_are_not_looked_into(run: Path) -> None:
    hidden = run / ".cache"
    hidden.mkdir()
    traces.clean().write(hidden / "trace.json")
    assert len(find_traces([run])) == 3


def test_nothing_given_is_an_error() -> None:
    with pytest.raises(ValueError, match="no trace"):
        find_traces([])
