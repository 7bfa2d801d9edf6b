"""Traces behind URLs, in a file system that is in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import syncscope
from fixtures.ranks import RECORDED
from syncscope.analysis.rank import unread_report
from syncscope.trace import TraceError, load
from syncscope.trace.files import find_traces
from syncscope.trace.remote import is_url, on_disk, shown

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    files.store.clear()
    for number in (0, 1):
        files.pipe(f"/run/deep/rank{number}.json.gz", (RECORDED / f"rank{number}.json.gz").read_bytes())
    yield files
    files.store.clear()


def test_a_folder_behind_a_url_is_its_traces_and_nothing_else(memory: Any) -> None:
    memory.pipe("/run/report.json", b'{"schema_version": 1, "expression": "traceEvents", "cut": ')
    memory.pipe("/run/labels.json", b'{"labels": []}')
    memory.pipe("/run/.cache/trace.json", b'{"traceEvents": []}')
    memory.pipe("/run/notes.txt", b"traceEvents")
    memory.pipe("/run/deep/rank10.json", b"")
    names = ["rank0.json.gz", "rank1.json.gz", "rank10.json"]
    assert find_traces(["memory://run"]) == find_traces(["memory://run/"])
    assert find_traces(["memory://run/"]) == [f"memory://run/deep/{name}" for name in names]


def test_a_run_behind_a_url_is_the_run_on_disk(memory: Any) -> None:
    there, here = syncscope.analyze("memory://run/"), syncscope.analyze(RECORDED)
    assert there.findings == here.findings
    assert there.between_ranks == here.between_ranks
    assert [info.path for info in there.traces] == [f"memory://run/deep/rank{number}.json.gz" for number in (0, 1)]


def test_a_single_file_behind_a_url(memory: Any) -> None:
    assert load("memory://run/deep/rank1.json.gz").rank == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("memory://run/none.json", "does not exist"),
        ("memory://run/deep", "is a folder, not a trace file"),
        ("nosuch://run/a.json", "cannot be read: ValueError: Protocol not known: nosuch"),
    ],
)
def test_what_cannot_be_read_is_one_line(memory: Any, url: str, reason: str) -> None:
    with pytest.raises(TraceError) as caught:
        load(url)
    assert str(caught.value) == f"{url}: {reason}"


def test_a_folder_without_traces(memory: Any) -> None:
    memory.pipe("/other/labels.json", b'{"labels": []}')
    with pytest.raises(TraceError, match="no trace in this folder"):
        find_traces(["memory://other"])


def test_the_limit_holds_behind_a_url(memory: Any) -> None:
    with pytest.raises(TraceError, match="more than the limit of 1,000"):
        load("memory://run/deep/rank0.json.gz", max_bytes=1000)


@pytest.mark.parametrize(("missing", "says"), [("fsspec", "'syncscope[remote]'"), ("s3fs", "s3:// needs a driver: ")])
def test_a_missing_package_is_named(missing: str, says: str) -> None:
    script = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['syncscope', 'analyze', 's3://bucket/a.json']\n"
        "from syncscope.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("error: s3://bucket/a.json: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_secrets_of_a_url_are_not_shown() -> None:
    assert shown("https://me:secret@host:80/run/a.json?X-Amz-Signature=abc#f") == "https://host:80/run/a.json"
    assert shown("s3://bucket/run/a.json") == "s3://bucket/run/a.json"
    assert shown("run/a?b@c.json") == "run/a?b@c.json"
    assert "secret" not in str(TraceError("ftp://me:secret@host/a.json", "is empty"))
    assert unread_report("ftp://me:secret@host/a.json", "is empty").unread[0].path == "ftp://host/a.json"


def test_a_file_url_is_the_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes((RECORDED / "rank0.json.gz").read_bytes())
    assert find_traces([f"file://{file}", file]) == [str(file)]
    assert load(f"file://{file}").path == str(file)
    assert on_disk("file:///C:/runs/a.json") == "C:/runs/a.json"


@pytest.mark.parametrize("path", ["C:/runs/a.json", "C://runs/a.json", "run/a.json", "/run//a.json", "file:///run/a"])
def test_paths_on_disk_are_no_urls(path: str) -> None:
    assert not is_url(path)
