"""Comments and waits of a program that was changed since it was recorded."""

from __future__ import annotations

import warnings
from pathlib import Path

import msgspec
import pytest

from syncscope.policy import Policy, apply
from syncscope.policy.moved_lines import find_moved
from syncscope.schema.findings import Site
from tests.policy.test_comments import at, report

PROGRAM = """import torch

class Trainer:
    def step(self, loss):
        first = loss.item()
        shown = torch.where(
            mask, loss, 0
        ).cpu()
        return first

def log(loss):
    return loss.item()

print(loss.item())
"""


def site(line: int, function: str, expression: str) -> Site:
    return Site(file="train.py", line=line, function=function, expression=expression)


RECORDED = [
    site(5, "Trainer.step", "loss.item()"),
    site(6, "Trainer.step", "torch.where( mask, loss, 0 ).cpu()"),
    site(12, "log", "loss.item()"),
    site(14, "<module>", "loss.item()"),
]


def test_nothing_moved_in_what_was_recorded() -> None:
    assert find_moved(PROGRAM.encode(), RECORDED) == {}


@pytest.mark.parametrize("above", ["# a note\n", "\n\n", '"""\n\x0c\u2028"""\n'])
def test_lines_above_move_all_waits(above: str) -> None:
    by = above.count("\n")
    moved = find_moved((above + PROGRAM).encode(), RECORDED)
    assert moved == {now + by: now for now in (5, 6, 12, 14)}


def test_equal_expressions_of_a_function_keep_their_order() -> None:
    source = "def f(x):\n    y = 0\n    x.item()\n    x.item()\n"
    assert find_moved(source.encode(), [site(2, "f", "x.item()"), site(3, "f", "x.item()")]) == {3: 2, 4: 3}


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    y = 0\n    x.item()\n    x.item()\n",  # either may be the one
        "def g(x):\n    y = 0\n    x.item()\n",  # another function
        "def f(x):\n    def g():\n        x.item()\n",  # one inside
        "def f(x):\n    y = 0\n    x.item(\n",  # no Python
    ],
)
def test_where_there_is_doubt_nothing_moved(source: str) -> None:
    assert find_moved(source.encode(), [site(2, "f", "x.item()")]) == {}


def test_escapes_of_the_program_are_no_warnings() -> None:
    source = 'def f(x):\n    y = "\\d"\n    x.item()\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_moved(source.encode(), [site(2, "f", "x.item()")]) == {3: 2}


def test_a_comment_moves_with_its_line(tmp_path: Path) -> None:
    wait = at(2)
    assert wait.site is not None
    wait = msgspec.structs.replace(wait, site=site(2, "log", "loss.item()"))
    lines = ["def log(loss):", "    return loss.item()  # syncscope: expect SYN102 -- one read an epoch", ""]
    for above in ([], ["# a note", "import torch"]):
        (tmp_path / "train.py").write_text("\n".join(above + lines))
        found = apply(report(wait), Policy(folders=(tmp_path,)))
        assert [(one.status, one.reason) for one in found.findings] == [("expected", "one read an epoch")]
        assert found.stale == ()


def test_a_comment_of_another_wait_does_not_cover_one_that_moved(tmp_path: Path) -> None:
    waits = [
        msgspec.structs.replace(at(line), site=site(line, "log", text), fingerprint=text)
        for line, text in ((2, "loss.item()"), (3, "norm.item()"))
    ]
    (tmp_path / "train.py").write_text(
        "import torch\ndef log(loss, norm):\n    loss.item()  # syncscope: expect SYN102 -- fine\n    norm.item()\n"
    )
    found = apply(report(*waits), Policy(folders=(tmp_path,)))
    status = {one.fingerprint: one.status for one in found.findings}
    assert status == {"loss.item()": "expected", "norm.item()": "unexpected"}


def test_a_line_at_which_another_wait_still_stands_is_not_one_that_moved() -> None:
    # first.item() is now where second.item(), which is gone, was recorded.
    source = "def f(x):\n    y = 0\n    first.item()\n"
    recorded = [site(2, "f", "first.item()"), site(3, "f", "second.item()")]
    assert find_moved(source.encode(), recorded[:1]) == {3: 2}
    assert find_moved(source.encode(), recorded) == {}
