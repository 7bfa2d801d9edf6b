"""Stacks name the very expression that was running."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from syncscope.collect.paths import OURS, Paths
from syncscope.collect.sites.stacks import Expressions, Position, Stacks
from syncscope.schema.recording import RecordedFrame

PATHS = Paths(Path(__file__).parent)
exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns need Python 3.11")


class Probe:
    """An object whose every use takes the stack of the caller."""

    def __init__(self) -> None:
        self.stacks = Stacks(PATHS)
        self.taken: list[int] = []

    def item(self) -> float:
        self.taken.append(self.stacks.take(sys._getframe(1)))
        return 1.0

    def __bool__(self) -> bool:
        self.item_from(2)
        return True

    def __gt__(self, other: object) -> Probe:
        return self

    def any(self) -> Probe:
        return self

    def item_from(self, depth: int) -> None:
        self.taken.append(self.stacks.take(sys._getframe(depth)))

    def innermost(self) -> list[RecordedFrame]:
        frames, stacks = self.stacks.resolve()
        return [frames[stacks[number][-1]] for number in self.taken]


@exact
def test_two_calls_of_one_line_are_told_apart() -> None:
    probe = Probe()
    total = float(probe.item()) + probe.item()
    first, second = probe.innermost()
    assert total == 2.0
    assert (first.expression, second.expression) == ("probe.item()", "probe.item()")
    assert first.line == second.line
    assert (first.ordinal, second.ordinal) == (0, 1)
    assert first.column is not None and second.column is not None and first.column < second.column


@exact
def test_few_expressions_of_a_function_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | None] = []
    text = Expressions.text

    def reading(expressions: Expressions, file: str, position: Position) -> str | None:
        read.append(text(expressions, file, position))
        return read[-1]

    monkeypatch.setattr(Expressions, "text", reading)
    probe = Probe()
    names = {"one": 1, "two": 2, "three": 3}
    total = sum(names.values()) + len(names) + max(names.values())
    assert total + probe.item() > 0
    assert (probe.innermost()[0].expression, probe.innermost()[0].ordinal) == ("probe.item()", 0)
    assert "probe.item()" in read and "sum(names.values())" not in read and "max(names.values())" not in read


@exact
def test_a_condition_is_the_expression() -> None:
    probe = Probe()
    if (probe > 2).any():
        pass
    assert probe.innermost()[0].expression == "(probe > 2).any()"


@exact
def test_an_expression_over_several_lines_is_one_line_of_text() -> None:
    probe = Probe()
    print(
        "value",
        probe
        .item(),
    )  # fmt: skip
    assert probe.innermost()[0].expression == "item()"  # CPython begins such a call at its own line


@exact
def test_a_statement_with_a_body_is_named_by_its_head() -> None:
    probe = Probe()

    class Context:
        def __enter__(self) -> None:
            probe.item_from(2)

        def __exit__(self, *args: object) -> None:
            pass

    with Context():
        body = 1
    assert body
    assert probe.innermost()[0].expression in ("with Context():", "Context()")


def test_functions_are_qualified_and_files_normalised() -> None:
    probe = Probe()
    probe.item()
    frame = probe.innermost()[0]
    assert frame.file == "test_stacks.py"
    assert frame.user
    assert frame.function.endswith("test_functions_are_qualified_and_files_normalised")
    assert frame.first_line is not None and frame.line is not None and frame.first_line < frame.line


def test_equal_stacks_are_one() -> None:
    probe = Probe()
    for _ in range(3):
        probe.item()
    assert len(set(probe.taken)) == 1


def test_a_stack_is_the_same_whether_a_frame_of_ours_is_in_it() -> None:
    stacks = Stacks(PATHS)
    names: dict[str, Any] = {"take": lambda: stacks.take(sys._getframe(1))}
    exec(compile("def waits(): return take()", json.__file__, "exec"), names)
    exec(compile("def passed(): return waits()", f"{OURS}wrapper.py", "exec"), names)
    taken = [call() for call in (names["passed"], names["waits"], names["passed"])]
    assert len(set(taken)) == 1


def test_columns_count_characters_though_python_counts_bytes() -> None:
    probe = Probe()
    names = ("é", probe.item(), "ü")
    assert names[0] == "é"
    frame = probe.innermost()[0]
    if sys.version_info >= (3, 11):
        assert (frame.expression, frame.column, frame.end_column) == ("probe.item()", 18, 30)
    else:
        assert (frame.expression, frame.column) == ('names = ("é", probe.item(), "ü")', None)
