"""Processes that a recorded program starts are recorded in the same folder, with a stand-in for PyTorch.

That their lives stay their own is tested with all other programs, in ``tests/collect/life``.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import syncscope.collect.children.announce as announce
from syncscope.collect.tracefile import Head, read_head
from syncscope.schema.report import Report
from syncscope.session import PATIENCE
from tests.collect.life.runner import HERE, SHORT, Outcome, Place, finish, prepare, profiled, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")

PLACE = Place(standin=True)
TRAINING = "import training\ntraining.train()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a program runs: nothing is there yet."""
    return tmp_path / "run"


def record(folder: Path, program: str, *arguments: str, options: tuple[str, ...] = ()) -> Outcome:
    """``program`` is code, or the name of a program of ``tests/collect/life/programs``."""
    if program.endswith(".py"):
        return profiled(folder, PLACE, program, *arguments, options=options)
    prepare(folder)
    (folder / "program.py").write_text(program)
    return finish(start(folder, [*PLACE.command(), *options, "program.py", *arguments], PLACE), folder)


def names(folder: Path) -> list[str]:
    found = sorted(path.name for path in (folder / "out").glob("*.json.gz")) if (folder / "out").is_dir() else []
    return [re.sub(r"process-\d+", "process-N", name) for name in found]


def recorded(path: Path) -> dict[str, object]:
    return json.loads(gzip.decompress(path.read_bytes()))["syncscope"]


def heads(folder: Path) -> list[Head]:
    found = [read_head(path) for path in sorted((folder / "out").glob("*.json.gz"))]
    return [head for head in found if head is not None]


def test_spawned_workers_are_the_ranks_of_one_report(folder: Path) -> None:
    done = record(folder, "spawns_ranks.py")
    assert done.status == 0, done.stderr
    assert names(folder) == ["trace.rank0.json.gz", "trace.rank1.json.gz"]
    assert len({head.run for head in heads(folder)}) == 1
    assert [(head.rank, head.world_size) for head in heads(folder)] == [(0, 2), (1, 2)]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert [trace.rank for trace in report.traces] == [0, 1]
    assert "traces of 2 processes" in done.stderr and "nothing was recorded" not in done.stderr
    run = recorded(folder / "out" / "trace.rank1.json.gz")["run"]
    assert isinstance(run, dict) and run["process"] == "spawn"


def test_programs_that_it_starts_are_recorded_with_those_that_they_start(folder: Path) -> None:
    done = record(folder, "starts_trainers.py")
    assert done.status == 2, done.stderr
    assert names(folder) == ["trace.json.gz", "trace.process-N.json.gz", "trace.process-N.json.gz"]
    assert len({head.pid for head in heads(folder)}) == 3
    assert "traces of 3 processes" in done.stderr


def test_processes_without_cuda_write_nothing(folder: Path) -> None:
    record(folder, "starts_helpers.py")
    assert names(folder) == ["trace.json.gz"]


def test_processes_that_make_no_step_leave_not_even_the_folder(folder: Path) -> None:
    done = record(folder, "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import training'])\n")
    assert done.status == 3 and "nothing was recorded" in done.stderr
    assert not (folder / "out").exists()


def test_a_process_without_cuda_loads_next_to_nothing_of_ours(folder: Path) -> None:
    child = (
        "import sys, torch; print(sorted(n for n in sys.modules if n.startswith('syncscope')), 'typing' in sys.modules)"
    )
    done = record(folder, TRAINING + f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n")
    startup = [".collect.children", ".collect.children.startup", ".collect.environment", ".collect.imports"]
    ours = ["", ".collect", *startup]
    assert done.stdout == f"{[f'syncscope{name}' for name in ours]} False\n"


def test_a_process_that_was_forked_before_cuda_was_used_is_recorded(folder: Path) -> None:
    record(folder, "forks_before_cuda.py")
    assert names(folder) == ["trace.json.gz", "trace.process-N.json.gz", "trace.process-N.json.gz"]


def test_a_child_that_fails_is_recorded_and_one_that_is_terminated_dies_at_once(folder: Path) -> None:
    done = record(folder, "fails_in_a_child.py")
    assert done.status == 1 and done.stdout.splitlines()[-1] == "1 -15"
    assert "trace.process-N.json.gz" in names(folder)


def test_no_children_are_recorded_where_the_user_wants_none(folder: Path) -> None:
    record(folder, "starts_trainers.py", options=("--no-children",))
    assert names(folder) == ["trace.json.gz"]


ENVIRONMENT = """
import os, subprocess, sys
import training
training.train()
print(sorted(os.environ))
print(sys.path[:1] == sys.path[1:2], "sitecustomize" in sys.modules, flush=True)
subprocess.run([sys.executable, "-c", "import sys; print(sys.path, 'sitecustomize' in sys.modules)"], check=True)
"""


def test_the_program_sees_one_variable_and_its_childrens_paths_are_as_before(tmp_path: Path) -> None:
    without = record(tmp_path / "without", ENVIRONMENT, options=("--no-children",)).stdout.splitlines()
    found = record(tmp_path / "with", ENVIRONMENT).stdout.splitlines()
    assert "SYNCSCOPE_PROFILE" in found[0] and "SYNCSCOPE_PROFILE" not in without[0]
    assert [found[0].replace("'SYNCSCOPE_PROFILE', ", ""), *found[1:]] == without


def test_a_process_that_kept_the_path_and_not_the_variable_starts_quietly() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SYNCSCOPE", "COV"))}
    script = "import sys; print([entry for entry in sys.path if 'children' in entry])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**kept, "PYTHONPATH": str(announce.PATH_FOLDER)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_programs_own_sitecustomize_is_imported(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sitecustomize.py").write_text("import sys\nsys.stdout.write(f'mine {__name__} {__file__[-16:]}\\n')\n")
    program = (
        f"import os, subprocess, sys\nfirst, rest = os.environ['PYTHONPATH'].split(':', 1)\n"
        f"os.environ['PYTHONPATH'] = ':'.join([first, {str(mine)!r}, rest])\n"
        "subprocess.run([sys.executable, '-c', 'import training; training.train()'])\n" + TRAINING
    )
    done = record(tmp_path / "run", program)
    assert done.stdout == "mine sitecustomize sitecustomize.py\n".replace(
        "sitecustomize.py\n", "sitecustomize.py"[-16:] + "\n"
    )
    assert names(tmp_path / "run") == ["trace.json.gz", "trace.process-N.json.gz"]


def test_a_profile_inside_a_profiled_program_is_its_own(folder: Path) -> None:
    inner = [str(HERE / "standin" / "command.py"), "profile", *SHORT, "-o", "inner", "prints.py"]
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, *{inner!r}], check=True)\n" + TRAINING
    done = record(folder, program)
    assert done.status == 0, done.stderr
    assert names(folder) == ["trace.json.gz"]
    assert [path.name for path in (folder / "inner").glob("*.json.gz")] == ["trace.json.gz"]
    assert read_head(folder / "inner" / "trace.json.gz").run != heads(folder)[0].run  # type: ignore[union-attr]


def test_a_program_that_executes_itself_anew_is_recorded(folder: Path) -> None:
    program = (
        "import os, sys\nif len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
        + TRAINING
        + "print('trained')\n"
    )
    done = record(folder, program)
    assert (done.stdout, done.stderr, done.status) == ("trained\n", "", 0)
    assert names(folder) == ["trace.json.gz"]


def test_a_process_that_outlives_the_run_is_not_recorded(folder: Path) -> None:
    late = "import os, time\nwhile os.getppid() == PARENT:\n    time.sleep(0.01)\nimport training\ntraining.train()\n"
    program = (
        f"import os, subprocess, sys\nlate = {late!r}.replace('PARENT', str(os.getpid()))\n"
        "subprocess.Popen([sys.executable, '-c', late + 'open(\"late\", \"w\")'], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL)\n" + TRAINING
    )
    record(folder, program)
    until = time.monotonic() + 20
    while not (folder / "late").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert (folder / "late").exists() and names(folder) == ["trace.json.gz"]


def test_traces_of_an_earlier_run_make_room_and_other_files_stay(folder: Path) -> None:
    record(folder, "spawns_ranks.py")
    foreign = gzip.compress(b'{"traceEvents": []}')
    (folder / "out" / "trace.process-1.json.gz").write_bytes(foreign)
    (folder / "out" / "traces_of_mine.json.gz").write_bytes(foreign)
    (folder / "program.py").write_text(TRAINING)
    done = finish(start(folder, [*PLACE.command(), "program.py"], PLACE), folder)
    assert done.status == 0, done.stderr
    assert names(folder) == ["trace.json.gz", "trace.process-N.json.gz", "traces_of_mine.json.gz"]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert len(report.traces) == 1


def test_a_worker_that_is_no_rank_leaves_the_rank_of_its_parents_environment(folder: Path) -> None:
    program = "import subprocess, sys\n" + TRAINING + f"subprocess.run([sys.executable, '-c', {TRAINING!r}])\n"
    prepare(folder)
    (folder / "program.py").write_text(program)
    command = ["env", "RANK=0", "WORLD_SIZE=2", *PLACE.command(), "program.py"]
    finish(start(folder, command, PLACE), folder)
    assert names(folder) == ["trace.process-N.json.gz", "trace.rank0.json.gz"]


@pytest.mark.parametrize("value", ["", "{}", "nonsense", '{"plan": {}}'])
def test_a_variable_of_another_version_costs_a_process_nothing(folder: Path, value: str) -> None:
    prepare(folder)
    environment = {
        **PLACE.environment(),
        "SYNCSCOPE_PROFILE": value,
        "PYTHONPATH": os.pathsep.join(
            [str(HERE.parents[2] / "syncscope" / "collect" / "children" / "path"), PLACE.environment()["PYTHONPATH"]]
        ),
    }
    done = subprocess.run(
        [sys.executable, "prints.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    plain = subprocess.run(
        [sys.executable, "prints.py"], cwd=folder, env=PLACE.environment(), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize("together", [True, False])
def test_the_last_rank_of_a_launcher_writes_the_reports_of_all(folder: Path, together: bool) -> None:
    prepare(folder)

    def rank(number: int) -> subprocess.Popen[str]:
        launched = ["env", f"RANK={number}", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29500"]
        return start(folder, [*launched, *PLACE.command(), "prints.py"], PLACE)

    ranks = [rank(0), rank(1)] if together else (rank(number) for number in range(2))
    done = [finish(one, folder) for one in ranks]
    assert [one.status for one in done] == [0, 0]
    assert sum("and this is what was recorded:" in one.stderr for one in done) == 1
    assert names(folder) == ["trace.rank0.json.gz", "trace.rank1.json.gz"]
    assert not list((folder / "out").glob(".syncscope*"))
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert [trace.rank for trace in report.traces] == [0, 1]


IN_PYTHON = """
import subprocess, sys
import syncscope
with syncscope.profile("out", warmup=2, bare=3, steps=2, attribution=2, children=CHILDREN) as prof:
    subprocess.run([sys.executable, "-c", "import training; training.train()"], check=True)
import os
print(prof.report is not None, "SYNCSCOPE_PROFILE" in os.environ, os.environ["PYTHONPATH"].count("children"))
subprocess.run([sys.executable, "-c", "import training; training.train()"], check=True)
"""


@pytest.mark.parametrize("children", [True, False])
def test_a_block_records_the_processes_that_it_starts_if_asked(folder: Path, children: bool) -> None:
    prepare(folder)
    (folder / "program.py").write_text(IN_PYTHON.replace("CHILDREN", str(children)))
    done = finish(start(folder, [sys.executable, "program.py"], PLACE), folder)
    assert done.stdout == f"{children} False {PLACE.environment()['PYTHONPATH'].count('children')}\n", done.stderr
    assert names(folder) == (["trace.process-N.json.gz"] if children else [])


def test_the_reports_wait_for_a_rank_that_ends_after_the_program(folder: Path) -> None:
    late = "import time, training\ntraining.train(10)\nopen('ready', 'w')\ntime.sleep(1.5)\n"
    program = (
        f"import os, subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {late!r}])\n"
        "while not os.path.exists('ready'):\n    time.sleep(0.01)\n"
    )
    done = record(folder, program + TRAINING)
    assert "traces of 2 processes" in done.stderr, done.stderr
    assert not list((folder / "out").glob(".*"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a process is over")
def test_a_child_that_was_killed_is_not_waited_for_and_leaves_nothing(folder: Path) -> None:
    child = "import os, signal, training\ntraining.train(3)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    began = time.monotonic()
    program = f"import subprocess, sys\nkilled = subprocess.Popen([sys.executable, '-c', {child!r}])\n" + TRAINING
    done = record(
        folder,
        program + "import time\nwhile open(f'/proc/{killed.pid}/stat').read().split()[2] != 'Z':\n"
        "    time.sleep(0.01)\n",
    )
    assert done.status == 0 and time.monotonic() - began < PATIENCE
    assert sorted(os.listdir(folder / "out")) == ["report.html", "report.json", "trace.json.gz"]
