"""Public programs with a patch each: the patches, and what times both versions."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.public.running import Place
from benchmarks.public.table import PROGRAMS, Program
from benchmarks.savings import whole
from benchmarks.savings.catalogue import Named, Pair, pairs
from benchmarks.savings.patched import MORE, PATCHED, PATCHES, Patched, apply
from benchmarks.savings.record import as_named, one_size_first
from benchmarks.savings.scores import RECORDINGS, Measured, Predicted, Row, summarise
from syncscope.trace import load

PATCH = """--- a/loop/main.py
+++ b/loop/main.py
@@ -1,4 +1,3 @@
 first
-second
 third
 fourth
@@ -8,2 +7,3 @@
 eighth
+more
 ninth
"""


class TestPatches:
    def test_each_has_a_file_and_each_file_a_program(self) -> None:
        assert {one.patch for one in PATCHED} == set(PATCHES.glob("*.patch"))
        assert len(PATCHED) >= 8
        assert {one.program for one in PATCHED} <= {program.name for program in (*PROGRAMS, *MORE)}

    @pytest.mark.parametrize("one", PATCHED, ids=lambda one: one.name)
    def test_what_a_patch_answers_is_what_it_takes_away(self, one: Patched) -> None:
        removed = "\n".join(line for line in one.patch.read_text().splitlines() if line.startswith("-"))
        if one.name in ("llama2.c", "nanogpt"):  # they log less often
            assert "log_interval" in removed
        elif one.asked:
            assert not one.findings
        else:
            assert all(named.expression in removed or one.name == "acgan" for named in one.findings)

    def test_apply_changes_what_the_diff_says(self, tmp_path: Path) -> None:
        patch, script = tmp_path / "a.patch", tmp_path / "loop" / "main.py"
        patch.write_text(PATCH)
        script.parent.mkdir()
        script.write_text("first\nsecond\nthird\nfourth\nfifth\nsixth\nseventh\neighth\nninth\n")
        assert apply(patch, tmp_path) == script
        assert script.read_text() == "first\nthird\nfourth\nfifth\nsixth\nseventh\neighth\nmore\nninth\n"

    def test_what_is_linked_into_a_clone_stays_as_it_is(self, tmp_path: Path) -> None:
        patch, script, data = tmp_path / "a.patch", tmp_path / "loop" / "main.py", tmp_path / "data.py"
        patch.write_text(PATCH)
        script.parent.mkdir()
        data.write_text("first\nsecond\nthird\nfourth\nfifth\nsixth\nseventh\neighth\nninth\n")
        script.symlink_to(data)
        apply(patch, tmp_path)
        assert "second" not in script.read_text() and "second" in data.read_text()

    def test_apply_refuses_another_version_of_the_file(self, tmp_path: Path) -> None:
        patch, script = tmp_path / "a.patch", tmp_path / "loop" / "main.py"
        patch.write_text(PATCH)
        script.parent.mkdir()
        script.write_text("something else\n")
        with pytest.raises(ValueError, match=r"a\.patch does not fit"):
            apply(patch, tmp_path)


def test_what_comes_before_a_program_runs_once_and_each_version_has_what_it_made(tmp_path: Path) -> None:
    one = replace(next(one for one in PATCHED if one.name == "bigram"), first="first.py {data}")
    clone = tmp_path / "programs" / one.whole.clone
    clone.mkdir(parents=True)
    (clone / "bigram.py").write_text("")
    (clone / "first.py").write_text("import sys\nprint(*sys.argv[1:], file=open('made', 'a'))\n")
    place = Place(tmp_path / "programs", tmp_path / "data", tmp_path / "work", Path.cwd())
    copies = [whole.copied(one, place, version) for version in ("before", "recorded")]
    assert [copy.parent.name for copy in copies] == ["bigram.before", "bigram.recorded"]
    assert {(copy / "made").read_text() for copy in copies} == {f"{tmp_path / 'data'}\n"}
    assert all((copy / "input.txt").is_symlink() for copy in copies)


def test_a_step_has_as_many_backwards_as_its_recording_shows() -> None:
    seen = {}
    for one in PATCHED:
        trace = RECORDINGS / one.pair.name / "trace.json.gz"
        recording = load(trace).recording if trace.exists() else None
        stamps = recording.bare.stamps if recording and recording.bare else ()
        count = sum(stamp.event == "backward" for stamp in stamps)
        if count:
            seen[one.name] = count
    assert {"cgan": 2, "dcgan": 3, "llama2.c": 4, "vae": 1}.items() <= seen.items()
    assert seen == {one.name: one.backwards for one in PATCHED if one.name in seen}


LOOP = """
import torch
weight = torch.ones(3, requires_grad=True)
for step in range(1000):
    (weight.sum() * 2).backward()
print("the end")
"""


class TestTiming:
    def run(self, tmp_path: Path, plan: dict[str, object] | None) -> subprocess.CompletedProcess[str]:
        pytest.importorskip("torch")
        script = tmp_path / "loop.py"
        script.write_text(LOOP)
        added = {"PYTHONPATH": str(whole.TIMER)}
        if plan is not None:
            added["SAVINGS_TIMER"] = json.dumps({"folder": str(tmp_path), "name": "before.0", **plan})
        return subprocess.run(
            [sys.executable, str(script)], env=os.environ | added, capture_output=True, text=True, check=False
        )

    def test_a_process_waits_for_its_turn_and_ends_when_its_steps_are_timed(self, tmp_path: Path) -> None:
        (tmp_path / "before.0.go").touch()
        done = self.run(tmp_path, {"gate": 2, "settle": 3, "timed": 10, "part": 4, "seconds": 60})
        assert done.returncode == 0 and "the end" not in done.stdout
        assert (tmp_path / "before.0.ready").exists()
        timing = whole.Timing(PATCHED[0], folder=tmp_path)
        assert timing.measured("before")[0] > 0

    def test_a_process_that_has_timed_for_long_enough_ends(self, tmp_path: Path) -> None:
        (tmp_path / "before.0.go").touch()
        done = self.run(tmp_path, {"gate": 2, "settle": 3, "timed": 100_000, "part": 4, "seconds": 0})
        assert done.returncode == 0 and "the end" not in done.stdout
        assert whole.Timing(PATCHED[0], folder=tmp_path).measured("before")[0] > 0

    def test_a_program_is_recorded_before_the_next_has_its_turns(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        did: list[str] = []

        def kept(timing: whole.Timing, out: Path) -> str:
            folder = out / timing.one.pair.name
            folder.mkdir(parents=True)
            (folder / "trace.timings.json").touch()
            return "timed"

        monkeypatch.setattr(whole, "start", lambda one, place, processes: whole.Timing(one))
        monkeypatch.setattr(whole, "take_turns", lambda timing: did.append(f"times {timing.one.name}"))
        monkeypatch.setattr(whole, "record", lambda one, place, target: did.append(f"records {one.name}"))
        monkeypatch.setattr(whole, "_kept", kept)
        first, second = PATCHED[:2]
        place = Place(tmp_path, tmp_path, tmp_path / "work", Path.cwd())
        whole.prove([first, second], place, tmp_path / "out", 5, 2, float("inf"))
        assert did == [f"{does} {one.name}" for one in (first, second) for does in ("times", "records")]

    def test_stretches_hold_whole_steps(self) -> None:
        parts = {one.name: one.part for one in PATCHED}
        assert (parts["gan"], parts["wgan-gp"], parts["dcgan"], parts["vae"]) == (20, 12, 15, 25)
        assert all(one.timed // one.part >= 4 for one in PATCHED)

    def test_without_a_plan_a_program_runs_as_ever(self, tmp_path: Path) -> None:
        assert self.run(tmp_path, None).stdout == "the end\n"

    def test_figures_are_pairs_of_processes_that_both_got_to_their_end(self, tmp_path: Path) -> None:
        for name, length in (("before.0", 2.0), ("after.0", 1.0), ("before.1", 2.2), ("after.2", 1.1)):
            (tmp_path / f"{name}.ms").write_text(repr(length))
        found = whole.figures(whole.Timing(PATCHED[0], folder=tmp_path))
        assert (found["before_ms"], found["after_ms"]) == ([2.0], [1.0])


def test_a_program_runs_with_its_own_arguments_and_data() -> None:
    one = next(one for one in PATCHED if one.data)
    listed = next(program for program in PROGRAMS if program.name == one.program)
    changed = replace(one, arguments="--steps 3").whole
    assert isinstance(changed, Program)
    assert changed.command == f"{listed.command.split()[0]} --steps 3"
    assert changed.data == one.data != listed.data


def test_every_program_comes_once_before_any_comes_twice() -> None:
    wanted = [(pair, "windows") for pair in pairs() if pair.fresh]
    order = [pair.program for pair, _ in one_size_first(wanted)]
    programs = set(order)
    assert set(order[: len(programs)]) == programs
    assert len(order) == len(wanted)


def test_what_is_named_comes_in_the_order_of_the_names() -> None:
    only = ["loader_audio", "graph_solver.wide", "graph_solver.small", "graph_solver"]
    wanted = [(pair, "windows") for pair in pairs() if pair.program in ("loader_audio", "graph_solver")]
    order = [pair.name for pair, _ in as_named(wanted, only)]
    assert order == ["loader_audio.slow", "graph_solver.wide", "graph_solver.small"]


class TestSummary:
    def row(self, saving: float | None, low: float = 1.0, high: float = 3.0, measured: float = 2.0) -> Row:
        pair = Pair("made_up", "small", (1,), "wait removed", "wait", (Named("SYN102", "x.item()"),), fresh=True)
        return Row(
            pair, "windows", Measured(10.0, measured, measured, measured), Predicted((), saving, low, high, busy=9.5)
        )

    def test_near_is_a_hundredth_of_the_step_or_a_quarter_of_the_saving(self) -> None:
        assert self.row(2.4).near and not self.row(2.6).near
        assert self.row(0.09, measured=0.0).near and not self.row(0.2, measured=0.0).near
        assert not self.row(None).near

    def test_a_saving_lies_in_the_range_or_not(self) -> None:
        assert self.row(2.0).inside and not self.row(2.0, low=2.1).inside
        assert self.row(0.0, low=0.0, measured=-0.01).inside, "a fix that makes it slower saves nothing"

    def test_shares_are_of_all_rows_and_widths_of_the_step(self) -> None:
        found = summarise([self.row(2.0), self.row(2.9), self.row(None)])
        assert (found.rows, found.near, found.answered) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))
        assert found.worst == pytest.approx(0.09)
        assert found.width == pytest.approx(0.2)
        assert math.isnan(summarise([]).near)
