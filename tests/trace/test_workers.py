"""Workers read what this process would, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fixtures import repeat
from syncscope.trace import TraceError, load, workers
from syncscope.trace.decoding.columns import Strings
from syncscope.trace.reader import read_bytes
from tests.interrupts import heed_interrupts
from tests.same import assert_same

PROCESSES = Path("/proc")


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("workers") / "big.json"
    repeat.write(path, events=40_000)
    return path


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Workers read all but the first piece."""
    monkeypatch.setattr(workers, "PIECES_BEFORE_WORKERS", 1)
    monkeypatch.setattr(workers._Team, "is_ready", lambda team: team._starting[0].result() is not None)


@pytest.mark.parametrize("count", [2, 3])
def test_workers_read_what_one_process_reads(big, count):
    assert_same(load(big, workers=count), load(big, workers=1))


def test_workers_are_started(big, monkeypatch):
    started = []

    class Noted(workers._Worker):
        def __init__(self, *args):
            super().__init__(*args)
            started.append(self)

    monkeypatch.setattr(workers, "_Worker", Noted)
    load(big, workers=2)
    assert len(started) == 2
    assert [one._process.poll() for one in started] == [-signal.SIGKILL] * 2


def test_until_a_worker_has_started_this_process_reads_on(big, monkeypatch):
    monkeypatch.setattr(workers._Team, "is_ready", lambda team: False)
    monkeypatch.setattr(workers._Worker, "request", None)
    before = threading.active_count()
    assert_same(load(big, workers=2), load(big, workers=1))
    assert threading.active_count() == before


def test_a_worker_is_ready_once_it_has_said_so(monkeypatch):
    monkeypatch.undo()
    with workers._Team(1, None) as team:
        team._starting[0].result(timeout=60)
        assert team.is_ready()
    monkeypatch.setattr(workers, "_START", "raise SystemExit")
    with workers._Team(1, None) as team:
        team._starting[0].exception(timeout=60)
        with pytest.raises(workers.WorkerLost):
            team.is_ready()


def test_a_small_file_starts_no_worker(big, monkeypatch):
    monkeypatch.setattr(workers, "PIECES_BEFORE_WORKERS", 32)
    monkeypatch.setattr(workers, "_Worker", None)
    load(big, workers=2)


def test_a_damaged_file_is_repaired_in_this_process(big, tmp_path):
    data = big.read_bytes()
    cut = tmp_path / "cut.json"
    cut.write_bytes(data[: len(data) * 2 // 3])
    assert_same(load(cut, workers=2), read_bytes(cut.read_bytes(), str(cut)))
    assert "cut short" in load(cut, workers=2).warnings[0]


@pytest.mark.parametrize("program", ["/nonexistent/python", sys.executable])
def test_without_working_workers_this_process_reads_the_file(big, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(workers, "_START", "raise SystemExit")
    assert_same(load(big, workers=2), load(big, workers=1))


def test_a_killed_worker_does_not_change_the_result(big, monkeypatch):
    request = workers._Worker.request

    def killed(worker, piece):
        worker.kill()
        return request(worker, piece)

    monkeypatch.setattr(workers._Worker, "request", killed)
    assert_same(load(big, workers=2), load(big, workers=1))


def test_a_file_beyond_the_limit_ends_the_workers(big, tmp_path):
    packed = tmp_path / "t.json.gz"
    repeat.write(packed, events=40_000)
    before = threading.active_count()
    with pytest.raises(TraceError, match="limit of 5,000,000 bytes"):
        load(packed, workers=2, max_bytes=5_000_000)
    assert threading.active_count() == before


def test_a_worker_loads_no_pandas():
    code = "import syncscope.trace.workers, sys; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_columns_are_sent_as_32_bits_where_they_fit():
    for values, size in (([], 4), ([1, -(2**31)], 4), ([2**31], 8), ([-1, 2**62], 8)):
        column = Strings().column([]) if not values else np.array(values)
        packed = workers._pack(column)
        assert packed[0] == size
        assert workers._unpack(object, packed).tolist() == values


@pytest.mark.skipif(not PROCESSES.is_dir(), reason="needs /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_read_leaves_no_worker_and_no_noise(big, ending):
    """The blocks never end, so that the signal comes while workers are at work."""
    code = f"""
import time
from syncscope.trace import load, source, workers
workers.PIECES_BEFORE_WORKERS = 1
workers._Team.is_ready = lambda team: team._starting[0].result() is not None
class Forever(source.Blocks):
    file = property(lambda self: None, lambda self, file: None)  # all is sent to the workers
    def __iter__(self):
        yield from super().__iter__()
        print("waiting", flush=True)
        time.sleep(60)
source.Blocks = Forever
try:
    load({str(big)!r}, workers=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    children: list[int] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        children = [
            int(pid)
            for task in (PROCESSES / f"{process.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]
        assert children
        os.killpg(process.pid, ending)  # as the terminal does
        out, err = process.communicate(timeout=30)
        assert (out, err) == (("interrupted\n", "") if ending == signal.SIGINT else ("", ""))
        deadline = time.monotonic() + 30
        while any(is_alive(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in children if is_alive(pid)]
    finally:
        for pid in [process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def is_alive(pid: int) -> bool:
    try:
        return (PROCESSES / f"{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_number_of_workers_is_that_of_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert workers.default_workers() == 3
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert workers.default_workers() == 1
