"""Many ranks on the command line: those that cannot be read, the number of processes, the engines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope.cli import inputs
from syncscope.schema.report import Report
from tests.cli import traces
from tests.cli.conftest import Run


@pytest.fixture
def ranks(folder: Path) -> Path:
    """Three ranks, of which the second is empty and the third waits."""
    run = folder / "run"
    run.mkdir()
    traces.clean(rank=0).write(run / "rank0.json")
    (run / "rank1.json").write_bytes(b"")
    traces.waiting(rank=2).write(run / "rank2.json")
    return run


def test_a_rank_that_cannot_be_read_is_named_and_the_others_are_reported_on(run: Run, ranks: Path) -> None:
    done = run("analyze", "run", "-o", "report.json")
    assert done.code == 3
    assert done.err == "wrote report.json\nerror: run/rank1.json: is empty\n"
    assert "not read run/rank1.json: is empty" in done.out
    assert "train.py:21  loss.item()" in done.out
    report = Report.from_json(Path("report.json").read_bytes())
    assert [(entry.path, entry.why) for entry in report.unread] == [("run/rank1.json", "is empty")]
    assert [info.rank for info in report.traces] == [0, 2]


def test_when_none_can_be_read_nothing_is_reported(run: Run, ranks: Path) -> None:
    for name in ("rank0.json", "rank2.json"):
        (ranks / name).unlink()
    done = run("analyze", "run")
    assert (done.code, done.out, done.err) == (3, "", "error: run/rank1.json: is empty\n")


def test_a_gate_is_never_clean_where_a_rank_cannot_be_read(run: Run, ranks: Path) -> None:
    done = run("check", "run", "--select", "SYN105")
    assert done.code == 3
    assert done.out.splitlines()[-1] == "failed: 1 trace not read"
    assert run("check", "run", "--select", "SYN105", "--exit-zero").code == 3
    assert run("check", "run").code == 1  # what the others show is certain


def test_a_baseline_is_neither_written_nor_tightened_where_a_rank_cannot_be_read(run: Run, ranks: Path) -> None:
    assert run("check", "run", "--baseline", "base.json", "--write-baseline").code == 3
    assert not Path("base.json").exists()
    traces.waiting(rank=1).write(ranks / "rank1.json")
    assert run("check", "run", "--baseline", "base.json", "--write-baseline").code == 0
    written = Path("base.json").read_bytes()
    (ranks / "rank2.json").write_bytes(b"")
    traces.clean(rank=1).write(ranks / "rank1.json")
    assert run("check", "run", "--baseline", "base.json", "--update").code == 3
    assert Path("base.json").read_bytes() == written


def test_a_comparison_needs_every_rank(run: Run, ranks: Path) -> None:
    run("analyze", "run", "-o", "report.json")
    for side in ("run", "report.json"):
        done = run("diff", "waiting.json.gz", side)
        assert (done.code, done.out) == (3, "")
        assert done.err == f"error: {side}: a trace could not be read: run/rank1.json: is empty\n"


def test_every_output_says_what_was_not_read(run: Run, ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["r.txt", "r.html", "r.sarif", "r.xml", "r.md", "github=r.github"]
    assert run("analyze", "run", *[word for name in names for word in ("-o", name)]).code == 3
    for name in names:
        text = Path(name.rpartition("=")[2]).read_text(encoding="utf-8")
        assert "rank1" in text and "is empty" in text, name
    assert run("report", "run", "-o", "again.html").code == 3
    assert run("report", "report.json", "-o", "again.html").code == 3  # there is none
    assert json.loads(Path("r.sarif").read_text())["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_more_processes_change_nothing(run: Run, ranks: Path) -> None:
    one, two = (run("analyze", "run", "--jobs", number, "--format", "json") for number in (1, 2))
    assert one.out == two.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "dask"], "--engine dask needs --scheduler ADDRESS"),
        (["--scheduler", "tcp://x:1"], "--scheduler needs --engine dask"),
        (["--engine", "dask", "--scheduler", "tcp://x:1", "--jobs", "2"], "--jobs cannot be used with --engine dask"),
        (["--jobs", "0"], "--jobs"),
        (["--engine", "spark"], "--engine"),
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(run: Run, options: list[str], says: str) -> None:
    for command in ("analyze", "check"):
        done = run(command, "waiting.json.gz", *options)
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_without_dask_it_is_named(ranks: Path) -> None:
    script = (
        "import sys; sys.modules['distributed'] = None\n"
        "sys.argv = ['syncscope', 'analyze', 'run', '--engine', 'dask', '--scheduler', 'tcp://x:1']\n"
        "from syncscope.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: --engine dask: dask.distributed is not installed: pip install 'syncscope[cluster]'\n"


def test_processes_are_started_only_for_enough_to_read(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.trace.workers.available_cores", lambda: 4)
    one = str(ranks / "rank0.json")
    assert inputs.usual_processes([one] * 7) == 1
    assert inputs.usual_processes([one] * 8) == 4
    monkeypatch.setattr(inputs, "POOL_BYTES", 1)
    assert inputs.usual_processes([one] * 2) == 4
