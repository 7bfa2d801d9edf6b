"""A real dask cluster of processes: the same report as on one machine, whatever becomes of its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from fixtures.ranks import RECORDED, write_rank
from syncscope.analysis.analyze import choose_engine, find_traces
from syncscope.analysis.engine import EngineError
from syncscope.analysis.local import Local
from syncscope.analysis.rank import Job
from syncscope.estimate import peers_to_compare
from syncscope.rules import RULES

distributed = pytest.importorskip("distributed")

# What distributed itself leaves behind when its processes go.
pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROOT = Path(__file__).parents[2]
JOB = Job(codes=frozenset(rule.code for rule in RULES), max_bars=200, several=True)
STARTS_S = 120


class DaskProcesses:
    """A scheduler and workers of one thread, each a process of its own."""

    def __init__(self, folder: Path, workers: int, *options: str, **environment: str) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        file = folder / "scheduler.json"
        listen = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.processes = [self._start(folder, "scheduler", *listen, "--scheduler-file", str(file))]
        deadline = time.monotonic() + STARTS_S
        while not (file.exists() and file.read_bytes()):
            assert time.monotonic() < deadline and self.processes[0].poll() is None
            time.sleep(0.05)
        self.address: str = msgspec.json.decode(file.read_bytes())["address"]
        alone = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder), *options]
        self.workers = [self._start(folder, "worker", self.address, *alone) for _ in range(workers)]
        self.processes += self.workers
        with distributed.Client(self.address, timeout=STARTS_S, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=STARTS_S)

    def _start(self, folder: Path, *words: str) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
            cwd=folder, env=self._environment, stdout=nothing, stderr=nothing,
        )  # fmt: skip

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()  # a nanny ends its worker
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def dask(folder: Path, workers: int, *options: str, **environment: str) -> Iterator[DaskProcesses]:
    cluster = DaskProcesses(folder, workers, *options, **environment)
    try:
        yield cluster
    finally:
        cluster.stop()


def ranks(folder: Path, number: int) -> list[str]:
    """Ranks of real traces, the last one late, and between them a file that is none."""
    for rank in range(number):
        source = RECORDED / f"rank{int(rank == number - 1)}.json.gz"
        write_rank(source, folder / f"rank{rank}.json.gz", rank, number, ahead_ns=rank * 1_000_000)
    (folder / "rank1.json").write_bytes(b"")
    return find_traces([folder])


def test_a_cluster_gives_the_report_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    ranks(tmp_path / "run", 3)
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    (tmp_path / "elsewhere").mkdir()
    files = find_traces(["run"])
    calls: list[tuple[int, int]] = []
    with dask(tmp_path / "elsewhere", 1, "--no-nanny") as cluster:
        there = choose_engine(scheduler=cluster.address)
        assert peers_to_compare(Local().analyze(files, JOB).peers), "the second phase is needed"
        assert there.analyze(files, JOB, lambda path, done, total: calls.append((done, total))) == Local().analyze(
            files, JOB
        )
        assert calls == [(done, 4) for done in range(1, 5)]
        # What fails on the workers however often it is tried is calls of every rank.
        (entry,) = there.analyze(files[:1], msgspec.structs.replace(JOB, version="0.0.1")).report.unread
        assert entry.why.startswith("failed on the cluster: RuntimeError: the client runs syncscope 0.0.1, and this ")


@pytest.mark.slow
def test_what_a_killed_worker_had_done_is_done_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    files = ranks(tmp_path / "run", 14)
    with dask(tmp_path, 2, "--no-nanny") as cluster:

        def kill(path: str, done: int, total: int) -> None:
            if done == 5:
                cluster.workers[0].send_signal(signal.SIGKILL)
                cluster.workers[0].wait()

        found = choose_engine(scheduler=cluster.address).analyze(files, JOB, kill)
        assert cluster.workers[0].poll() is not None and cluster.workers[1].poll() is None
    assert found == Local().analyze(files, JOB)
    assert len(found.report.traces) == 14
    assert [Path(entry.path).name for entry in found.report.unread] == ["rank1.json"]


KILLER = """
import os
from syncscope.analysis import rank
from syncscope.trace import load
rank.load = lambda path, **how: os._exit(9) if "killer" in path else load(path, **how)
"""
"""What a worker loads before: a trace kills it, as one does that is too large."""


@pytest.mark.slow
def test_a_rank_that_kills_every_worker_is_the_only_one_lost(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    files = ranks(tmp_path / "run", 6)
    killer = tmp_path / "killer.json"
    killer.write_bytes(Path(files[0]).read_bytes())
    preload = tmp_path / "preload.py"
    preload.write_text(KILLER)
    with dask(tmp_path, 1, "--preload", str(preload), DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1") as cluster:
        found = choose_engine(scheduler=cluster.address).analyze([files[0], str(killer), *files[1:]], JOB)
    whole = Local().analyze(files, JOB)
    assert (found.report.traces, found.report.findings) == (whole.report.traces, whole.report.findings)
    lost, empty = found.report.unread
    assert lost.path == str(killer) and lost.why.startswith("failed on the cluster: KilledWorker: ")
    assert Path(empty.path).name == "rank1.json"


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncscope.analysis import cluster

    monkeypatch.setattr(cluster, "REACHED_S", 0.2)
    with pytest.raises(EngineError, match=r"^tcp://127\.0\.0\.1:9: no dask scheduler answers: .+$"):
        choose_engine(scheduler="tcp://127.0.0.1:9").analyze(["a.json"], JOB)


def test_an_address_that_is_none_is_one_line() -> None:
    with pytest.raises(EngineError, match="no dask scheduler answers"):
        choose_engine(scheduler="nowhere://x").analyze(["a.json"], JOB)
