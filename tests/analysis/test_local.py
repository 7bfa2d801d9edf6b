"""One machine: the same report from any number of processes, whatever becomes of them."""

from __future__ import annotations

import os
import platform
from mmap import PAGESIZE
from pathlib import Path

import msgspec
import pytest

from fixtures.ranks import RECORDED, write_rank
from syncscope.analysis import local, pool
from syncscope.analysis.analyze import analyze, analyze_timelines, choose_engine, find_traces
from syncscope.analysis.local import Local
from syncscope.analysis.pool import DIED
from syncscope.analysis.rank import NOTHING_KEPT, Job, Results, analyze_alone
from syncscope.rules import RULES
from syncscope.timeline import Timeline
from syncscope.trace import load
from tests.analysis import counting, dying, faulting
from tests.cli import traces
from tests.estimate.test_peers import drawn

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"
JOB = Job(codes=frozenset(rule.code for rule in RULES), max_bars=500)


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "available_cores", lambda: 2)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Five ranks of real traces, rank 3 the late one, and a file that is none."""
    for number in range(5):
        source = RECORDED / f"rank{int(number == 3)}.json.gz"
        write_rank(source, tmp_path / f"rank{number}.json.gz", number, 5, ahead_ns=number * 1_000_000)
    (tmp_path / "rank5.json.gz").write_bytes(b"")
    return tmp_path


def test_the_number_of_processes_changes_nothing(run: Path) -> None:
    files = find_traces([run])
    one, two = (Local(jobs).analyze(files, JOB) for jobs in (1, 2))
    assert one == two
    assert [info.rank for info in two.report.traces] == list(range(5))
    assert [picture.rank for picture in two.pictures] == list(range(5))
    assert [(Path(entry.path).name, entry.why) for entry in two.report.unread] == [("rank5.json.gz", "is empty")]
    assert any(finding.saving_ms_per_step is not None for finding in two.report.findings)
    (late,) = [finding for finding in two.report.findings if finding.rule == "DST601"]
    assert late.rank == 3


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_a_trace_that_kills_its_process_is_the_only_one_lost(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "analyze_rank", dying.analyze_rank)
    files = find_traces([run])
    killer = run / "killer.json"
    traces.clean(rank=9).write(killer)
    calls: list[tuple[int, int]] = []
    found = Local(2).analyze(
        [files[0], str(killer), *files[1:]], JOB, lambda path, done, total: calls.append((done, total))
    )
    assert found.report.traces == Local(1).analyze(files, JOB).report.traces
    assert (found.report.unread[0].path, found.report.unread[0].why) == (str(killer), DIED)
    assert calls == [(done, 7) for done in range(1, 8)]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks glibc")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, which is asked to keep memory")
def test_a_process_keeps_the_memory_that_it_frees() -> None:
    faults: list[int] = []
    tasks = [(faulting.count_faults, ())]
    pool.Pool(1, faulting.__name__).run(tasks, [""], lambda _, rank: faults.append(int(rank[0])), None)
    assert len(faults) == 1
    assert faults[0] < faulting.LARGE // PAGESIZE // 10


def test_there_are_no_more_processes_than_processors(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "available_cores", lambda: 1)
    monkeypatch.setattr(pool, "Pool", None)  # one process needs no pool
    assert len(Local(64).analyze(find_traces([run]), JOB).report.traces) == 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_ranks_that_differ_are_compared_and_each_trace_is_loaded_once(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "analyze_rank", counting.analyze_rank)
    monkeypatch.setattr(local, "compare_rank", counting.compare_rank)
    ranks = [drawn(0, 100, bare=True), drawn(1, 160, reads=False, bare=True)]
    files = [str(builder.write(tmp_path / f"rank{number}.json")) for number, builder in enumerate(ranks)]
    results = Local(jobs).analyze(files, msgspec.structs.replace(JOB, several=True))
    assert sorted((tmp_path / counting.LOADS).read_text().split()) == ["rank0.json", "rank1.json"]
    (read,) = [finding for finding in results.report.findings if finding.rule == "SYN102"]
    (alone,) = [finding for finding in analyze(files[0]).findings if finding.rule == "SYN102"]
    assert read.saving_ms_per_step == pytest.approx(0.06, abs=0.02)
    assert alone.saving_ms_per_step is not None and alone.saving_ms_per_step > 0.15
    assert results.report.findings == analyze_timelines(Timeline(load(file)) for file in files).findings
    assert len(results.pictures) == 2


def test_nothing_is_kept_of_more_ranks_than_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MOST_PEERS", 2)
    ranks = local._Ranks()
    for number in range(2):
        ranks.keep(number, (b"results", b"kept"))
    assert ranks.in_order() == [(b"results", b"kept")] * 2
    ranks.keep(2, (b"results", b"kept"))
    assert ranks.in_order() == [(b"results", NOTHING_KEPT)] * 3


def fail(*_: object) -> None:
    raise KeyError("oh")


def test_a_rank_at_which_we_fail_is_told_where_there_are_others(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from syncscope.analysis import rank

    monkeypatch.setattr(rank, "_analyze", fail)
    job = msgspec.structs.replace(JOB, several=True)
    (entry,) = Local(1).analyze([str(run / "rank0.json.gz")], job).report.unread
    assert entry.why == "internal error: KeyError: 'oh'"
    with pytest.raises(KeyError):
        analyze(run / "rank0.json.gz")


def test_without_a_report_there_is_only_the_picture(run: Path) -> None:
    found = choose_engine().analyze([str(run / "rank0.json.gz")], Job(report=False, max_bars=100))
    assert (found.report.traces, found.report.findings) == ((), ())
    assert len(found.pictures) == 1


def test_what_travels_is_json(run: Path) -> None:
    found = Local(1).analyze([str(run / "rank3.json.gz")], JOB)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Results) == found


@pytest.mark.parametrize("name", ["compile_branch", "item_logging", "generate"])
def test_one_traces_results_are_as_if_they_had_travelled(name: str) -> None:
    encoded = msgspec.json.encode(analyze_alone(str(TRACES / name / "trace.json.gz"), JOB))
    assert msgspec.json.encode(msgspec.json.decode(encoded, type=Results)) == encoded
