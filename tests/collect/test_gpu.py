"""The collector on a real GPU: lines, restoration, programs of every kind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from syncscope.schema.report import Report
from tests.interrupts import heed_interrupts

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

ROOT = Path(__file__).parents[2]
SHORT = ["--warmup", "2", "--bare", "3", "--steps", "2", "--attribution", "2"]

LOOP = """
import torch
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")
for i in range({steps}):
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    {body}
    opt.step()
{after}
"""


def loop(body: str = "loss.item()", steps: int = 16, after: str = "") -> str:
    return LOOP.format(body=body, steps=steps, after=after)


def profile(folder: Path, program: str, *options: str, arguments: tuple[str, ...] = (), env: Any = None) -> Any:
    """Run ``syncscope profile`` on ``program``; the finished process."""
    script = folder / "program.py"
    script.write_text(program)
    command = [sys.executable, "-m", "syncscope", "profile", *SHORT, *options, "-o", str(folder / "out"), str(script)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", **(env or {})},
    )  # fmt: skip


def report(folder: Path) -> Report:
    return Report.from_json((folder / "out" / "report.json").read_bytes())


def sync_findings(folder: Path) -> set[tuple[str, int | None]]:
    """Rule and line of each finding of a wait that a window recorded."""
    waits = (f for f in report(folder).findings if f.rule.startswith("SYN") and f.site_source != "count")
    return {(f.rule, f.site.line if f.site else None) for f in waits}


def line_of(program: str, text: str) -> int:
    return program[: program.index(text)].count("\n") + 1


@pytest.mark.parametrize("mode", ["windows", "full"])
def test_a_wait_is_found_at_its_line_with_the_scripts_own_output_and_status(tmp_path: Path, mode: str) -> None:
    program = loop(after="import sys\nprint(sys.argv[1:])\nsys.exit(5)")
    done = profile(tmp_path, program, "--mode", mode, arguments=("--steps", "9"))
    assert (done.stdout, done.returncode) == ("['--steps', '9']\n", 5), done.stderr
    assert sync_findings(tmp_path) == {("SYN102", line_of(program, "loss.item()"))}
    trace = report(tmp_path).traces[0]
    assert trace.steps.source == "optimizer" and trace.steps.count == 2
    assert trace.steps.bare_ms is not None
    assert (trace.coverage.waits, trace.coverage.with_line) == (2, 2)


def test_every_kind_of_wait_has_its_line(tmp_path: Path) -> None:
    body = "\n    ".join(
        [
            "float(loss); int(loss.sum())",
            "y = x[x > 0]",
            "torch.cuda.synchronize()",
            "e = torch.cuda.Event(); e.record(); e.synchronize()",
            "torch.cuda.current_stream().synchronize()",
            "z = torch.ops.aten.nonzero(x)",
            "if (x > 2).any(): pass",
            "h = x.cpu()",
        ]
    )
    program = loop(body, steps=60)  # the window with ops comes last
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert "synchronizing" not in done.stderr
    expected = {
        ("SYN102", "float(loss)"), ("SYN103", "y = x"), ("SYN105", "torch.cuda.synchronize()"),
        ("SYN105", "e.synchronize()"), ("SYN105", "current_stream()"), ("SYN103", "z = torch.ops"),
        ("SYN102", "if (x > 2)"), ("SYN101", "x.cpu()"),
    }  # fmt: skip
    assert sync_findings(tmp_path) == {(rule, line_of(program, text)) for rule, text in expected}
    coverage = report(tmp_path).traces[0].coverage
    assert coverage.waits == coverage.with_line == 18


def test_python_backward_and_custom_operators_keep_their_own_lines(tmp_path: Path) -> None:
    program = """
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        g.sum().item()
        return g * 2
@torch.library.custom_op("mine::read", mutates_args=())
def read(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")
for i in range(16):
    opt.zero_grad()
    read(x)
    Scale.apply(net(x)).sum().backward()
    opt.step()
"""
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    lines = {line for _, line in sync_findings(tmp_path)}
    assert lines == {line_of(program, "g.sum().item()"), line_of(program, "x * x.sum().item()")}


STATE = """
import warnings
import torch.autograd.profiler as p
import torch.optim.optimizer as o
print(list(warnings.filters), warnings._showwarnmsg, warnings._filters_mutated,
    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.copy_, torch.Tensor.pin_memory,
    "to" in vars(torch.Tensor), torch._C._cuda_synchronize, torch._C._cuda_emptyCache,
    torch.cuda.Event.synchronize, torch._ops.OpOverload.__call__, torch._ops.OpOverloadPacket.__call__,
    torch._C.ScriptFunction.__call__, torch._C.ScriptMethod.__call__, torch.nn.Module.__call__,
    torch.amp.GradScaler.step, p._prepare_profiler, p._enable_profiler, dict(o._global_optimizer_post_hooks),
    torch._C._cuda_set_sync_debug_mode, torch.cuda.get_sync_debug_mode())
"""


def test_after_a_recorded_block_everything_is_as_in_an_unwatched_process(tmp_path: Path) -> None:
    """While a program is counted, our filter and wrappers are there (docs/promises.md)."""
    block = "".join(f"    {line}\n" for line in loop(steps=24).splitlines())
    begin = "import contextlib, os, syncscope\n"
    begin += "with syncscope.profile('api') if 'RECORD' in os.environ else contextlib.nullcontext():\n"
    (tmp_path / "program.py").write_text(begin + block + STATE)

    def run(**environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return re.sub(r"0x[0-9a-f]+", "0x", done.stdout)

    assert run(RECORD="1") == run()


def test_the_program_comes_first_to_cuda(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'\n"
        "import torch\n"
        "assert not torch.cuda.is_initialized()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    torch.ones(1, device='cuda').sum().item()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n" + loop()
    )
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert sync_findings(tmp_path) == {("SYN102", line_of(program, "loss.item()"))}


def test_a_program_that_profiles_itself_keeps_its_profile(tmp_path: Path) -> None:
    program = """
import torch
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")
def step():
    opt.zero_grad(); loss = net(x).sum(); loss.backward(); loss.item(); opt.step()
for i in range(400):
    if i == 7:
        prof = torch.profiler.profile()
        prof.__enter__()
    step()
    if i == 9:
        prof.__exit__(None, None, None)
print(sum(e.key == "aten::item" for e in prof.events()), any("gemm" in e.key for e in prof.events()))
"""
    done = profile(tmp_path, program, "--steps", "6")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 True\n"
    assert report(tmp_path).traces[0].steps.count == 6  # windows begin again after the program's own profile


def test_a_script_too_short_for_all_windows_keeps_what_is_left(tmp_path: Path) -> None:
    done = profile(tmp_path, loop(steps=9), "--steps", "50")
    assert done.returncode == 0, done.stderr
    assert any("of 50 steps" in warning for warning in report(tmp_path).traces[0].warnings)


def test_a_script_with_too_few_steps_for_a_window_is_counted(tmp_path: Path) -> None:
    done = profile(tmp_path, loop(steps=3))
    assert done.returncode == 0, done.stderr
    (read,) = [f for f in report(tmp_path).findings if f.rule == "SYN102"]
    assert (read.site_source, read.phase, read.run_per_step, read.occurrences) == ("count", "train", 1.0, 3)


def test_ten_steps_have_a_window(tmp_path: Path) -> None:
    done = profile(tmp_path, loop(steps=10), "--steps", "5")
    assert done.returncode == 0, done.stderr
    made = report(tmp_path)  # of the early window: the planned one lets steps pass first
    assert made.traces[0].steps.count == 2 and made.traces[0].steps.bare_ms is not None
    (read,) = [f for f in made.findings if f.rule == "SYN102"]
    assert (read.site_source, read.per_step, read.run_per_step, read.occurrences) == ("hook", 1.0, 1.0, 10)


@pytest.mark.parametrize("program", ["print(1)", "import torch\nprint(1)"])
def test_a_script_without_cuda_says_so_and_exits_with_3(tmp_path: Path, program: str) -> None:
    done = profile(tmp_path, program)
    assert (done.stdout, done.returncode) == ("1\n", 3)


def test_a_failing_script_keeps_its_status_and_its_recording(tmp_path: Path) -> None:
    done = profile(tmp_path, loop(after="raise ValueError('bad')"))
    assert done.returncode == 1
    assert "ValueError: bad" in done.stderr and "syncscope/collect" not in done.stderr
    assert sync_findings(tmp_path)


def test_stop_ends_the_program_after_the_windows(tmp_path: Path) -> None:
    done = profile(tmp_path, loop(steps=10**6, after="print('never')"), "--stop")
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_seconds_record_a_program_without_steps(tmp_path: Path) -> None:
    program = "import torch\nx = torch.randn(64, 64, device='cuda')\nwhile True:\n    (x @ x).sum().item()\n"
    done = profile(tmp_path, program, "--seconds", "0.3", "--stop")
    assert done.returncode == 0, done.stderr
    assert report(tmp_path).traces[0].steps.source == "seconds"
    assert sync_findings(tmp_path) == {("SYN102", 4)}, done.stderr


def test_modules_are_steps_where_there_is_no_optimizer(tmp_path: Path) -> None:
    program = (
        "import torch\nnet = torch.nn.Linear(64, 64).cuda().eval()\nx = torch.randn(8, 64, device='cuda')\n"
        "with torch.no_grad():\n    for i in range(20):\n        y = net(x)\n        y.sum().item()\n"
    )
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert report(tmp_path).traces[0].steps.source == "module"
    assert sync_findings(tmp_path) == {("SYN102", 7)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_leaves_a_whole_recording(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "program.py"
    script.write_text(loop(steps=16, after="import time\nprint('ready', flush=True)\ntime.sleep(60)"))
    command = [sys.executable, "-m", "syncscope", "profile", *SHORT, "-o", str(tmp_path / "out"), str(script)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, preexec_fn=heed_interrupts
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -number
    assert json.loads(_gunzip(tmp_path / "out" / "trace.json.gz"))["syncscope"]["steps"]["source"] == "optimizer"


def test_compiled_code_has_the_line_of_the_call_into_it(tmp_path: Path) -> None:
    program = """
import torch
@torch.compile(backend="eager")
def inner(x):
    return x * x.sum().item()
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")
for i in range(16):
    opt.zero_grad()
    inner(x)
    net(x).sum().backward()
    opt.step()
"""
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    lines = {line for rule, line in sync_findings(tmp_path)}
    assert lines <= {line_of(program, "return x * x"), line_of(program, "inner(x)\n    net")} and lines


def test_expected_waits_carry_their_reason(tmp_path: Path) -> None:
    program = "import syncscope\n" + loop("with syncscope.expected('metrics'): loss.item()")
    done = profile(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert [(f.status, f.reason) for f in report(tmp_path).findings if f.rule == "SYN102"] == [("expected", "metrics")]


def test_a_comment_whose_wait_is_gone_is_stale_though_its_file_never_waits(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text("def note(x):\n    return x  # syncscope: expect SYN102 -- was a read\n")
    done = profile(tmp_path, "import quiet\n" + loop("quiet.note(loss)"))
    assert done.returncode == 0, done.stderr
    made = report(tmp_path)
    assert made.traces[0].files == ("program.py", "quiet.py")
    assert [(entry.rule, entry.where) for entry in made.stale] == [("SYN102", "quiet.py:2")]


def test_the_guard_raises_at_the_line_on_this_thread_only() -> None:
    import threading

    import syncscope
    from syncscope.collect.live.guard import SyncError

    x = torch.ones(4, device="cuda")
    failures: list[BaseException] = []

    def other() -> None:
        try:
            x.sum().item()
        except BaseException as error:
            failures.append(error)

    with syncscope.guard("raise"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        y = (x * 2).sum()
        with pytest.raises(SyncError, match=r"test_gpu.py:\d+: y.item\(\) waited for the device \(device-to-host\)"):
            y.item()
        with pytest.raises(SyncError, match="host-to-device"):
            torch.ones(4).to("cuda")
        with syncscope.guard("raise", allow=["device-to-host"]):
            y.item()
    y.item()
    assert failures == []
    assert torch.cuda.get_sync_debug_mode() == 0


def test_from_python_the_block_is_recorded(tmp_path: Path) -> None:
    program = """
import torch, syncscope
x = torch.randn(64, 64, device="cuda")
with syncscope.profile("api", warmup=2, bare=2, steps=2, attribution=2) as prof:
    for i in range(12):
        (x @ x).sum().item()
        prof.step()
print(prof.path, len(prof.report.findings), prof.notes)
"""
    (tmp_path / "program.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=env
    )
    assert done.stdout.startswith("api/trace.json.gz "), done.stderr
    written = Report.from_json((tmp_path / "api" / "report.json").read_bytes())
    assert {f.rule for f in written.findings if f.rule.startswith("SYN")} == {"SYN102"}


def _gunzip(path: Path) -> bytes:
    import gzip

    return gzip.decompress(path.read_bytes())


WORKS = """
import time
import torch
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")
def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(100))
for i in range(40):
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    opt.step()
    busy(0.05)
"""


def test_work_of_the_host_in_python_has_a_line(tmp_path: Path) -> None:
    assert profile(tmp_path, WORKS, "--steps", "6").returncode == 0
    (found,) = [one for one in report(tmp_path).findings if one.rule == "OVL303"]
    assert found.site is not None and found.site.function in ("busy", "<module>"), found
    assert found.site.line in (8, 9, 10, 16) and "host work" in found.message


def test_a_process_ends_that_calls_nothing_of_the_runtime_after_a_window() -> None:
    """Kineto detaches CUPTI in a later call, and what C runs at the end waits for the thread that waits for that."""
    code = """
import torch
from syncscope.collect.profiler import KinetoWindow
ones = torch.ones(8, device="cuda")
window = KinetoWindow(torch, cpu=True, on_foreign=print)
window.prepare()
window.start()
ones.sum().item()
window.stop(detach=True)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
