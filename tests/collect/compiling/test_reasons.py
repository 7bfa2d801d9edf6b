"""What Dynamo and Inductor say is read in the words of each version."""

from __future__ import annotations

from traceback import FrameSummary

import pytest

from syncscope.collect.compiling.reasons import (
    MOST_CHARACTERS,
    function_name,
    lines_of,
    read_break,
    read_guard,
    read_skip,
)
from syncscope.collect.sites.stacks import Line

OLD = "L['n'] == 2                               # y = x * n  # rk/train.py:5 in f"
NEW = f'0/1: {OLD}\nUser stack trace:\n  File "/work/train.py", line 5, in f\n    y = x * n'


@pytest.mark.parametrize(("said", "file"), [(OLD, "rk/train.py"), (NEW, "/work/train.py")])
def test_a_guard_has_its_text_and_its_line(said: str, file: str) -> None:
    assert read_guard(said) == ("L['n'] == 2", None, Line(file, 5, "f"))


def test_a_guard_without_a_line() -> None:
    said = "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5"
    assert read_guard(said) == ("tensor 'x' size mismatch at index 0. expected 4, actual 5", None, None)


def test_a_guard_of_the_rest_of_a_function_is_of_the_function() -> None:
    line = read_guard("2/0: n == 2      # y = x * n  # train.py:5 in torch_dynamo_resume_in_f_at_3").line
    assert line is not None
    assert line.function == "f"


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("forward", "forward"),
        ("torch_dynamo_resume_in_forward_at_12", "forward"),
        ("torch_dynamo_resume_in__step_at_3", "_step"),
        ("resume", "resume"),
    ],
)
def test_the_rest_of_a_function_has_its_name(name: str, function: str) -> None:
    assert function_name(name) == function


def test_a_break_has_a_first_line_and_what_explains_it() -> None:
    said = (
        "Unsupported call\n  Explanation: It cannot.\n  Hint: Do not.\n  Hint: Or else.\n\n  Developer debug context: x"
    )
    assert read_break(said) == ("Unsupported call", "It cannot. Do not.", None)
    assert read_break("call_function print [ConstantVariable()]") == (
        "call_function print [ConstantVariable()]",
        None,
        None,
    )


def test_inductors_reason_has_the_line_that_it_names() -> None:
    said = "skipping cudagraphs due to mutated inputs (1 instances). Found from : \n"
    said += '   File "/work/a.py", line 3, in f\n    c += 1'
    assert read_skip(said) == ("mutated inputs (1 instances)", None, Line("/work/a.py", 3, "f"))
    assert read_skip("skipping cudagraphs due to cpu device (arg0_1)") == ("cpu device (arg0_1)", None, None)


def test_reasons_are_one_short_line() -> None:
    text = read_break("a" * 5000 + "\nb").text
    assert text == "a" * MOST_CHARACTERS
    assert read_guard("").text is None


def test_a_stack_without_numbers_is_left_out() -> None:
    frames = [
        FrameSummary("a.py", 3, "f", lookup_line=False),
        FrameSummary("b.py", None, "g", lookup_line=False),
        object(),
    ]
    assert [line[:3] for line in lines_of(frames)] == [("a.py", 3, "f")]
