"""The marks that limit what torch.compile does, in real pytest processes with PyTorch for the CPU."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Run

pytest.importorskip("torch", reason="only PyTorch compiles")

TESTS = """
import pytest, torch
import syncscope

def work(x, n):
    return x * n

def broken(x):
    if x.sum().item() > 1e9:
        x = x + 1
    return torch.sin(x)

@pytest.fixture
def compiled():
    torch._dynamo.reset()
    run = torch.compile(work, backend="eager")
    run(torch.ones(4), 2)
    return run

@pytest.mark.max_recompiles(0)
@pytest.mark.max_graph_breaks(0)
def test_within(compiled):
    compiled(torch.ones(4), 2)

@pytest.mark.max_recompiles(0)
def test_recompiles(compiled):
    compiled(torch.ones(4), 3)

@pytest.mark.max_recompiles(1)
def test_once(compiled):
    compiled(torch.ones(4), 3)

@pytest.mark.max_graph_breaks(0)
def test_breaks():
    torch.compile(broken, backend="eager")(torch.ones(4))

@pytest.mark.max_graph_breaks(0)
def test_expected():
    with syncscope.expected("reads on purpose"):
        torch.compile(broken, backend="eager")(torch.ones(3))

@pytest.mark.max_graph_breaks(-1)
def test_nonsense():
    pass
"""


def test_what_is_compiled_in_a_body_is_limited(run_pytest: Run) -> None:
    done = run_pytest(TESTS, torch=None)
    assert done.tests == {
        "test_within": "PASSED",
        "test_recompiles": "FAILED",
        "test_once": "PASSED",
        "test_breaks": "FAILED",
        "test_expected": "PASSED",
        "test_nonsense": "FAILED",
    }
    assert "1 recompile, at most 0 allowed:\n  test_it.py:6  return x * n  in work: n == 2" in done.out
    assert "1 graph break, at most 0 allowed:\n  test_it.py:9  x.sum().item()  in broken: " in done.out
    assert "max_graph_breaks takes the number to allow, as in max_graph_breaks(0)" in done.out


def test_without_pytorch_a_marked_test_is_skipped(run_pytest: Run) -> None:
    test = "import pytest, sys\nsys.modules['torch'] = None\n"
    test += "@pytest.mark.max_recompiles(0)\ndef test_marked():\n    raise AssertionError('the body ran')\n"
    assert run_pytest(test, torch=None).tests == {"test_marked": "SKIPPED"}
