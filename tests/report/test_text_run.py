"""The whole run in a terminal: short, aligned, within its width whatever names are, and told once a run."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from syncscope.report.text import render
from syncscope.report.text_run import show_runs
from syncscope.report.view import View
from syncscope.schema.findings import Finding, Frame, Site
from syncscope.schema.report import Report
from syncscope.schema.run import PhaseLine
from tests.report import sample
from tests.report.hostile import HOSTILE, unseen
from tests.report.sample_run import counted_only, info, only_counted, ranks, rate, report, run


def shown(made: Report, width: int = 80) -> list[str]:
    """The lines of the block."""
    buffer = io.StringIO()
    show_runs(made, Console(file=buffer, width=width, color_system=None))
    return [line.rstrip() for line in buffer.getvalue().splitlines()]


def whole(made: Report, width: int = 80) -> str:
    buffer = io.StringIO()
    render(made, Console(file=buffer, width=width, color_system=None))
    return buffer.getvalue()


def renamed(name: str, where: str | None) -> Report:
    phases = tuple(msgspec.structs.replace(phase, name=name, where=where) for phase in run().phases)
    return report([info(run=run(phases=phases))])


def test_a_run_is_a_line_and_a_row_for_each_phase() -> None:
    assert shown(report()) == [
        "the run: 412 steps in 61.2 s; every wait counted (cost 0.4 %)",
        "                                  time  steps     step      p95  waits  recorded",
        "  train      train.py:42 main     81 %    412  98.1 ms   140 ms    2.1     16–38",
        "  evaluate   train.py:77 estima…  12 %     80  88.5 ms  91.2 ms      3         –",
        "  epoch end  train.py:61 main      4 %      –        –        –      –         –",
        "  start                            3 %      –        –        –      –         –",
    ]


def test_with_all_that_is_to_be_known_it_is_seven_lines() -> None:
    worst = run(complete=False, shared_device=True, one_in=8.0)
    lines = shown(report([info(run=worst)]))
    assert len(lines) == 7
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize(
    ("name", "where"),
    [
        (
            "evaluate in a_function_with_a_very_long_name_of_its_own",
            "src/project/loops/a_long_file_name.py:77 function",
        ),
        ("評価" * 20, "訓練" * 40 + ".py:3 主"),
        ("train", None),
        ("x", "y" * 300),
    ],
)
def test_long_names_are_cut_and_the_figures_stay(name: str, where: str | None, width: int) -> None:
    lines = shown(renamed(name, where), width)
    assert len(lines) == 6
    assert max(map(cell_len, lines)) <= width
    assert lines[2].split()[-9:] == ["81", "%", "412", "98.1", "ms", "140", "ms", "2.1", "16–38"]


def test_a_name_that_would_be_cut_comes_before_the_place_and_the_percentile() -> None:
    name = "evaluate 2 in train_the_module.py"
    head, row = (" ".join(line.split()) for line in shown(renamed(name, "src/training.py:77 main"))[1:3])
    assert head == "time steps step waits recorded"
    assert row == f"{name} 81 % 412 98.1 ms 2.1 16–38"


def test_of_a_place_the_file_and_the_line_stay_longest() -> None:
    where = "src/project/loops/training.py:77 train_for_an_epoch_with_a_long_name"
    assert "…/training.py:77 train_for_an_epoch_with_a_long_name" in shown(renamed("x", where), 120)[2]
    assert " training.py:77 train_for_a…" in shown(renamed("x", where))[2]
    assert "…" not in shown(renamed("x", where), 140)[2]


def test_of_many_phases_the_longest_are_shown() -> None:
    one = run().phases[1]
    phases = tuple(
        msgspec.structs.replace(one, name=f"phase {number}", share=0.2 - number / 100) for number in range(10)
    )
    lines = shown(report([info(run=run(phases=phases))]))
    assert [line.split()[1] for line in lines[2:-1]] == ["0", "1", "2", "3", "4", "5"]
    assert lines[-1].split() == ["…", "4", "more", "50", "%"]


def test_several_phases_of_several_ranks_are_one_run_and_the_odd_rank_is_named() -> None:
    lines = shown(ranks(4))
    assert lines[0].startswith("the run, ranks 0–1, 3: 412 steps")
    assert lines[-1] == "  rank 2 differs: train: 380 steps, not 412; train: 3.1 waits a step, not 2.1"
    assert len(lines) == 7


def test_many_odd_ranks_are_a_few_lines() -> None:
    infos = [info(f"{rank}.json", rank, run=run(complete=rank == 0)) for rank in range(20)]
    lines = shown(report(infos, ()))
    assert sum("differs" in line for line in lines) == 8
    assert lines[-1].strip() == "… and 11 more differ"


def test_two_runs_are_told_one_by_one() -> None:
    lines = shown(report([info("a.json"), info("b.json", run=run(id="b2", steps=7))], ()))
    assert [line for line in lines if line.startswith("the run")] == [
        "the run, #1: 412 steps in 61.2 s; every wait counted (cost 0.4 %)",
        "the run, #2: 7 steps in 61.2 s; every wait counted (cost 0.4 %)",
    ]


def test_without_a_run_nothing_is_said_of_it() -> None:
    assert "the run" not in whole(sample.report())
    assert shown(sample.report()) == []


def test_the_block_follows_the_headline_and_comes_before_the_findings() -> None:
    text = whole(report(), 120)
    assert text.index("idle ") < text.index("the run: ") < text.index("SYN102 scalar-read")
    assert "SYN102 scalar-read  train.py:42  loss.item()  every 10 steps (41 in 412)\n" in text


def test_a_process_in_which_nothing_was_recorded_says_so_and_no_more() -> None:
    text = whole(report([only_counted()]), 120)
    assert "no window was recorded, waits were counted only" in text
    assert "no device activity" not in text
    assert "no runtime calls" not in text


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_phases_stay_names(name: str) -> None:
    made = renamed(name, name)
    output = whole(made)
    assert unseen(output) == []
    assert not [line for line in output.splitlines() if line.lstrip().startswith("::")]
    assert len(shown(made)) == 6
    two = msgspec.structs.replace(made, traces=(*made.traces, msgspec.structs.replace(made.traces[0], phase=name)))
    assert not [line for line in whole(two).splitlines() if line.lstrip().startswith("::")]


def test_what_was_counted_outside_of_all_steps_has_a_line() -> None:
    ended = msgspec.structs.replace(counted_only(), phase="epoch end", occurrences=4, run_steps=None)
    text = whole(report(findings=[ended]), 120)
    line = "SYN100 unexplained-wait  train.py:80  losses.append(loss.cpu())  once an epoch"
    assert f"outside of the steps or in few of them: saving not known:\n  {line}\n" in text
    assert "fix: " not in text


@pytest.mark.parametrize(
    "fields", [{"run_per_step": 0.0125, "occurrences": 1}, {"run_per_step": None, "occurrences": None}]
)
def test_what_was_counted_in_few_steps_or_in_a_phase_that_was_not_has_a_line(fields: dict[str, Any]) -> None:
    phases = [one if one.name != "evaluate" else msgspec.structs.replace(one, counted_steps=0) for one in run().phases]
    known = info(run=run(phases=tuple(phases))) if fields["run_per_step"] is None else info()
    text = whole(report([known], [msgspec.structs.replace(counted_only(), **fields)]), 120)
    assert "outside of the steps or in few of them: saving not known:\n  SYN100 unexplained-wait  train.py:80" in text
    assert "fix: " not in text


def test_what_was_counted_in_steps_that_no_window_recorded_comes_behind_what_saves_something() -> None:
    saving, counted = phases_of("train", run_saving_ms_per_step=5.0)[0], counted_only()
    text = whole(report(findings=[counted, saving]), 120)
    line = "SYN100 unexplained-wait  train.py:80  losses.append(loss.cpu())  in evaluate: "
    assert f"counted, but in no recorded step: saving not known:\n  {line}" in text
    assert text.count("fix: ") == 1 and "no window recorded it" not in text
    assert "fix: " in whole(report(findings=[counted]), 120), "it is told in full where there is nothing else"


def test_what_was_recorded_only_outside_of_the_steps_and_counted_in_them_is_told_as_counted() -> None:
    saving = phases_of("train", run_saving_ms_per_step=5.0)[0]
    site = Site(file="train.py", line=99, function="evaluate")
    outside = msgspec.structs.replace(
        rate(saving, 0.75, 60, phase="evaluate"), fingerprint="outside", site=site, per_step=0.0,
        stall_ms_per_step=None, run_saving_ms_per_step=None, saving_ms_per_step=None, saving_low_ms_per_step=None,
        saving_high_ms_per_step=None, likely_saving_ms_per_step=None,
    )  # fmt: skip
    text = whole(report(findings=[saving, outside]), 120)
    assert "counted, but in no recorded step: saving not known:\n  SYN102 scalar-read  train.py:99" in text


def phases_of(*names: str, **changes: Any) -> list[Finding]:
    """The reading line of the sample in several phases of the run."""
    read = sample.findings()[0]
    known = {"run_saving_ms_per_step": 0.5} | changes
    return [rate(read, 1.0, 80, phase=name, run_steps=None, **known) for name in names]


def test_a_line_in_several_phases_has_one_card_which_names_the_others() -> None:
    found = phases_of("evaluate", "train", "start", run_saving_ms_per_step=5.0)
    text = " ".join(whole(report(findings=found), 120).split())
    assert text.count("train.py:42 loss.item()") == 2, "the first change, and one card"
    assert "in evaluate: every step" in text
    assert "also in train: every step, saves 5.1 %; in start: 80 times" in text
    assert "3 findings at 1 place" in text


def test_a_saving_of_another_phase_is_of_its_step() -> None:
    text = whole(report(findings=phases_of("evaluate", run_saving_ms_per_step=8.85)), 120)
    assert "saves 10 % (8.85 ms a step of evaluate)" in text


def test_how_often_is_told_without_how_that_was_sampled_unless_asked() -> None:
    sampled = rate(sample.findings()[0], 2.0, 824, run_per_step_low=1.5, run_per_step_high=2.5)
    made = report([info(run=run(one_in=6.5))], [sampled])
    assert "about 2 a step" in whole(made)
    assert "counted in one of" not in whole(made).split("saves")[-1]
    buffer = io.StringIO()
    render(made, Console(file=buffer, width=120), View(verbose=True))
    assert "about 2 a step (1.5–2.5; counted in one of 6.5 steps)" in buffer.getvalue()


def test_lines_that_differ_by_the_line_of_a_library_alone_are_one() -> None:
    little = [
        msgspec.structs.replace(one, at=Frame(file="<site-packages>/torch/optim/lbfgs.py", line=line, function="step"))
        for line in (435, 442, 450)
        for one in phases_of("train", run_saving_ms_per_step=0.1)
    ]
    text = whole(report(findings=little), 120)
    assert text.count("train.py:42  loss.item()") == 1
    assert "every step · 2 more such waits inside of it" in text


def test_what_was_only_counted_has_a_line_unless_it_blocks_for_long() -> None:
    little, much = (msgspec.structs.replace(counted_only(), run_stall_ms_per_step=ms) for ms in (0.21, 30.0))
    other = msgspec.structs.replace(sample.findings()[1], phase="train")
    assert "fix: Keep the losses" not in whole(report(findings=[other, little]))
    assert "fix: Keep the losses" in whole(report(findings=[other, much]))
    assert "blocked at most 30 ms (34 %)" in whole(report(findings=[other, much]))
    assert "fix: Keep the losses" in whole(report(findings=[little])), "where there is nothing else"


def test_the_frame_of_backward_itself_is_not_told() -> None:
    (read,) = phases_of("train", run_saving_ms_per_step=5.0)
    engine = Frame(file="<site-packages>/torch/autograd/graph.py", line=869, function="_engine_run_backward")
    assert "at <site-packages>/lib/metrics.py:88" in whole(report(findings=[read]))
    assert "graph.py" not in whole(report(findings=[msgspec.structs.replace(read, at=engine)]))


def test_the_lines_of_a_phase_without_a_window_are_told_under_the_table() -> None:
    line = PhaseLine(site=Site(file="train.py", line=79, function="fit"), share=0.83)
    phases = [msgspec.structs.replace(phase, share=0.3, looks=9, lines=(line,)) for phase in run().phases]
    text = shown(report([info(run=run(phases=tuple(phases)))]))
    assert "  epoch end, 30 % of the run: 83 % in fit (train.py:79)" in text
    assert not any(said.startswith("  train, ") for said in text)  # its windows tell
