"""The exceptions of a program with tensors on a real GPU, whose memory is freed while an exception passes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

from syncscope.collect.hazards import hazards  # noqa: E402
from tests.collect.hazards.exceptions import CASES, outcome  # noqa: E402
from tests.collect.hazards.test_modes import state  # noqa: E402
from tests.collect.test_gpu import ROOT, profile  # noqa: E402


def make() -> Any:
    return torch.ones(1 << 16, device="cuda")


def in_words(found: Any) -> str:
    return json.dumps(found, indent=1, default=str)


def waits_and_fails(make: Callable[[], Any]) -> Any:
    """An operator that waits for the device, warns of it, and raises."""
    torch.linalg.inv(torch.zeros(3, 3, device="cuda"))


def waits_in_a_handler(make: Callable[[], Any]) -> Any:
    try:
        raise KeyError("first")
    except KeyError:
        make().nonzero().sum().item()
        raise


ALL = {**CASES, "waits_and_fails": waits_and_fails, "waits_in_a_handler": waits_in_a_handler}


@pytest.mark.parametrize("thread", [False, True], ids=["main", "other"])
@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_an_exception_arrives_as_it_does_without_us(case: Callable[..., Any], thread: bool) -> None:
    torch.cuda.init()
    before = state()
    plain = outcome(case, make, thread=thread)
    with hazards() as found:
        during = outcome(case, make, thread=thread)
    after = outcome(case, make, thread=thread)
    assert in_words(during) == in_words(plain), "during the window"
    assert in_words(after) == in_words(plain), "after the window"
    assert state() == before
    assert [finding.message for finding in found.findings] == []
    assert [entry.why for entry in found.not_checked if "was not followed" in entry.why] == []


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_an_exception_that_leaves_the_window_arrives_too(case: Callable[..., Any]) -> None:
    def inside(make: Callable[[], Any]) -> Any:
        with hazards():
            return case(make)

    torch.cuda.init()
    assert in_words(outcome(inside, make)) == in_words(outcome(case, make))


PROGRAM = """
import sys
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as modes
from tests.collect.hazards.exceptions import CASES, through_frames

WHERE, CASE = {where!r}, {case!r}


def make():
    return torch.ones(1 << 16, device="cuda")


def batches():
    for _ in range({steps}):
        batch = make()
        yield batch * 2


def fail():
    value = CASES[CASE](make)
    print("no exception:", value)
    sys.exit(7)


def train():
    net = torch.nn.Linear(1 << 16, 4).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    looked = 0
    for i, batch in enumerate(batches()):
        held = make()
        optimizer.zero_grad()
        loss = net(batch + held).sum()
        loss.backward()
        loss.item()
        looked += bool(modes())
        if (WHERE == "during" and looked == 2) or (WHERE == "after" and looked == 2 and not modes()):
            fail()
        optimizer.step()
    print("steps:", i + 1)


through_frames(make, train)
"""
STEPS = 4_000
"""More than the windows take on a busy device, where steps differ and more of them are timed."""


def plain_run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    script = folder / "plain.py"
    script.write_text(program.replace("looked += bool(modes())", "looked = 2 * (i == 13)"))
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip


def last_line(stderr: str) -> str:
    """What a traceback ends with; ``profile`` prints its summary behind it."""
    lines = [line for line in stderr.splitlines() if line and not line[0].isspace()]
    begin = max((i for i, line in enumerate(lines) if line.startswith("Traceback")), default=-1)
    return lines[begin + 1] if begin >= 0 else ""


@pytest.mark.parametrize("stop", [False, True], ids=["to the end", "stop"])
@pytest.mark.parametrize("where", ["during", "after", "never"])
@pytest.mark.parametrize(
    "case", ["user_error", "system_exit", "keyboard_interrupt", "error_in_backward", "error_in_a_hook", "chained",
             "end_of_a_generator", "end_of_the_program", "waits"],
)  # fmt: skip
def test_a_program_under_profile_ends_as_it_does_without_us(tmp_path: Path, case: str, where: str, stop: bool) -> None:
    if where == "never" and case != "user_error":
        pytest.skip("nothing is raised: one case is enough")
    program = PROGRAM.format(where=where, case=case, steps=STEPS)
    if case == "waits":
        program = program.replace("CASES[CASE](make)", "torch.linalg.inv(torch.zeros(3, 3, device='cuda'))")
    plain = plain_run(tmp_path, program)
    done = profile(tmp_path, program, "--hazards", *(["--stop"] if stop else []))
    said = f"--- with us\n{done.stdout}\n{done.stderr}\n--- without us\n{plain.stdout}\n{plain.stderr}"
    assert "SystemError" not in done.stderr, said
    assert "trace hook" not in done.stderr, said
    assert "called a synchronizing" not in done.stderr, said
    if stop and where == "never":
        assert (done.returncode, done.stdout, last_line(done.stderr)) == (0, "", ""), said  # we ended it
    else:
        # Where PyTorch runs Python code at exit, Python forgets that it was interrupted, and ends with 1.
        interrupted = case == "keyboard_interrupt" and plain.returncode == 1
        assert done.returncode == (-signal.SIGINT if interrupted else plain.returncode), said
        assert last_line(done.stderr) == last_line(plain.stderr), said
        assert done.stdout.startswith(f"steps: {STEPS}" if where == "never" else ""), said
        assert "no exception" not in done.stdout, said


def test_a_stopped_program_runs_its_finally_blocks_and_exit_handlers(tmp_path: Path) -> None:
    program = PROGRAM.format(where="never", case="user_error", steps=STEPS).replace(
        "through_frames(make, train)",
        "import atexit\natexit.register(print, 'bye')\n"
        "try:\n    through_frames(make, train)\nfinally:\n    print('finally', make().sum().item())",
    )
    done = profile(tmp_path, program, "--hazards", "--stop")
    assert (done.returncode, done.stdout) == (0, "finally 65536.0\nbye\n"), done.stderr
