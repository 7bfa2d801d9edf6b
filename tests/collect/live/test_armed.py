"""``SYNCSCOPE_GUARD`` in processes of their own, with a stand-in for PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import syncscope.collect.children.announce as announce
from syncscope.collect.live.guarded import Order
from tests.collect.life.runner import HERE, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")

WORKER = """
import sys, threading, torch, syncscope

def serve(steps, at=15, how="module", thread=False):
    net, x = torch.nn.Linear(2, 2).cuda(), torch.randn(2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1) if how == "optimizer" else None
    for step in range(steps):
        y = net(x)
        if how == "optimizer" and step % 2:
            optimizer.step()
        if how == "said" and step % 4 == 3:
            syncscope.step()
        if step == at:
            y.tolist()
        if thread and step == at + 1:
            other = threading.Thread(target=lambda: y.tolist(), name="reader")
            other.start()
            other.join()
    print("served", flush=True)
"""


@pytest.fixture(autouse=True)
def worker(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "temporary").mkdir()


def run(folder: Path, program: str, variable: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    paths = [str(announce.PATH_FOLDER), str(HERE / "standin"), str(ROOT)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "SYNCSCOPE"))}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder / "temporary")}
    if variable is not None:
        environment["SYNCSCOPE_GUARD"] = variable
    return subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What we say, without numbers of processes and folders."""
    lines = [line.removeprefix("syncscope: ") for line in done.stderr.splitlines() if line.startswith("syncscope: ")]
    return [" ".join("N" if word.isdigit() and len(word) > 2 else word for word in line.split(" ")) for line in lines]


SERVES = "from worker import serve\nserve({})\n"


@pytest.mark.parametrize(
    ("order", "status", "says"),
    [
        ("raise:after=10", 1, "process N (program.py), from step 10 on: 1 wait"),
        ("warn:after=10", 0, "process N (program.py), from step 10 on: 1 wait"),
        ("count:after=10", 0, "process N (program.py), from step 10 on: 1 wait"),
        ("raise", 0, "process N (program.py), from step 20 on: no waits"),
        ("raise:after=10:allow=device-to-host", 0, "process N (program.py), from step 10 on: 1 wait"),
        ("raise:after=99", 0, "process N (program.py) was not guarded: it made 30 of 99 steps before the guard"),
    ],
)
def test_a_process_is_guarded_once_it_has_warmed_up(tmp_path: Path, order: str, status: int, says: str) -> None:
    done = run(tmp_path, SERVES.format(30), order)
    assert done.returncode == status, done.stderr
    assert ("served" in done.stdout) == (status == 0)
    assert ("SyncError" in done.stderr) == (status == 1)
    assert ("SyncWarning" in done.stderr) == order.startswith("warn")
    assert said(done)[0] == says
    assert len(said(done)) == 1 + says.endswith("1 wait") and all("worker.py:14" in line for line in said(done)[1:])
    assert list((tmp_path / "temporary").iterdir()) == []


def test_steps_are_what_the_program_says_else_the_optimisers_else_calls_of_modules(tmp_path: Path) -> None:
    counted = {}
    for how in ("module", "optimizer", "said"):
        done = run(tmp_path, SERVES.format(f"30, 29, {how!r}"), "raise:after=99")
        counted[how] = said(done)[0].split(" made ")[1].split(" of ")[0]
    assert counted == {"module": "30", "optimizer": "15", "said": "7"}


def test_other_threads_are_guarded_if_the_order_says_so(tmp_path: Path) -> None:
    program = SERVES.format('30, 15, "module", True')
    own, every = (run(tmp_path, program, f"count:after=10{more}") for more in ("", ":threads=all"))
    assert said(own)[0].endswith("1 wait") and said(every)[0].endswith("2 waits")
    assert "  on reader  1 ×" in said(every)[2]


SPAWNS = """
import multiprocessing, os, subprocess, sys
from worker import serve

if __name__ == "__main__":
    for method in ("spawn", "fork"):
        process = multiprocessing.get_context(method).Process(target=serve, args=(30,))
        process.start()
        process.join()
        print(method, process.exitcode, flush=True)
    script = subprocess.run([sys.executable, "-c", "from worker import serve; serve(12)"])
    print("script", script.returncode, flush=True)
    pid = os.fork()
    if not pid:
        sys.exit()  # with the parent's exit handlers
    os.waitpid(pid, 0)
"""


def test_the_processes_that_a_program_starts_are_guarded_and_the_first_one_reports(tmp_path: Path) -> None:
    done = run(tmp_path, SPAWNS, "raise:after=10")
    assert done.returncode == 0, done.stderr
    statuses = [line for line in done.stdout.splitlines() if line != "served"]
    assert statuses == ["spawn 1", "fork 1", "script 0"]
    lines = said(done)
    assert [line for line in lines if line.startswith("process")] == [
        "process N (spawn), from step 10 on: 1 wait",
        "process N (fork), from step 10 on: 1 wait",
        "process N (-c), from step 10 on: no waits",
    ]
    assert sum("worker.py:14" in line for line in lines) == 2 and len(lines) == 5
    assert done.stderr.rstrip().splitlines()[-5:] == [
        line for line in done.stderr.splitlines() if line.startswith("syncscope: ")
    ]


def test_a_program_that_becomes_another_still_has_its_report(tmp_path: Path) -> None:
    again = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'from worker import serve; serve(30)'])"
    done = run(tmp_path, again, "raise:after=10")
    assert said(done)[0] == "process N (-c), from step 10 on: 1 wait" and done.returncode == 1
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_guarded_thread_that_ended_is_said(tmp_path: Path) -> None:
    program = """
import threading
from worker import serve
for _ in range(3):
    thread = threading.Thread(target=serve, args=(12, 99))
    thread.start()
    thread.join()
"""
    assert said(run(tmp_path, program, "raise:after=10"))[0] == (
        "process N (program.py), from step 10 until the guarded thread ended (threads=all guards every one): no waits"
    )


@pytest.mark.parametrize("program", ["print('no torch')", "import torch; print('no torch')"])
def test_a_program_that_never_uses_cuda_lives_as_it_does_alone(tmp_path: Path, program: str) -> None:
    done = run(tmp_path, program, "raise:after=1")
    assert (done.returncode, done.stdout) == (0, "no torch\n")
    assert said(done) == (["no process used the GPU, so nothing was guarded"] if "import" in program else [])


HOOK = ROOT / "syncscope-children.pth"


@pytest.mark.parametrize("variable", [None, "raise"])
def test_without_the_variable_nothing_is_loaded(tmp_path: Path, variable: str | None) -> None:
    program = f"exec(open({str(HOOK)!r}).read()); print('syncscope.collect.children.startup' in sys.modules)"
    environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {program}"], capture_output=True, text=True, check=False,
        env={**environment, **({"SYNCSCOPE_GUARD": variable} if variable else {})},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{variable is not None}\n", "")


def test_a_variable_that_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    done = run(tmp_path, SPAWNS, "rais:after=10")
    why = "SYNCSCOPE_GUARD: unknown action 'rais': choose from raise, warn, log, count"
    assert said(done) == [f"{why}; a process that uses the GPU will fail"]
    assert done.stdout.splitlines() == ["spawn 1", "fork 1", "script 1"]
    assert done.stderr.count(f"{why}\n") == 3
    alone = run(tmp_path, "import torch; print('no GPU is used')", "rais:after=10")
    assert (alone.returncode, alone.stdout) == (0, "no GPU is used\n")


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, SERVES.format(30), "")
    assert (done.returncode, done.stderr, "served" in done.stdout) == (0, "", True)


@pytest.mark.parametrize(
    "text",
    ["", "raise:after", "raise:after=-1", "raise:after=1:after=2", "raise:threads=some", "warn:allow=up", "warn:x=1"],
)
def test_an_order_is_read_whole_or_not_at_all(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown action|cannot read|more than once"):
        Order(text)
    order = Order("warn:threads=all:after=3:allow=unknown,host-to-device")
    assert (order.action, order.after, order.threads, order.allow) == ("warn", 3, "all", ("unknown", "host-to-device"))
