"""Which files of a folder are read: all that have a trace's suffix, but for what is certainly something else."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from syncscope.trace import TraceError, load
from syncscope.trace.files import HEAD_BYTES, find_traces
from tests.cli import traces

LONG = {"words": ["configuration"] * HEAD_BYTES}

OTHERS: dict[str, bytes] = {
    "configuration": b'{"learning_rate": 0.1}',
    "long configuration": json.dumps(LONG).encode(),
    "gzipped": gzip.compress(json.dumps(LONG).encode()),
    "list": b'["a", "b"]',
    "number": b" 3 ",
    "NaN": b'{"loss": NaN, "step": 3}',
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
}

READ: dict[str, bytes] = {
    "empty": b"",
    "text": b"loss 0.1",
    "pointer": b"version https://git-lfs.github.com/spec/v1\n",
    "cut configuration": b'{"learning_rate": 0.',
    "long and cut": json.dumps(LONG).encode()[:-2],
    "cut gzip": gzip.compress(json.dumps(LONG).encode())[:-9],
    "two documents": b'{"a": 1}\n{"a": 2}\n',
    "events after a long head": json.dumps({**LONG, "traceEvents": []}).encode(),
    "list of events": json.dumps([["a"] * HEAD_BYTES, {"ph": "X"}]).encode(),
    "nested too deep": b"[" * 200_000,
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    traces.clean().write(tmp_path / "rank0.json")
    return tmp_path


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_whole_json_of_something_else_is_left_out(run: Path, data: bytes) -> None:
    (run / "other.json").write_bytes(data)
    assert find_traces([run]) == [str(run / "rank0.json")]


@pytest.mark.parametrize("data", READ.values(), ids=READ)
def test_anything_else_with_the_suffix_is_read(run: Path, data: bytes) -> None:
    (run / "other.json").write_bytes(data)
    assert find_traces([run]) == [str(run / "other.json"), str(run / "rank0.json")]


def test_our_own_report_hidden_files_and_other_suffixes_are_left_out(run: Path) -> None:
    for name in ("report.json", ".rank1.json", "rank1.txt", "rank1.json.part"):
        (run / name).write_bytes(b"{")
    assert find_traces([run]) == [str(run / "rank0.json")]


def test_a_suffix_in_capitals_is_a_suffix(run: Path) -> None:
    traces.clean().write(run / "RANK1.JSON")
    assert find_traces([run]) == [str(run / "RANK1.JSON"), str(run / "rank0.json")]


def test_an_empty_path_is_not_the_current_folder(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    with pytest.raises(TraceError, match=r'^"": is an empty path$'):
        find_traces(["rank0.json", ""])


def test_a_trace_with_the_name_of_our_report_is_read(run: Path) -> None:
    (run / "rank0.json").rename(run / "report.json")
    assert find_traces([run]) == [str(run / "report.json")]
    (run / "rank0.json").write_bytes((run / "report.json").read_bytes())
    (run / "report.json").write_bytes(b'{"schema_version": 1, "expression": "traceEvents", "cut": ')
    assert find_traces([run]) == [str(run / "rank0.json")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_suffix_is_not_left_out_in_silence(run: Path) -> None:
    os.mkfifo(run / "rank1.json")
    assert find_traces([run]) == [str(run / "rank0.json"), str(run / "rank1.json")]
    with pytest.raises(TraceError, match="is not a regular file"):
        load(run / "rank1.json")


def test_behind_a_url_as_on_disk(run: Path) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    for kind in (OTHERS, READ):
        for name, data in kind.items():
            files.pipe(f"/kinds/{name}.json", data)
    try:
        assert find_traces(["memory://kinds"]) == sorted(f"memory://kinds/{name}.json" for name in READ)
    finally:
        files.store.clear()


def test_a_folder_that_cannot_be_listed_is_reported_and_one_that_went_away_is_not(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"closed": PermissionError, "gone": FileNotFoundError, ".hidden": PermissionError}
    for name in errors:
        (run / name).mkdir()
        (run / name / "rank1.json").write_bytes(b"{")
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if kind := errors.get(Path(path).name):
            raise kind(1, "as it is", str(path))
        return listed(path)

    monkeypatch.setattr("os.scandir", scandir)
    assert find_traces([run]) == [str(run / "closed"), str(run / "rank0.json")]


@pytest.mark.parametrize("name", ["x" * 5000, "a/" * 3000 + "b.json"], ids=["name", "path"])
def test_a_name_that_is_too_long_cannot_be_read(name: str) -> None:
    assert find_traces([name]) == [str(Path(name))]
    with pytest.raises(TraceError, match="File name too long"):
        load(name)
