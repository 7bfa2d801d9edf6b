"""What torch.compile does on a GPU is recorded with its lines: recompiles, breaks, CUDA graphs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syncscope.timeline import Timeline
from syncscope.trace import load

torch: Any = pytest.importorskip("torch", reason="the programs use PyTorch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

COMPILER = ("<site-packages>/torch/_inductor/fx_passes/", "<site-packages>/torch/_dynamo/")
"""Files of the compiler that run no compiled code, in as much as they wait."""

LOOP = """
def main():
    net = Net().cuda()
    step = torch.compile(net{mode})
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for i in range(1500):  # until all windows are over
        x = torch.randn({rows}, 64, device="cuda")
        loss = step(x, i)
        loss.backward()
        opt.step()
        opt.zero_grad()
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
main()
"""
HEAD = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
    def forward(self, x, i):
"""
RECOMPILES = HEAD + "        return (self.layer(x) * (2 if i < 700 else 3)).sum()  # guard\n" + LOOP
BREAKS = HEAD + "        y = self.layer(x)\n        if y.sum().item() > 1e9:  # break\n            y = y + 1\n"
BREAKS += "        return y.sin().sum()\n" + LOOP
SKIPS = """
import torch
import syncscope
weight = torch.randn(64, 64, device="cuda")
@torch.compile{mode}
def update(average, x):
    average.lerp_(torch.tanh(x @ weight), 0.01)  # writes to its input
    return average.mean(0)
average = torch.zeros({rows}, 64, device="cuda")
for _ in range(1500):
    update(average, torch.randn({rows}, 64, device="cuda"))
    syncscope.step()
"""
"""Nothing is trained: behind a forward without a CUDA graph, the backward's is recorded for each address."""

KERNELS = """
import torch, triton, triton.language as tl
@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):  # written in Triton
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
@torch.compile
def loss_of(x):
    return (x @ x.T).relu().sum()  # fused
x = torch.randn(512, 512, device="cuda", requires_grad=True)
opt = torch.optim.SGD([x], lr=0.01)
other = torch.zeros(512, device="cuda")
for _ in range(600):
    loss_of(x).backward()
    opt.step()
    opt.zero_grad()
    add_one[(1,)](other, 512, BLOCK=512)
"""
ATTENTION = """
import sys, warnings
import torch
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = torch.nn.Linear(64, 64)
    def forward(self, x):
        scale = torch.full((1,), 0.125, device=x.device)  # constants, at whose values the compiler looks
        mask = torch.zeros(x.shape[1], device=x.device) + torch.ones(1, device=x.device)
        scores = self.queries(x) @ x.transpose(-2, -1) * scale + mask
        return (torch.softmax(scores, -1) @ x).square().mean()
def main():
    net = torch.compile(Attention().cuda(), dynamic=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for i in range(20):
        x = torch.randn(2, 16 if i < 12 else 24, 64, device="cuda")
        loss = net(x)  # compiled twice
        loss.backward()
        opt.step()
        opt.zero_grad()
        loss.item()  # in each step
caught = []
if "warn" in sys.argv:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        main()
else:
    main()
of_waits = [one.filename for one in caught if "called a synchronizing" in str(one.message)]
print("compiler", sum("torch/_inductor/fx_passes/" in name or "torch/_dynamo/" in name for name in of_waits))
"""
CLEAN = HEAD + "        return self.layer(x).relu().sum()\n" + LOOP


def profile(folder: Path, program: str, **given: str) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """The findings about compiling, the recording, and what the program printed."""
    (folder / "program.py").write_text(program.replace("{mode}", given.get("mode", "")).replace(
        "{rows}", given.get("rows", "32")
    ))  # fmt: skip
    command = [sys.executable, "-m", "syncscope", "profile", "-o", "out", "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "out" / "report.json").read_text())
    found = [finding for finding in report["findings"] if finding["rule"].startswith("CMP")]
    print(done.stderr)  # pytest shows it where a test fails, and so the rest
    print(json.dumps(found, indent=1))
    print(json.dumps(report["traces"][0], indent=1)[:20_000])
    print((folder / "program.py").read_text())
    return found, report["traces"][0], done.stdout


def line_of(program: str, text: str) -> int:
    return next(number for number, line in enumerate(program.splitlines(), 1) if text in line)


def test_a_recompile_in_a_warm_step_has_its_line_and_cost(tmp_path: Path) -> None:
    found, _, _ = profile(tmp_path, RECOMPILES)
    again = [one for one in found if one["rule"] == "CMP701"]
    assert len(again) == 1
    assert again[0]["site"]["line"] in (line_of(RECOMPILES, "# guard"), line_of(RECOMPILES, "def forward"))
    assert again[0]["occurrences"] == 1
    assert again[0]["run_stall_ms_per_step"] > 0


def test_a_wait_that_breaks_the_graph_is_related_to_the_break(tmp_path: Path) -> None:
    found, _, _ = profile(tmp_path, BREAKS)
    (broken,) = (one for one in found if one["rule"] == "CMP702")
    assert broken["site"]["line"] == line_of(BREAKS, "# break")
    assert broken["per_step"] == 1.0
    assert broken["related"]
    assert "compiled parts" in broken["message"]


def test_cuda_graphs_that_are_skipped_have_inductors_reason(tmp_path: Path) -> None:
    found, _, _ = profile(tmp_path, SKIPS, mode='(mode="reduce-overhead")')
    (skipped,) = (one for one in found if one["rule"] == "CMP703")
    assert skipped["site"]["line"] == line_of(SKIPS, "# writes to its input")
    assert "mutated" in skipped["message"]


def test_cuda_graphs_that_are_recorded_once_are_no_finding(tmp_path: Path) -> None:
    found, trace, _ = profile(tmp_path, CLEAN, mode=', mode="reduce-overhead"')
    assert [one["rule"] for one in found] == []
    assert "compiled" in trace["has"]


def test_waits_of_the_compiler_are_noted_and_are_part_of_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # what is cached makes the compiler look at nothing
    _, trace, _ = profile(tmp_path, ATTENTION)
    alone = subprocess.run(
        [sys.executable, "program.py", "warn"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=True
    )
    warned = int(alone.stdout.split()[-1])
    run = trace["run"]
    told = [one for one in run["counted"]["compiling"] if one["at"]["file"].startswith(COMPILER)]
    noted = sum(one["waits"] for one in told)
    print("PyTorch warned of", warned, "and the report notes", noted)
    assert noted == warned or (0 < noted < warned and any(one["at_least"] for one in told)), told
    lines = {one["site"]["line"] for one in told if one["site"]["file"] == "program.py"}
    assert lines <= {line_of(ATTENTION, "# compiled twice")}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (read,) = (one for one in report["findings"] if one["rule"] == "SYN102" and one["phase"] == "train")
    assert read["site"]["line"] == line_of(ATTENTION, "# in each step")
    assert read["run_per_step"] == pytest.approx(1.0, abs=0.05)
    assert not [one for one in report["findings"] if one["at"] and one["at"]["file"].startswith(COMPILER)]


def lines_of_kernels(folder: Path) -> dict[str, set[int | None]]:
    """Of the Triton kernels of the trace."""
    found: dict[str, set[int | None]] = {}
    for path in (folder / "out").glob("**/*.json.gz"):  # of each phase
        timeline = Timeline(load(path))
        for name in timeline.activities.name.tolist():
            if name == "add_one" or name.startswith("triton_"):
                found[name] = {place.site.line for place in timeline.kernel_lines.get(name, ()) if place.site}
    return found


def test_kernels_have_their_lines_also_from_inductors_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    profile(tmp_path, KERNELS)
    fused, written = {line_of(KERNELS, "# fused")}, {line_of(KERNELS, "# written in Triton")}
    compiled = lines_of_kernels(tmp_path)
    assert compiled.pop("add_one") == written
    assert compiled
    assert set(map(frozenset, compiled.values())) == {frozenset(fused)}
    profile(tmp_path, KERNELS)
    cached = lines_of_kernels(tmp_path)
    assert cached.pop("add_one") == written
    assert fused in cached.values()


@pytest.mark.parametrize("mode", ["", ', mode="reduce-overhead"'])
def test_the_same_graphs_are_compiled_with_and_without_us(tmp_path: Path, mode: str) -> None:
    _, _, recorded = profile(tmp_path, BREAKS, mode=mode)
    alone = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=True
    )
    assert recorded == alone.stdout
