"""The trace files of one process among those of other processes and of earlier runs."""

from __future__ import annotations

import gzip
import os
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from syncscope.collect.files import FileNames, count_processes, find_files, new_run_id, the_only_writer
from syncscope.collect.phases.phase import Phase
from syncscope.collect.recordings import Recordings
from syncscope.collect.tracefile import NO_EVENTS, TraceFile, holds_recording, read_head
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording

LAUNCHED = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*LAUNCHED, "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


def recorded(run: str, pid: int | None = None, rank: int | None = None) -> Recording:
    return Recording(
        format=FORMAT, version="0", rank=rank, world_size=2, pid=pid or os.getpid(), steps=RecordedSteps(source="none"),
        run=RecordedRun(id=run, started_ns=0, time_ns=1, complete=True),
    )  # fmt: skip


def put(folder: Path, name: str, recording: Recording, exported: bytes = NO_EVENTS) -> Path:
    """A file of an earlier run."""
    file = TraceFile(folder / name)
    file.write(exported, recording)
    os.utime(file.path, (1e9, 1e9))
    return file.path


def put_data(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(data))
    os.utime(path, (1e9, 1e9))
    return path


def with_field(field: bytes, data: bytes = b"{}") -> bytes:
    """``data`` in gzip, with an extra field in the header."""
    plain = gzip.compress(data)
    return plain[:3] + bytes([plain[3] | 4]) + plain[4:10] + struct.pack("<H", len(field)) + field + plain[10:]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def enter_group(monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> SimpleNamespace:
    group = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank, get_world_size=lambda: world
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    return group


def test_a_head_says_whose_recording_a_file_holds(tmp_path: Path) -> None:
    head = read_head(put(tmp_path, "trace.json.gz", recorded("one", pid=7, rank=1)))
    assert head is not None and (head.run, head.pid, head.rank, head.world_size, head.complete) == (
        "one",
        7,
        1,
        2,
        True,
    )


@pytest.mark.parametrize("data", [b"", b"{}", b'{"traceEvents": []}', b'{"run": 7}', b"\xff\x00"])
def test_other_files_have_no_head(tmp_path: Path, data: bytes) -> None:
    path = put_data(tmp_path, "trace.json.gz", data)
    assert read_head(path) is None and not holds_recording(path)
    path.write_bytes(data)
    assert read_head(path) is None


@pytest.mark.parametrize(
    "field",
    [
        b"",
        b"sy",
        b"sy\x00\x00",
        b'sy\x0a\x00{"run": 7}',
        b'sy\x09\x00{"run": 7}',
        b'ap\x23\x00{"run":"a","pid":1,"complete":true}',
    ],
)
def test_fields_of_others_are_no_head(tmp_path: Path, field: bytes) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(with_field(field))
    assert gzip.decompress(path.read_bytes()) == b"{}"
    assert read_head(path) is None and not holds_recording(path)
    path.write_bytes(with_field(b'sy\x23\x00{"run":"a","pid":1,"complete":true}'))
    assert read_head(path) is not None
    path.write_bytes(with_field(field)[: 12 + len(field) // 2])  # cut
    assert read_head(path) is None


def test_a_recording_without_a_run_is_known_by_its_key(tmp_path: Path) -> None:
    recording = Recording(format=FORMAT, version="0", steps=RecordedSteps(source="none"))
    path = put(tmp_path, "trace.json.gz", recording, b'{"traceEvents": [' + b'{"ph": "X"},' * 100_000 + b"{}]}")
    assert read_head(path) is None and holds_recording(path)


def test_a_first_file_takes_the_place_of_earlier_runs_and_of_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, "trace.rank1.json.gz", recorded("earlier"))
    put(tmp_path, "trace.evaluate.json.gz", recorded("earlier"))
    put(tmp_path, "trace.kept.json.gz", recorded("earlier"))
    put_data(tmp_path, "trace.rank2.json.gz", b'{"traceEvents": []}')
    files = FileNames(tmp_path, "now")
    path = put(tmp_path, "trace.rank3.json.gz", recorded("another that runs now"))
    os.utime(path)
    TraceFile(files.path(None)).write(NO_EVENTS, recorded("now"))
    kept = ["trace.kept.json.gz", "trace.rank2.json.gz", "trace.rank3.json.gz"]
    assert names(tmp_path) == ["trace.json.gz", *kept]
    assert list(find_files(tmp_path, "now")) == [tmp_path / "trace.json.gz"]


def test_a_rank_that_was_over_before_this_one_began_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)
    run = new_run_id()
    for rank in (0, 1):
        os.utime(put(tmp_path, f"trace.rank{rank}.json.gz", recorded(run, pid=7, rank=rank)))
    put(tmp_path, "trace.rank0.evaluate.json.gz", recorded(run, pid=7, rank=0))  # before the launcher began
    files = FileNames(tmp_path, run, began_ns=time.time_ns() + 1)
    assert files.path(None).name == "trace.rank1.json.gz" and names(tmp_path) == ["trace.rank0.json.gz"]


def test_a_process_that_becomes_a_rank_takes_its_files_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FileNames(tmp_path, "now", main=False)
    recording = recorded("now")
    recordings = Recordings(files, lambda kept: structs.replace(kept, rank=files.rank()[0]))
    recordings.keep(Phase(1, "train"), NO_EVENTS, recording)
    recordings.keep(Phase(2, "evaluate"), NO_EVENTS, recording)
    pid = os.getpid()
    assert names(tmp_path) == [f"trace.process-{pid}.evaluate.json.gz", f"trace.process-{pid}.json.gz"]
    enter_group(monkeypatch, 1, 2)
    recordings.write_state(lambda: recording)
    assert names(tmp_path) == ["trace.rank1.evaluate.json.gz", "trace.rank1.json.gz"]
    assert {head.rank for head in find_files(tmp_path, "now").values()} == {1}
    assert count_processes(tmp_path, "now") == 1


def test_a_rank_is_remembered_when_its_group_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FileNames(tmp_path, main=False)
    group = enter_group(monkeypatch, 1, 2)
    files.look_for_rank()
    group.is_initialized = lambda: False
    assert files.rank() == (1, 2)


def test_the_rank_of_another_process_of_the_run_stays_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "trace.rank1.json.gz", recorded("now", pid=1, rank=1))
    enter_group(monkeypatch, 1, 2)
    assert FileNames(tmp_path, "now", main=False, began_ns=0).rank() == (None, None)
    assert FileNames(tmp_path, "another", main=False, began_ns=0).rank() == (1, 2)


def test_a_rank_of_the_parents_environment_is_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert FileNames(tmp_path).rank() == (1, 2)
    assert FileNames(tmp_path, main=False, inherited=(1, 2)).rank() == (None, None)
    assert FileNames(tmp_path, main=False, inherited=(0, 2)).rank() == (1, 2)


def test_ranks_of_one_launcher_share_the_id_of_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert new_run_id() != new_run_id()
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)
    first = new_run_id()
    monkeypatch.setenv("RANK", "0")
    assert new_run_id() == first
    monkeypatch.setenv("MASTER_PORT", "29501")
    assert new_run_id() != first


def test_of_ranks_that_end_at_the_same_moment_one_writes_the_report(tmp_path: Path) -> None:
    report, trace = tmp_path / "report.json", tmp_path / "trace.rank0.json.gz"
    report.write_text("of an earlier run")
    os.utime(report, ns=(0, 0))
    trace.touch()
    with the_only_writer(report, "run", [trace]) as first, the_only_writer(report, "run", [trace]) as second:
        assert (first, second) == (True, False)
        report.write_text("of this run")
        os.utime(report, ns=(time.time_ns() + 10**9,) * 2)
    with the_only_writer(report, "run", [trace]) as late:
        assert not late
    assert {path.name for path in tmp_path.iterdir()} == {report.name, trace.name}


def test_where_no_claim_can_be_made_the_report_is_written_all_the_same(tmp_path: Path) -> None:
    with the_only_writer(tmp_path / "gone" / "report.json", "run", []) as alone:
        assert alone
