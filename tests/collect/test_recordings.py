"""Which file each phase of a process gets, and what is in it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from syncscope.collect import recordings
from syncscope.collect.files import FileNames
from syncscope.collect.phases.phase import Phase
from syncscope.collect.recordings import Recordings
from syncscope.collect.tracefile import TraceFile, read_head
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording


class Process:
    """A process that keeps recordings. The length of its run says which state of it a file holds."""

    def __init__(self, folder: Path) -> None:
        self.time_ns = 0
        self.complete = False
        self.folder = folder
        self.recordings = Recordings(FileNames(folder, "run"), self.completed)

    def completed(self, recording: Recording) -> Recording:
        self.time_ns += 1
        run = RecordedRun(id="run", started_ns=0, time_ns=self.time_ns, complete=self.complete)
        return structs.replace(recording, run=run)

    def keep(self, phase: Phase, event: str = "event", steps: int = 2) -> None:
        exported = msgspec.json.encode({"traceEvents": [event]})
        self.recordings.keep(phase, exported, recording(tuple(range(steps + 1))))

    def write_state(self) -> None:
        self.recordings.write_state(lambda: recording(()))

    def finish(self) -> None:
        self.complete = True
        self.recordings.finish(lambda phase: phase.time_ns)

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """What is in the folder: of each file its phase, its events, its boundaries, and whether it is the main one."""
        found = {}
        for path in sorted(self.folder.iterdir()):
            document = msgspec.json.decode(gzip.decompress(path.read_bytes()))
            ours = document["syncscope"]
            found[path.name] = {
                "phase": ours["phase"],
                "events": document["traceEvents"],
                "steps": max(len(ours["steps"]["boundaries_ns"]) - 1, 0),
                "main": ours["run"]["main"],
            }
        return found

    def time_in(self, name: str) -> int:
        """Of the run, as the file has it."""
        document = msgspec.json.decode(gzip.decompress((self.folder / name).read_bytes()))
        return int(document["syncscope"]["run"]["time_ns"])


def recording(boundaries_ns: tuple[int, ...]) -> Recording:
    steps = RecordedSteps(source="module", boundaries_ns=boundaries_ns)
    return Recording(format=FORMAT, version="0", pid=7, steps=steps)


def phase(number: int, kind: Any, time_ns: int = 0) -> Phase:
    return Phase(number, kind, time_ns=time_ns)


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    for name in ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return Process(tmp_path)


def test_a_state_is_written_where_no_window_was_recorded_and_replaced_by_the_next(process: Process) -> None:
    assert process.recordings.path is None
    process.write_state()
    counted_only: dict[str, Any] = {"phase": None, "events": [], "steps": 0, "main": True}
    assert process.files == {"trace.json.gz": counted_only}
    assert (process.recordings.path, process.recordings.phases) == (process.folder / "trace.json.gz", ())
    before = process.time_in("trace.json.gz")
    process.write_state()
    assert process.files == {"trace.json.gz": counted_only}
    assert process.time_in("trace.json.gz") > before


def test_training_takes_the_main_file_of_a_state(process: Process) -> None:
    process.write_state()
    process.keep(phase(1, "train"))
    of_training = {"phase": "train", "events": ["event"], "steps": 2, "main": True}
    assert process.files == {"trace.json.gz": of_training}
    process.write_state()
    process.finish()
    assert process.files == {"trace.json.gz": of_training}


def test_another_phase_leaves_the_main_file_to_training(process: Process) -> None:
    evaluation, train = phase(1, "evaluate", time_ns=9), phase(2, "train", time_ns=1)
    process.keep(evaluation)
    assert process.recordings.path is None
    process.write_state()
    process.keep(train, "of training")
    process.finish()
    assert process.files == {
        "trace.evaluate.json.gz": {"phase": "evaluate", "events": ["event"], "steps": 2, "main": False},
        "trace.json.gz": {"phase": "train", "events": ["of training"], "steps": 2, "main": True},
    }
    assert set(process.recordings.phases) == {evaluation, train}


def test_a_state_is_written_into_the_files_of_phases_too(process: Process) -> None:
    """A process that is killed leaves them as they are then."""
    process.write_state()
    process.keep(Phase(1, "evaluate"))
    before = process.time_in("trace.evaluate.json.gz")
    process.write_state()
    assert process.time_in("trace.evaluate.json.gz") > before
    assert process.files["trace.evaluate.json.gz"]["events"] == ["event"]


def test_large_files_of_phases_wait_for_the_end(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MOST_BYTES", 10)
    process.write_state()
    process.keep(Phase(1, "evaluate"))
    before = process.time_in("trace.evaluate.json.gz")
    process.write_state()
    assert process.time_in("trace.evaluate.json.gz") == before
    process.finish()
    assert process.files["trace.json.gz"]["phase"] == "evaluate"


def test_a_second_training_has_a_file_of_its_own(process: Process) -> None:
    first, second = phase(1, "train"), phase(2, "train", time_ns=99)
    process.keep(first)
    process.keep(second, "of the second")
    process.finish()
    assert {name: (file["events"], file["main"]) for name, file in process.files.items()} == {
        "trace.json.gz": (["event"], True),
        "trace.train.json.gz": (["of the second"], False),
    }


@pytest.mark.parametrize("state", [True, False])
def test_without_training_the_longest_phase_gets_the_main_file_at_the_end(process: Process, state: bool) -> None:
    evaluation, generation = phase(1, "evaluate", time_ns=1), phase(2, "generate", time_ns=5)
    process.keep(evaluation)
    process.keep(generation, "of generation")
    if state:
        process.write_state()
        assert process.files["trace.json.gz"]["phase"] is None
    process.finish()
    assert {name: (file["phase"], file["events"], file["main"]) for name, file in process.files.items()} == {
        "trace.evaluate.json.gz": ("evaluate", ["event"], False),
        "trace.json.gz": ("generate", ["of generation"], True),
    }
    assert process.recordings.path == process.folder / "trace.json.gz"


def test_later_windows_of_a_phase_replace_its_file(process: Process) -> None:
    train, evaluation = phase(1, "train"), phase(2, "evaluate")
    for event, steps in (("early", 2), ("steady", 5)):
        for one in (train, evaluation):
            process.keep(one, event, steps)
    assert {name: (file["events"], file["steps"]) for name, file in process.files.items()} == {
        "trace.evaluate.json.gz": (["steady"], 5),
        "trace.json.gz": (["steady"], 5),
    }
    assert process.recordings.phases == (train, evaluation)


def test_every_file_holds_the_whole_run_at_the_end(process: Process) -> None:
    process.keep(phase(1, "train"))
    process.keep(phase(2, "evaluate"))
    process.write_state()
    before = process.time_ns
    process.finish()
    for name in ("trace.json.gz", "trace.evaluate.json.gz"):
        head = read_head(process.folder / name)
        assert head is not None and head.complete
        assert process.time_in(name) > before


def test_removing_leaves_nothing(process: Process) -> None:
    process.write_state()
    process.keep(phase(1, "evaluate"))
    process.recordings.remove()
    assert (process.files, process.recordings.path, process.recordings.phases) == ({}, None, ())
    process.recordings.remove()


def test_a_cut_export_leaves_the_file_as_it_was(process: Process) -> None:
    evaluation, train = phase(1, "evaluate"), phase(2, "train")
    process.write_state()
    process.keep(evaluation)
    before = process.files
    for one in (evaluation, train, phase(3, "generate")):
        with pytest.raises(ValueError, match="no complete trace"):
            process.recordings.keep(one, b'{"traceEvents": [', recording((1, 2)))
        assert process.files == before
    assert process.recordings.phases == (evaluation,)
    process.write_state()
    assert process.files == before


def test_what_a_full_disk_refused_is_not_there_and_may_be_written_later(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = phase(1, "train")
    with monkeypatch.context() as full:
        full.setattr(TraceFile, "write", lambda *given: (_ for _ in ()).throw(OSError("disk full")))
        for write in (process.write_state, lambda: process.keep(train), lambda: process.keep(phase(2, "evaluate"))):
            with pytest.raises(OSError, match="disk full"):
                write()
            assert (process.recordings.path, process.recordings.phases) == (None, ())
    process.write_state()
    process.keep(train)
    assert [(name, file["phase"]) for name, file in process.files.items()] == [("trace.json.gz", "train")]


def test_windows_of_what_turned_out_to_be_a_part_of_another_phase_go(process: Process) -> None:
    train, teacher, evaluation = phase(1, "train"), phase(2, "evaluate"), phase(3, "evaluate")
    for one in (teacher, evaluation):
        one.join([teacher, evaluation])
    process.keep(teacher)
    process.keep(evaluation, "of the evaluation")
    teacher.folded_into = train
    process.write_state()
    process.finish()
    kept = {"phase": "evaluate", "events": ["of the evaluation"], "steps": 2, "main": True}
    assert process.files == {"trace.json.gz": kept}
    assert process.recordings.phases == (evaluation,)
