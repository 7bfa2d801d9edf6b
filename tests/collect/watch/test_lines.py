from __future__ import annotations

import sys

from syncscope.collect.watch.lines import MOST_LINES, Lines, WaitingLine, waiting_line
from syncscope.schema.recording import RecordedFrame
from tests.collect.watch.runs import lines_of, phase, run, wait

STACKS = lines_of("loss.item()", "x.tolist()")


def nothing_known(line: WaitingLine) -> bool:
    return False


def expressions(lines: list[WaitingLine]) -> list[str | None]:
    return [line.expression for line in lines]


def test_a_line_is_found_once_and_new_once() -> None:
    lines = Lines(nothing_known)
    first = run((phase(),), wait(0))
    assert expressions(lines.find(first, lambda: STACKS)) == ["loss.item()"]
    assert expressions(lines.judge(first)) == ["loss.item()"]
    later = run((phase(),), wait(0, count=20), wait(1))
    assert expressions(lines.find(later, lambda: STACKS)) == ["x.tolist()"]
    assert expressions(lines.judge(later)) == ["x.tolist()"]
    assert lines.find(later, lambda: STACKS) == [] and lines.judge(later) == []
    assert str(lines.new[0]) == "train.py:1 loss.item() in step (train)"


def test_stacks_are_looked_up_only_for_what_was_not_seen() -> None:
    lines, calls = Lines(), []

    def resolve():
        calls.append(1)
        return STACKS

    for _ in range(3):
        lines.find(run((phase(),), wait(0)), resolve)
    assert len(calls) == 1


def test_lines_are_judged_in_training_only() -> None:
    lines = Lines(nothing_known)
    both = run((phase(), phase("evaluate")), wait(0, phase=1), wait(1, phase=0))
    lines.find(both, lambda: STACKS)
    assert expressions(lines.judge(both)) == ["x.tolist()"]


def test_other_phases_are_judged_where_the_policy_names_them() -> None:
    lines = Lines(nothing_known, ("evaluate",))
    both = run((phase(), phase("evaluate")), wait(0, phase=1), wait(1, phase=0))
    lines.find(both, lambda: STACKS)
    assert expressions(lines.judge(both)) == ["loss.item()"]


def test_a_run_without_training_is_judged_in_its_longest_phase_at_its_end() -> None:
    lines = Lines(nothing_known)
    phases = phase("start", seconds=1), phase("generate", seconds=5)
    going = run(phases, wait(0, phase=0), wait(1, phase=1))
    lines.find(going, lambda: STACKS)
    assert lines.judge(going) == []
    over = run(phases, *going.waits, complete=True)
    assert expressions(lines.judge(over)) == ["x.tolist()"]


def test_a_phase_that_turns_out_to_be_training_is_judged_then() -> None:
    lines = Lines(nothing_known)
    before = run((phase("evaluate"),), wait(0))
    lines.find(before, lambda: STACKS)
    assert lines.judge(before) == []
    assert expressions(lines.judge(run((phase("train"),), wait(0)))) == ["loss.item()"]


def test_what_is_known_expected_or_only_may_wait_is_not_new() -> None:
    lines = Lines(lambda line: line.expression == "x.tolist()")
    seen = run((phase(),), wait(0, expected="the log"), wait(1), wait(2, may_wait=True))
    lines.find(seen, lambda: lines_of("loss.item()", "x.tolist()", "torch.ops.nms(b)"))
    assert lines.judge(seen) == []
    assert len(lines) == 2


def test_a_wait_of_the_compilers_is_no_line_that_waits() -> None:
    lines = Lines(lambda line: False)
    seen = run((phase(),), wait(0, compiling=True))
    assert lines.find(seen, lambda: STACKS) == lines.judge(seen) == []
    assert len(lines) == 0


def test_without_a_baseline_nothing_is_new() -> None:
    lines = Lines()
    lines.find(run((phase(),), wait(0)), lambda: STACKS)
    assert lines.judge(run((phase(),), wait(0))) == [] and not lines.judged


def test_a_line_of_a_library_belongs_to_the_line_that_called_it() -> None:
    mine = RecordedFrame(file="train.py", line=7, function="train", expression="clip(p)", user=True)
    theirs = RecordedFrame(file="<site-packages>/torch/clip.py", line=3, function="clip", expression="n.item()")
    found = waiting_line([mine, theirs], phase())
    assert found is not None and (found.file, found.line) == ("train.py", 7)


def test_a_wait_in_libraries_alone_is_at_their_outermost_line() -> None:
    outer = RecordedFrame(file="<site-packages>/torch/serve.py", line=9, function="serve", expression="clip(p)")
    inner = RecordedFrame(file="<site-packages>/torch/clip.py", line=3, function="clip", expression="n.item()")
    found = waiting_line([outer, inner], phase())
    assert found is not None and (found.file, found.line) == ("<site-packages>/torch/serve.py", 9)


def test_a_wait_whose_stack_is_not_resolved_yet_is_found_the_next_time() -> None:
    lines, now = Lines(), run((phase(),), wait(1), wait(0))
    assert expressions(lines.find(now, lambda: lines_of("loss.item()"))) == ["loss.item()"]
    assert expressions(lines.find(now, lambda: STACKS)) == ["x.tolist()"]


def test_a_hundred_thousand_places_take_constant_memory() -> None:
    lines = Lines(nothing_known)
    sizes = []
    for begin in range(0, 100_000, 10_000):
        waits = tuple(wait(stack) for stack in range(begin, begin + 10_000))
        frames = tuple(
            RecordedFrame(file="train.py", line=n, function="step", expression=f"x{n}", user=True)
            for n in range(begin, begin + 10_000)
        )
        stacks = ((),) * begin + tuple((n,) for n in range(10_000))
        now = run((phase(),), *waits)
        lines.find(now, lambda frames=frames, stacks=stacks: (frames, stacks))  # type: ignore[misc]
        lines.judge(now)
        sizes.append(len(lines.new) + sys.getsizeof(lines._seen))
    assert len(lines) <= MOST_LINES and len(lines.new) <= MOST_LINES
    assert sizes[-1] == sizes[2], "the tables still grow"
