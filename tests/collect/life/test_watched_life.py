"""``syncscope watch`` from end to end, with a stand-in for PyTorch."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from syncscope.schema.recording import Recording
from syncscope.schema.report import Report
from tests.collect.life.runner import HERE, ROOT, Outcome, Place, alone, finish, prepare, start, without_ours

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and fork")

PLACE = Place(standin=True)
COMMAND = [sys.executable, str(HERE / "standin" / "command.py"), "watch"]


def watched(folder: Path, *program: str, options: tuple[str, ...] = ()) -> Outcome:
    prepare(folder)
    return finish(begun(folder, *program, options=options), folder)


def begun(folder: Path, *program: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return start(folder, [*COMMAND, "-o", "out/report.json", *options, *program], PLACE)


def recorded(folder: Path) -> Recording:
    document = json.loads(gzip.decompress((folder / "out" / "trace.json.gz").read_bytes()))
    return msgspec.convert(document["syncscope"], Recording)


def waits_of(recording: Recording) -> dict[str | None, int]:
    assert recording.run is not None
    return {recording.frames[recording.stacks[wait.stack][-1]].expression: wait.count for wait in recording.run.waits}


def assert_counted(recording: Recording, steps: int) -> None:
    """The waits of ``waits.py`` are counted in each of its steps, or in each of those that are said to be counted: on a
    machine that does much else, counting may have to pause."""
    waits, run = waits_of(recording), recording.run
    assert run is not None and run.complete
    (train,) = (phase for phase in run.phases if phase.kind == "train")
    assert set(waits) == {"loss.tolist()", "net(x).tolist()"} and train.steps == steps
    if train.counted_steps == steps:
        assert waits == {"loss.tolist()": steps, "net(x).tolist()": math.ceil(steps / 10)}
    else:
        assert 0 < train.counted_steps <= waits["loss.tolist()"] < steps
        assert 0 < waits["net(x).tolist()"] <= math.ceil(steps / 10)


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def test_every_wait_of_the_run_is_counted_and_reported(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "40", "0.01")
    assert (found.status, found.stdout) == (0, "to stdout\nthe end\n")
    recording = recorded(tmp_path / "ours")
    assert recording.run is not None
    assert_counted(recording, 40)
    report = Report.from_json((tmp_path / "ours" / "out" / "report.json").read_bytes())
    assert report.traces[0].run is not None
    assert report.traces[0].run.id == recording.run.id
    assert "loss.tolist()" in found.stderr and "net(x).tolist()" in found.stderr
    assert "syncscope: wrote out/report.json" in found.stderr


@pytest.mark.parametrize(
    "name",
    ["prints", "raises_in_a_step", "exits_with_a_number", "forks", "interrupts_itself", "terminated", "closes_stderr",
     "excepthooks", "handles_its_signals", "runs_asyncio", "leaves_its_folder", "exit_handlers"],
)  # fmt: skip
def test_a_watched_program_lives_as_it_does_alone(tmp_path: Path, name: str) -> None:
    expected = alone(tmp_path / "alone", PLACE, f"{name}.py")
    assert without_ours(watched(tmp_path / "ours", f"{name}.py")) == expected


def test_a_line_that_the_baseline_does_not_know_is_said_at_once_and_once(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "baseline.json").write_text(
        '{"format": 1, "findings": {"a": {"rule": "SYN102", "file": "waits.py", "function": "train", '
        '"expression": "net(x).tolist()", "per_step": 0.1}}}'
    )
    found = finish(begun(folder, "waits.py", "40", "0.05", options=("--baseline", "baseline.json")), folder)
    assert found.status == 0
    assert re.findall("^syncscope: new wait: .*$", found.stderr, re.M) == [
        "syncscope: new wait: waits.py:16 loss.tolist() in train (train)"
    ]
    assert found.stderr.index("new wait") < found.stderr.index("the program is over")
    assert found.stderr.endswith("syncscope: 1 line waits that baseline.json does not know: waits.py:16\n")


def test_fail_ends_the_program_between_two_steps_with_status_1(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "600", "0.05", options=("--baseline", "none.json", "--fail"))
    assert found.status == 1
    assert "the end" not in found.stdout and "Traceback" not in found.stderr
    said = "syncscope: 2 lines wait that none.json does not know: waits.py:16, waits.py:18; --fail ended the program\n"
    assert found.stderr.endswith(said)
    run = recorded(tmp_path / "ours").run
    assert run is not None and run.complete and 0 < run.phases[1].steps < 599


def test_fail_is_told_of_a_program_that_was_over_too_soon(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "20", "0", options=("--baseline", "none.json", "--fail"))
    assert (found.status, found.stdout) == (1, "to stdout\nthe end\n")


def test_fail_with_a_baseline_that_knows_every_line_leaves_the_status(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    entries = {
        text: {"rule": "SYN100", "file": "waits.py", "function": "train", "expression": text, "per_step": 1}
        for text in ("loss.tolist()", "net(x).tolist()")
    }
    (folder / "baseline.json").write_text(json.dumps({"format": 1, "findings": entries}))
    options = ("--baseline", "baseline.json", "--fail")
    found = finish(begun(folder, "waits.py", "20", "0", options=options), folder)
    assert found.status == 0
    assert found.stderr.endswith("syncscope: no line waits that baseline.json does not know\n")


def test_a_folder_where_the_report_should_be_is_an_error_before_the_program_runs(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "20", "0", options=("-o", "package"))
    assert (found.status, found.stdout) == (2, "")
    assert "package is a folder: name a file, package/report.json." in found.stderr


def test_a_baseline_that_is_not_there_is_an_error_before_the_program_runs(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "20", "0", options=("--baseline", "missing.json"))
    assert (found.status, found.stdout) == (2, "")
    assert found.stderr.startswith("error: missing.json: there is no such baseline; ")


def test_a_signal_asks_for_a_report_in_between(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    process = begun(folder, "waits.py", "2000", "0.05", options=("--signal", "USR1"))
    time.sleep(2)
    process.send_signal(signal.SIGUSR1)
    report = folder / "out" / "report.json"
    wait_for(report.exists)
    run = Report.from_json(report.read_bytes()).traces[0].run
    assert run is not None and not run.complete and process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process, folder).status == -signal.SIGTERM
    run = Report.from_json(report.read_bytes()).traces[0].run
    assert run is not None and run.complete


def test_every_writes_a_report_in_between(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    process = begun(folder, "waits.py", "2000", "0.05", options=("--every", "1s"))
    wait_for((folder / "out" / "report.json").exists)
    process.send_signal(signal.SIGTERM)
    finish(process, folder)


def test_a_handler_of_the_program_keeps_its_signal(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "own.py").write_text(
        "import os, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('mine'))\n"
        "import training, time\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "training.train(20, each=lambda loss: time.sleep(0.1))\n"
    )
    found = finish(begun(folder, "own.py", options=("--signal", "USR1")), folder)
    assert (found.status, found.stdout) == (0, "mine\n")
    notes = re.findall("^syncscope: note: SIGUSR1 .*$", found.stderr, re.M)
    assert notes == ["syncscope: note: SIGUSR1 asks for no report any more: the program has set a handler"]


def test_a_killed_program_leaves_its_last_state_whole(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    process = begun(folder, "waits.py", "10000", "0.02")
    trace = folder / "out" / "trace.json.gz"
    wait_for(trace.exists)
    process.send_signal(signal.SIGKILL)
    assert finish(process, folder).status == -signal.SIGKILL
    run = recorded(folder).run
    assert run is not None and not run.complete and run.phases[1].steps > 10


def test_figures_go_where_they_are_asked_to(tmp_path: Path) -> None:
    found = watched(tmp_path / "ours", "waits.py", "20", "0", options=("--export", "jsonl=out/waits.jsonl"))
    assert found.status == 0
    row = json.loads((tmp_path / "ours" / "out" / "waits.jsonl").read_text().splitlines()[-1])
    assert row["train/steps"] == row["step"] == 20 and row["lines"] == 2


API = """
import sys
import syncscope
heard = []
watching = syncscope.watch("out", on_new=heard.append)
{how}
print([line.expression for line in heard], watching.notes)
"""
BLOCK = """
with watching:
    sys.argv[1:] = ["40", "0.01"]
    import waits
report = watching.report()
print(report.traces[0].run.complete, report.traces[0].run.steps)
"""
UNTIL_THE_END = """
watching.start()
sys.argv[1:] = ["40", "0.01"]
import waits
"""


ENDS_ITS_THREADS = f"""
{UNTIL_THE_END}
import concurrent.futures.thread  # no thread of a pool can be started when it ends: none at all from Python 3.12 on
"""


@pytest.mark.parametrize(
    "how", [BLOCK, UNTIL_THE_END, ENDS_ITS_THREADS], ids=["block", "until the end", "after its threads"]
)
def test_the_api_counts_and_reports(tmp_path: Path, how: str) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "api.py").write_text(API.format(how=how))
    found = finish(start(folder, [sys.executable, "api.py"], PLACE), folder)
    assert found.status == 0 and found.stderr == "to stderr\n", found.stderr
    if how is BLOCK:
        assert found.stdout.endswith("True 40\n['loss.tolist()', 'net(x).tolist()'] ()\n")
    run = Report.from_json((folder / "out" / "report.json").read_bytes()).traces[0].run
    assert run is not None and run.complete and run.steps == 40
    assert_counted(recorded(folder), 40)


def test_on_new_may_end_the_program_between_two_steps(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "api.py").write_text(
        "import sys, syncscope\n"
        "def refuse(line):\n    sys.exit(7)\n"
        "sys.argv[1:] = ['400', '0.05']\n"
        "with syncscope.watch(on_new=refuse):\n    import waits\n"
    )
    found = finish(start(folder, [sys.executable, "api.py"], PLACE), folder)
    assert (found.status, found.stderr) == (7, "to stderr\n") and "the end" not in found.stdout
    assert not (folder / "out").exists()


def processes(folder: Path) -> list[str]:
    return sorted(re.sub(r"process-\d+", "process-N", path.name) for path in (folder / "out").glob("*.json.gz"))


def test_the_processes_that_it_starts_are_counted_into_one_report(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    found = watched(folder, "starts_trainers.py")
    assert found.status == 2
    assert processes(folder) == ["trace.json.gz", "trace.process-N.json.gz", "trace.process-N.json.gz"]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert len({trace.run.pid for trace in report.traces if trace.run is not None}) == 3
    assert all(trace.run is not None and trace.run.complete and trace.run.steps == 16 for trace in report.traces)


STARTER = "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, 'waits.py', '20', '0']).returncode)\n"


def test_the_waits_of_a_child_are_counted_and_no_window_is_recorded(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "starter.py").write_text(STARTER)
    found = finish(begun(folder, "starter.py"), folder)
    assert found.status == 0 and "loss.tolist()" in found.stderr, found.stderr
    (path,) = (folder / "out").glob("trace.process-*")
    child = msgspec.convert(json.loads(gzip.decompress(path.read_bytes()))["syncscope"], Recording)
    assert_counted(child, 20)
    assert child.run is not None and not any(phase.recorded for phase in child.run.phases)


def test_a_program_that_leaves_the_device_to_spawned_ranks_is_counted_in_them(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    found = watched(folder, "spawns_ranks.py")
    assert found.status == 0 and "never used CUDA" not in found.stderr, found.stderr
    assert processes(folder) == ["trace.rank0.json.gz", "trace.rank1.json.gz"]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert [trace.rank for trace in report.traces] == [0, 1]


def test_children_are_left_alone_where_the_user_wants_none(tmp_path: Path) -> None:
    watched(tmp_path / "ours", "starts_trainers.py", options=("--no-children",))
    assert processes(tmp_path / "ours") == ["trace.json.gz"]


def test_a_line_of_a_child_that_the_baseline_does_not_know_is_said_once_and_fails(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "starter.py").write_text(STARTER)
    found = finish(begun(folder, "starter.py", options=("--baseline", "none.json", "--fail")), folder)
    assert found.status == 1
    said = re.findall(r"^syncscope: new wait in process \d+: (.*)$", found.stderr, re.M)
    assert said == [f"waits.py:{line} in train (train)" for line in ("16 loss.tolist()", "18 net(x).tolist()")]


@pytest.mark.parametrize("children", [True, False])
def test_a_watched_block_counts_its_children_if_asked(tmp_path: Path, children: bool) -> None:
    folder = prepare(tmp_path / "ours")
    (folder / "api.py").write_text(
        "import subprocess, sys, syncscope\n"
        f"with syncscope.watch('out', children={children}) as watching:\n"
        "    subprocess.run([sys.executable, 'starts_trainers.py', 'grandchild'])\n"
        "print(watching.report() is not None)\n"
    )
    found = finish(start(folder, [sys.executable, "api.py"], PLACE), folder)
    assert found.status == 0 and found.stderr == "", found.stderr
    assert found.stdout.endswith(f"{children}\n")
    assert processes(folder) == ["trace.process-N.json.gz"] * children


def test_a_pipe_gets_no_live_line(tmp_path: Path) -> None:
    assert "\033" not in watched(tmp_path / "ours", "waits.py", "40", "0.05").stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--every", "soon"), "is no length of time"),
        (("--signal", "KILL"), "has a meaning of its own"),
        (("--export", "pigeon"), "is no exporter"),
        (("--fail",), "needs --baseline"),
        (("--baseline", "waits.py"), "not a baseline"),
    ],
)
def test_wrong_usage_is_said_before_the_program_runs(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    found = watched(tmp_path / "ours", "waits.py", "1", "0", options=options)
    assert found.status in (2, 3) and found.stdout == ""
    assert why in found.stderr


def test_without_a_gpu_the_program_does_not_run(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "ours")
    command = [sys.executable, "-m", "syncscope", "watch", "waits.py", "1", "0"]
    environment = {**PLACE.environment(), "CUDA_VISIBLE_DEVICES": ""}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (3, "")
    assert "there is no GPU, so the script was not run" in found.stderr
    assert not os.path.exists(folder / "syncscope-waits-watch")


def test_a_report_beside_a_recording_leaves_the_recording(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    prepare(folder)
    shutil.copy(ROOT / "fixtures" / "traces" / "item_logging" / "trace.json.gz", folder)
    before = (folder / "trace.json.gz").read_bytes()
    found = finish(start(folder, [*COMMAND, "-o", "waits.json", "waits.py", "40", "0.01"], PLACE), folder)
    assert found.status == 0 and json.loads((folder / "waits.json").read_bytes())["findings"]
    assert (folder / "trace.json.gz").read_bytes() == before
    assert [path.name for path in (folder / "waits-counts").iterdir()] == ["trace.json.gz"]
