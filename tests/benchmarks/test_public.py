"""The public programs: how they are started, and how a report is held against the oracle."""

from __future__ import annotations

import gzip
import json
import os
import queue
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.public import by_phase, data, listing, proof, running
from benchmarks.public.comparing import Judged, compare, same_file
from benchmarks.public.rows import is_close, row
from benchmarks.public.running import Done, Mode, Place
from benchmarks.public.table import COMMITS, PROGRAMS, Program
from syncscope.schema.counting import CountedWait, RecordedPhase, RecordedRun
from syncscope.schema.findings import Frame, Site
from syncscope.schema.recording import RecordedFrame, RecordedSteps, Recording
from syncscope.schema.run import CompilingWaits, Counted
from tests.report import sample_run
from tests.report.sample import finding, report

BEFORE: tuple[Mode, ...] = ("bare", "oracle")
AT = Frame(file="train.py", line=5, function="main")
PUBLIC = Path(running.__file__).parent
STAND_IN = """
pending = []
class cuda:
    _lazy_call = pending.append
    set_sync_debug_mode = staticmethod(lambda mode: None)
def is_grad_enabled():
    return False
"""


def counted_alone(program: Path) -> list[Any]:
    """The only line that the oracle counts in ``program``, which has a stand-in for PyTorch beside it."""
    results = program.parent / "results"
    results.mkdir()
    path = f"{PUBLIC / 'oracle'}{os.pathsep}{program.parent}"
    subprocess.run(
        [sys.executable, program], env={**os.environ, "ORACLE": str(results), "PYTHONPATH": path}, check=True
    )
    (written,) = results.glob("*.json")
    (row_of,) = json.loads(written.read_text())["counts"]
    return row_of


def test_every_program_has_a_commit_and_data_that_is_made() -> None:
    made = {*data.MAKERS, *data.FROM_PROGRAMS}
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    assert {program.repository for program in PROGRAMS} == set(COMMITS)
    assert len({program.clone for program in PROGRAMS}) == len(COMMITS)
    assert {target.split("/")[0] for program in PROGRAMS for target in program.data.values()} <= made


def test_labels_are_those_of_programs() -> None:
    labels = json.loads((PUBLIC / "labels.json").read_text())
    assert labels.keys() <= {program.name for program in PROGRAMS}
    for label in labels.values():
        assert label.keys() == {"phases", "lines", "note"}
        for place, (count, phase, why) in label["lines"].items():
            assert int(place.rsplit(":", 1)[1]) > 0
            assert count is None or count > 0
            assert phase
            assert why


@pytest.mark.parametrize("name", ["episodes", "reversals"])
def test_a_configuration_says_the_same_as_yaml(tmp_path: Path, name: str) -> None:
    yaml = pytest.importorskip("yaml")
    data.MAKERS[name](tmp_path / name)
    text = (tmp_path / name / "config.yaml").read_text()
    assert yaml.safe_load(text) == json.loads(text)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (Program("a", "", "o/a", "train.py --lr 1"), "-m syncscope profile -o out --stop train.py --lr 1"),
        (Program("a", "", "o/a", "train.py", launcher="-m launch"),
         "-m syncscope profile -o out --stop -m launch train.py"),
        (Program("a", "", "o/a", "train.py", launcher="-m launch", inside=True),
         "-m launch -m syncscope profile -o out --stop train.py"),
    ],
)  # fmt: skip
def test_the_launcher_starts_syncscope_or_is_started_by_it(program: Program, words: str) -> None:
    place = Place(Path("p"), Path("d"), Path("w"), Path("t"), options=("--stop",))
    assert running.command(program, "profile", place, Path("out"), program.command)[1:] == words.split()


def test_watch_writes_its_report_beside_its_counts() -> None:
    place = Place(Path("p"), Path("d"), Path("w"), Path("t"))
    words = running.command(Program("a", "", "o/a", "train.py"), "watch", place, Path("out"), "train.py")
    assert words[1:] == ["-m", "syncscope", "watch", "-o", "out/report.json", "train.py"]


def test_a_program_runs_in_a_copy_with_its_data(tmp_path: Path) -> None:
    clone, made = tmp_path / "programs/repo", tmp_path / "data/numbers"
    (clone / "inputs").mkdir(parents=True)
    made.mkdir(parents=True)
    (clone / "inputs/prepare.py").write_text("")
    (made / "numbers.txt").write_text("5")
    (clone / "main.py").write_text("print(open('inputs/numbers.txt').read()); open('left', 'w')")
    program = Program("one", "", "owner/repo", "main.py", data={"inputs": "numbers"})
    done = running.run(program, "bare", Place(tmp_path / "programs", tmp_path / "data", tmp_path / "work", tmp_path))
    assert (done.status, done.stdout) == (0, "5\n")
    assert not (clone / "left").exists()


def test_variables_name_the_folder_of_the_data(tmp_path: Path) -> None:
    program = Program("one", "", "o/a", "train.py", environment={"TORCH_HOME": "{data}/weights", "PYTHONPATH": "src"})
    place = Place(Path("p"), Path("/d"), Path("w"), Path("t"))
    variables = running.environment(program, "bare", place, tmp_path / "a", tmp_path, None)
    assert variables["TORCH_HOME"] == "/d/weights"
    assert variables["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path / "a/src")


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "programs/repo").mkdir(parents=True)
    (tmp_path / "programs/repo/main.py").write_text("import time; time.sleep(60)")
    program = Program("one", "", "owner/repo", "main.py", seconds=1)
    done = running.run(program, "bare", Place(tmp_path / "programs", tmp_path, tmp_path / "work", tmp_path))
    assert done.status == "timeout"
    assert done.seconds < 30


@pytest.mark.parametrize("ending", ["", "import os; os._exit(0)"])
def test_the_oracle_counts_by_line_whatever_the_program_filters(tmp_path: Path, ending: str) -> None:
    (tmp_path / "torch.py").write_text(STAND_IN)
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "for _ in range(3):\n"
        "    with warnings.catch_warnings(record=True) as seen:\n"
        "        warnings.simplefilter('error')\n"
        "        warnings.warn('called a synchronizing CUDA operation (from here)')\n"
        "assert not seen\n"
        "warnings.warn('called a synchronizing CUDA operation')\n" + ending
    )
    results = tmp_path / "results"
    results.mkdir()
    variables = {**os.environ, "ORACLE": str(results), "PYTHONPATH": f"{PUBLIC / 'oracle'}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, program], env=variables, capture_output=True, text=True, check=True)
    (written,) = results.glob("*.json")
    counts = {line: count for _, line, _, _, _, _, count in json.loads(written.read_text())["counts"]}
    assert counts == {6: 3, 8: 1}
    assert done.stderr == ""


@pytest.mark.parametrize(("folder", "inner"), [("site-packages/lib", "program"), ("repo", "tensors")])
def test_the_oracle_passes_methods_of_a_librarys_tensors_as_the_report_does(
    tmp_path: Path, folder: str, inner: str
) -> None:
    (tmp_path / "torch.py").write_text(STAND_IN)
    tensors, program = tmp_path / folder / "tensors.py", tmp_path / "program.py"
    tensors.parent.mkdir(parents=True)
    tensors.write_text(
        "import warnings\ndef __torch_function__():\n    warnings.warn('called a synchronizing CUDA operation')\n"
    )
    program.write_text(
        f"import sys, torch\nsys.path.append({str(tensors.parent)!r})\nimport tensors\ntensors.__torch_function__()\n"
    )
    row_of = counted_alone(program)
    assert Path(row_of[0]).stem == inner and row_of[1] == {"program": 4, "tensors": 3}[inner]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/tmp/run/repo/train.py", "train.py", True),
        ("/env/lib/python3.12/site-packages/torch/optim/adam.py", "<site-packages>/torch/optim/adam.py", True),
        ("/tmp/run/repo/a/main.py", "b/main.py", False),
    ],
)
def test_files_are_the_same_where_one_path_ends_in_the_other(one: str, other: str, same: bool) -> None:
    assert same_file(one, other) is same


def write_oracle(folder: Path, counts: list[list[object]]) -> Path:
    folder.mkdir()
    (folder / "1.json").write_text(json.dumps({"argv": [], "cwd": "", "counts": counts}))
    return folder


def write_results(folder: Path) -> Path:
    """Line 5 waits in each of 40 steps, one in four of them counted, and copies there, as two rules and a third say;
    line 9 is counted, and missed by the report."""
    folder.mkdir()
    found = [
        msgspec.structs.replace(finding(rule, "name", 5, "x.item()"), at=AT, phase="train", occurrences=count)
        for rule, count in (("SYN102", 30), ("SYN105", 10), ("CPY201", 40))
    ]
    (folder / "report.json").write_text(report(found=found).to_json())
    frames = tuple(RecordedFrame(file="train.py", line=line, function="main") for line in (5, 9, 11))
    waits = tuple(
        CountedWait(phase=0, stack=number, kind="warning", count=count) for number, count in enumerate((10, 1, 2))
    )
    phase = RecordedPhase(name="train", kind="train", steps=40, one_in=4.0)
    run = RecordedRun(id="r", started_ns=0, time_ns=1, complete=True, phases=(phase,), waits=waits)
    recording = Recording(
        format=1, version="0", pid=1, phase="train", run=run, frames=frames, stacks=((0,), (1,), (2,)),
        steps=RecordedSteps(source="optimizer", first=20, boundaries_ns=(0, 1, 2)),
    )  # fmt: skip
    content = {"traceEvents": [], "syncscope": recording}
    (folder / "trace.json.gz").write_bytes(gzip.compress(msgspec.json.encode(content)))
    return folder


def test_each_line_of_the_oracle_is_held_against_counts_and_findings(tmp_path: Path) -> None:
    first_row = ["/tmp/repo/train.py", 5, "/tmp/repo/train.py", 5, True, False, 40]
    oracle = write_oracle(tmp_path / "oracle", [first_row, ["/tmp/repo/train.py", 9, "", 0, False, False, 5]])
    compared = compare(oracle, write_results(tmp_path / "results"))
    first, second = compared.lines
    assert (first.warned, first.counted, first.reported, first.phases) == (40, 40, 40, {"train": 40})
    assert first.exact and first.rules == ["CPY201", "SYN102", "SYN105"]
    assert (second.warned, second.counted, second.found) == (5, 4, False)
    assert compared.elsewhere == {"train.py:11": 8}
    assert compared.windows == ["train 20-22 of 40"]


def test_rules_about_a_line_that_no_window_recorded_each_tell_all_of_its_waits(tmp_path: Path) -> None:
    oracle = write_oracle(tmp_path / "oracle", [["/tmp/repo/train.py", 5, "", 0, True, False, 40]])
    results = write_results(tmp_path / "results")
    made = report(found=[
        msgspec.structs.replace(
            finding(rule, "name", 5, "x.item()"), at=AT, phase="other", occurrences=40, site_source="count"
        )
        for rule in ("SYN102", "SYN103")
    ])  # fmt: skip
    (results / "report.json").write_text(made.to_json())
    (line,) = compare(oracle, results).lines
    assert line.exact and line.phases == {"other": 40}


def test_counted_waits_in_a_librarys_tensors_are_those_of_the_line_that_calls_them(tmp_path: Path) -> None:
    oracle = write_oracle(tmp_path / "oracle", [["/tmp/repo/train.py", 5, "", 0, True, False, 4]])
    results = write_results(tmp_path / "results")
    path = results / "trace.json.gz"
    content = json.loads(gzip.decompress(path.read_bytes()))
    recording = msgspec.convert(content["syncscope"], Recording)
    inner = RecordedFrame(file="<site-packages>/lib/tensors.py", line=3, function="Lazy.__torch_function__")
    assert recording.run is not None
    run = msgspec.structs.replace(recording.run, waits=(CountedWait(phase=0, stack=0, kind="warning", count=1),))
    recording = msgspec.structs.replace(recording, frames=(*recording.frames, inner), stacks=((0, 3),), run=run)
    path.write_bytes(gzip.compress(msgspec.json.encode({**content, "syncscope": recording})))
    compared = compare(oracle, results)
    assert compared.lines[0].counted == 4 and not compared.elsewhere


def test_a_row_says_what_is_missed_and_what_failed(tmp_path: Path) -> None:
    oracle = write_oracle(tmp_path / "oracle", [["/tmp/repo/train.py", 9, "", 0, False, False, 5]])
    compared = compare(oracle, write_results(tmp_path / "results"))
    copy = tmp_path / "repo"
    bare, other = (Done(mode, 0, 1.0, "loss 1.5", "", copy, tmp_path) for mode in BEFORE)
    ours = Done("profile", 1, 1.0, "loss 1.6", "Traceback\nOSError: gone\n", copy, tmp_path)
    text = row("one", bare, other, ours, compared)
    assert "0/1" in text and "missed train.py:9×5" in text
    assert "0→1" in text and "numbers" in text and "profile: OSError: gone" in text


def test_counts_of_sampled_steps_may_be_a_tenth_off(tmp_path: Path) -> None:
    oracle = write_oracle(tmp_path / "oracle", [["/tmp/repo/train.py", 5, "", 0, True, False, 43]])
    (line,) = compare(oracle, write_results(tmp_path / "results")).lines
    assert not line.exact and is_close(line)


FOLDS = "/env/lib/python3.12/site-packages/torch/_inductor/fx_passes/joint_graph.py"


def compared_notes(folder: Path, warned: int, user: int, compiling: bool = True) -> Judged:
    """Warnings of PyTorch's, held against a report that notes 49 waits while line 7 compiles."""
    folder.mkdir()
    place = [FOLDS, 295, "/tmp/repo/train.py", user, False, compiling, warned]
    oracle = write_oracle(folder / "oracle", [place])
    results = write_results(folder / "results")
    at = Frame(file="<site-packages>/torch/_inductor/fx_passes/joint_graph.py", line=295, function="fold")
    site = Site(file="train.py", line=7, function="main", expression="model(x)")
    notes = (CompilingWaits(site=site, at=at, waits=49),)
    run = sample_run.run(counted=Counted(one_in=1.0, overhead_share=None, compiling=notes))
    made = report(found=[])
    traces = tuple(msgspec.structs.replace(one, run=run) for one in made.traces[:1])
    (results / "report.json").write_text(msgspec.structs.replace(made, traces=traces).to_json())
    (line,) = compare(oracle, results).lines
    return line


def test_warnings_while_it_compiles_are_found_where_the_users_line_has_a_note(tmp_path: Path) -> None:
    same = compared_notes(tmp_path / "same", 49, 7)
    assert (same.compiling, same.noted, same.reported, same.exact) == (49, 49, 49, True)
    assert same.phases == {"while it compiles": 49}
    near = compared_notes(tmp_path / "near", 52, 7)
    assert near.found and not near.exact and is_close(near)


@pytest.mark.parametrize(
    ("warned", "user", "compiling"), [(90, 7, True), (49, 8, True), (49, 7, False)], ids=["far", "line", "runs"]
)
def test_a_note_of_another_number_line_or_kind_is_no_credit(
    tmp_path: Path, warned: int, user: int, compiling: bool
) -> None:
    line = compared_notes(tmp_path / "other", warned, user, compiling)
    assert (line.noted, line.found) == (0, False)


@pytest.mark.parametrize("inside", ["_compile", "run"])
def test_the_oracle_says_whether_the_compiler_was_at_work(tmp_path: Path, inside: str) -> None:
    (tmp_path / "torch.py").write_text(STAND_IN)
    library = tmp_path / "site-packages/torch/_dynamo/convert_frame.py"
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, warnings\n"
        "names = {'warnings': warnings}\n"
        "source = 'def NAME():\\n    warnings.warn(\"called a synchronizing CUDA operation\")'\n"
        f"exec(compile(source.replace('NAME', {inside!r}), {str(library)!r}, 'exec'), names)\n"
        f"names[{inside!r}]()\n"
    )
    row_of = counted_alone(program)
    assert row_of == [str(library), 2, str(program), 5, False, inside == "_compile", 1]


def test_the_readme_lists_the_programs() -> None:
    assert listing.markdown() in listing.README.read_text(), "python -m benchmarks.public.listing writes it again"


def test_programs_end_with_the_proof(tmp_path: Path) -> None:
    (tmp_path / "programs/repo").mkdir(parents=True)
    (tmp_path / "programs/repo/main.py").write_text("import time; time.sleep(60)")
    program = Program("one", "", "owner/repo", "main.py")
    place = Place(tmp_path / "programs", tmp_path, tmp_path / "work", tmp_path)
    with ThreadPoolExecutor() as pool:
        running_now = pool.submit(running.run, program, "bare", place)
        while not running.ALIVE:
            time.sleep(0.01)
        running.end_all()
        assert running_now.result().status == -signal.SIGKILL
    assert not running.ALIVE


def test_a_first_command_that_never_ends_is_told_in_the_row(tmp_path: Path) -> None:
    (tmp_path / "programs/repo").mkdir(parents=True)
    (tmp_path / "programs/repo/first.py").write_text("import time; time.sleep(60)")
    program = Program("one", "", "owner/repo", "main.py", before="first.py", seconds=1)
    place = Place(tmp_path / "programs", tmp_path, tmp_path / "work", tmp_path)
    gpus: queue.Queue[int] = queue.Queue()
    gpus.put(0)
    said, details = proof.prove(program, "profile", place, gpus, float("inf"))
    assert "could not be started" in said and "timed out" in str(details["error"])
    assert gpus.get_nowait() == 0


def test_data_take_the_place_of_what_the_clone_has(tmp_path: Path) -> None:
    data, clone = tmp_path / "data", tmp_path / "clone"
    for path, text in (("data/a", "made"), ("data/b", "made"), ("clone/here/a", "theirs"), ("clone/here/c", "theirs")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (clone / "b").write_text("theirs")
    running.connect(clone / "here", data)
    running.connect(clone / "b", data / "b")
    running.connect(clone / "new" / "a", data / "a")
    found = {str(path.relative_to(clone)): path.read_text() for path in clone.rglob("*") if path.is_file()}
    assert found == {"here/a": "made", "here/b": "made", "here/c": "theirs", "b": "made", "new/a": "made"}


def test_steps_are_held_against_labels_by_what_phases_are() -> None:
    labels = {"a": {"phases": {"train_flow": 40, "vali": 6, "test on what has no truth": 2, "play": None}}}
    phases = [{"kind": "train", "steps": 80}, {"kind": "evaluate", "steps": 12}, {"kind": "evaluate", "steps": 3}]
    details = {"program": "a", "compared": {"phases": phases, "processes": 2}, "runs": {"profile": {"status": 0}}}
    train, evaluate = by_phase.compare(labels, [details])
    assert (train.kind, train.equal) == ("train", True)
    assert (evaluate.kind, evaluate.labelled, evaluate.told, evaluate.equal) == ("evaluate", 8, 15, False)
    ended = {**details, "runs": {"profile": {"status": "timeout"}}}
    assert not list(by_phase.compare(labels, [ended, {**details, "program": "b"}]))
    assert by_phase.labelled_steps({"test": None, "val": 4}) == {}
