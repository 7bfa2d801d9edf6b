"""The pytest plugin on a real GPU: which waits it counts, and at which lines."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Run

torch = pytest.importorskip("torch", reason="counts waits of PyTorch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

WAITS = """
import pytest
import torch

@pytest.fixture
def x():
    x = torch.randn(64, 64, device="cuda")
    x.sum().item()
    return x

def test_kinds(x, syncscope):
    event = torch.cuda.Event()
    with syncscope.record() as waits:
        total = x.sum()
        total.item()
        float(total)
        if (x > 2).any():
            total = total + 1
        x[x > 0]
        x.nonzero()
        x.cpu()
        torch.ones(4).to("cuda")
        torch.cuda.synchronize()
        event.record()
        event.synchronize()
        torch.cuda.current_stream().synchronize()
    expressions = [wait.expression for wait in waits]
    assert expressions == [
        "total.item()", "float(total)", "(x > 2).any()", "x[x > 0]", "x.nonzero()", "x.cpu()",
        'torch.ones(4).to("cuda")', "torch.cuda.synchronize()", "event.synchronize()",
        "torch.cuda.current_stream().synchronize()",
    ]
    assert all(wait.file == "test_it.py" and wait.function == "test_kinds" for wait in waits)

@pytest.mark.max_syncs(0)
def test_a_clean_step(x):
    net = torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    host = torch.empty(64, 64).pin_memory()
    for _ in range(3):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        host.copy_(x, non_blocking=True)

@pytest.mark.max_syncs(0)
def test_one_wait(x):
    torch.relu(x).sum().item()

def test_a_wait_in_an_operator_is_seen_and_prints_nothing(x, syncscope):
    with syncscope.record() as waits:
        torch.ops.aten.nonzero(x)
        torch.ones(64, 64).to("cuda", non_blocking=True)
    assert [wait.expression for wait in waits] == [
        "torch.ops.aten.nonzero(x)", 'torch.ones(64, 64).to("cuda", non_blocking=True)'
    ]

def test_afterwards(x):
    assert torch.cuda.get_sync_debug_mode() == 0
    x.sum().item()
"""


@pytest.mark.parametrize(
    "arguments", [(), ("-W", "error"), ("-p", "xdist", "-n", "2")], ids=["plain", "errors", "xdist"]
)
def test_waits_of_every_kind_are_counted_at_their_lines(run_pytest: Run, arguments: tuple[str, ...]) -> None:
    done = run_pytest(WAITS, *arguments, torch=None)
    assert {name for name, state in done.tests.items() if state != "PASSED"} == {"test_one_wait"}, done.out
    line = WAITS[: WAITS.index("torch.relu(x).sum().item()")].count("\n") + 1
    assert f"\n  test_it.py:{line}  torch.relu(x).sum().item()  in test_one_wait\n" in done.out
    assert "called a synchronizing CUDA operation" not in done.out


PROFILED = """
import torch

def test_recorded(syncscope):
    net = torch.nn.Linear(512, 512, device="cuda")
    with syncscope.profile(warmup=2, bare=2, steps=3) as recording:
        for _ in range(20):
            net(torch.ones(64, 512, device="cuda")).sum().item()
            recording.step()
    assert recording.report is not None, recording.notes
    lines = {finding.site.expression for finding in recording.report.findings if finding.site}
    assert 'net(torch.ones(64, 512, device="cuda")).sum().item()' in lines

def test_counted():
    torch.ones(4, device="cuda").sum().item()
"""


def test_a_test_that_is_recorded_with_profile_has_its_report_and_the_others_are_counted(run_pytest: Run) -> None:
    done = run_pytest(PROFILED, "--syncscope-report", "waits.json", torch=None)
    assert (set(done.tests.values()), done.code) == ({"PASSED"}, 0), done.out
    assert "1 wait in 1 of 1 test; 1 test recorded with profile, not counted" in done.out
