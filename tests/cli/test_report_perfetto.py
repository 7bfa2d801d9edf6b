"""``report --perfetto``: one trace, the ranks of a run, a saved report, and what cannot be written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli import traces
from tests.cli.conftest import Run


def tracks(path: Path) -> list[str]:
    data = path.read_bytes()
    events = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["traceEvents"]
    return [event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] > 1 << 22]


def test_a_trace_is_written_with_its_findings(run: Run, folder: Path) -> None:
    for name in ("found.json.gz", "found.json"):
        done = run("report", "waiting.json.gz", "--perfetto", name)
        assert (done.code, done.out, done.err) == (0, "", f"wrote {name}\n")
        assert (folder / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
        assert any(label.startswith("SYN102 scalar-read · train.py:21 · saves ") for label in tracks(folder / name))


def test_the_page_can_be_written_besides(run: Run, folder: Path) -> None:
    assert run("report", "waiting.json.gz", "-o", "a.html", "--perfetto", "a.json").code == 0
    assert (folder / "a.html").exists() and (folder / "a.json").exists()


def test_several_ranks_get_a_file_each_in_a_folder(run: Run, folder: Path) -> None:
    (folder / "run").mkdir()
    for rank in (0, 1):
        traces.waiting(rank=rank).write(folder / "run" / f"rank{rank}.json.gz")
    assert run("report", "run", "--perfetto", "found").code == 0
    assert sorted(file.name for file in (folder / "found").iterdir()) == ["rank0.json.gz", "rank1.json.gz"]
    assert any(label.startswith("SYN102") for label in tracks(folder / "found" / "rank1.json.gz"))


def test_ranks_of_one_name_in_several_folders_stay_apart(run: Run, folder: Path) -> None:
    for rank in (0, 1):
        (folder / "run" / f"host{rank}").mkdir(parents=True)
        traces.waiting(rank=rank).write(folder / "run" / f"host{rank}" / "trace.json.gz")
    assert run("report", "run", "--perfetto", "found").code == 0
    assert sorted(file.name for file in (folder / "found").iterdir()) == ["host0-trace.json.gz", "host1-trace.json.gz"]


def test_a_saved_report_tells_the_findings_of_the_trace_beside_it(run: Run, folder: Path) -> None:
    run("analyze", "waiting.json.gz", "--ignore", "SYN102", "-o", "report.json")
    assert run("report", "report.json", "--perfetto", "found.json").code == 0
    assert not any(label.startswith("SYN102") for label in tracks(folder / "found.json"))
    (folder / "waiting.json.gz").unlink()
    done = run("report", "report.json", "--perfetto", "found.json")
    assert (done.code, done.err) == (
        3,
        "error: waiting.json.gz: missing: the traces must be in the folder of the report\n",
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["waiting.json.gz"], "nothing to write: name a file with --output or --perfetto, or say --open"),
        (["waiting.json.gz", "--perfetto", "waiting.json.gz"], "waiting.json.gz: would overwrite its input"),
        (["waiting.json.gz", "--perfetto", "none/x.json"], "none/x.json: its folder does not exist"),
        (["waiting.json.gz", "--perfetto", "-"], "--perfetto cannot write to standard output: name a file"),
        (["waiting.json.gz", "--perfetto", "x.json", "-o", "x.json"], "x.json: is named twice"),
        ([".", "--perfetto", "clean.json"], "clean.json: several traces need a folder: File exists"),
        ([".", "--perfetto", "."], "clean.json: would overwrite its input"),
    ],
)
def test_what_cannot_be_written_is_an_error_before_any_work(
    run: Run, folder: Path, arguments: list[str], says: str
) -> None:
    before = sorted(folder.iterdir())
    done = run("report", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"error: {says}\n")
    assert sorted(folder.iterdir()) == before
