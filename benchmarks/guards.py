"""What a guard does with each kind of wait, beside the checks of others:
``python -m benchmarks.guards --vllm FILE --tensorrt-llm FILE``.

Needs a GPU, and takes less than a minute. The first FILE is vLLM's ``vllm/utils/gpu_sync_debug.py``, of whatever
version: it runs as it is, with the two modules that it imports of vLLM replaced. The second is TensorRT-LLM's
``tests/unittest/utils/util.py``, of which only ``assert_no_cuda_sync`` runs. PyTorch's own mode *error* stands for the
projects whose tests switch that on, such as cuDNN's frontend. With ``--write docs/guard.md`` the tables there are
written anew. ``--cost`` measures instead what an armed guard costs the loops of ``benchmarks/count.py``, in as long.

Each wait is behind a kernel of some milliseconds, so that one that has not begun can be told from one that is over: the
kernel is still running.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

import syncscope
from benchmarks.loops import LOOPS, nothing
from benchmarks.loops import timed as timed_steps
from benchmarks.overhead import interval
from fixtures import waits
from syncscope.collect.live.guard import ALL

ROOT = Path(__file__).parents[1]
PENDING_CYCLES = 20_000_000
CALLS, BLOCKS = 20, 5
SLEEP_S = 0.05
"""That a block may take under TensorRT-LLM's check. Its sleep on the device is twice as long."""
HOLD_MS = 2e3 * SLEEP_S
"""That ours holds the device: as long."""
COST_BLOCKS = 12
BLOCK_S = 0.25
LEARNING_S = 0.15
"""Steps before each block: switching hooks makes Python learn anew where the attributes of classes are."""
MARKS = "<!-- begin of the kinds -->", "<!-- end of the kinds -->"
COST_MARKS = "<!-- begin of the cost -->", "<!-- end of the cost -->"
SAME_LOOP = "rollout that tells"
"""Differs from another one only where steps are followed."""

Block = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass
class Check:
    """One way to find waits. ``allows`` lets all waits pass while it is armed; ``None`` where that cannot be."""

    name: str
    armed: Block
    allows: Block | None


@dataclass
class Outcome:
    raised: bool
    before: bool = False
    line: int | None = None
    cost_us: float | None = None
    asserted: bool = False
    """The check says only at the end of its block that something waited in it."""

    def text(self, expected: int) -> str:
        if not self.raised:
            return "**missed**"
        if self.asserted:
            return "at the end of the block"
        place = (
            "" if self.line == expected else ", at the caller's line" if self.line is None else f", line {self.line}"
        )
        return ("before" if self.before else "after") + place


def load_vllm(path: Path) -> Check:
    """vLLM's check, armed as its worker arms it after the warm-up."""
    platform = SimpleNamespace(is_cuda_alike=lambda: True)
    stubs = {"vllm.envs": {"VLLM_GPU_SYNC_CHECK": "error"}, "vllm.platforms": {"current_platform": platform}}
    package = sys.modules["vllm"] = ModuleType("vllm")
    for name, values in stubs.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(values)
        setattr(package, name.partition(".")[2], module)
    spec = importlib.util.spec_from_file_location("gpu_sync_debug", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    @contextlib.contextmanager
    def armed() -> Iterator[None]:
        module.enable_gpu_sync_check()
        with module._checked_region("error"):
            yield

    @contextlib.contextmanager
    def allows() -> Iterator[None]:
        with armed(), module.gpu_sync_allowed():
            yield

    return Check("vLLM", armed, allows)


def load_tensorrt_llm(path: Path) -> Check:
    """TensorRT-LLM's check: PyTorch's mode *error*, behind a sleep on the device that has to be there at the end.

    Its sleep is a function of the host that the device calls. Here it is a kernel of the same length, which is not
    cancelled. Its dump of all threads' stacks for a block that hangs is left out.
    """
    wanted = ("DeviceSleepCtl", "device_sleep", "assert_no_cuda_sync")
    whole = ast.parse(path.read_text(encoding="utf-8"))
    imports = ("dataclasses", "contextlib", "typing", "math", "time")
    kept = [
        node
        for node in whole.body
        if (isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in wanted)
        or (isinstance(node, ast.ImportFrom) and node.module in imports)
        or (isinstance(node, ast.Import) and all(name.name in imports for name in node.names))
    ]
    cycles_per_s = kernel_cycles_per_s()

    def hostfunc(sleep: Any) -> Any:
        return lambda duration_s, *, ctl: torch.cuda._sleep(round(duration_s * cycles_per_s))

    nothing_to_dump = SimpleNamespace(
        dump_traceback_later=lambda seconds: None, cancel_dump_traceback_later=lambda: None
    )
    module = ModuleType("tensorrt_llm_check")
    vars(module).update(torch=torch, hostfunc=hostfunc, faulthandler=nothing_to_dump)
    sys.modules[module.__name__] = module  # dataclasses looks there
    exec(compile(ast.Module(kept, []), str(path), "exec"), vars(module))
    return Check("TensorRT-LLM", lambda: module.assert_no_cuda_sync(SLEEP_S), None)


def kernel_cycles_per_s() -> float:
    """How many cycles of ``torch.cuda._sleep`` are a second."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(PENDING_CYCLES)
    begin.record()
    torch.cuda._sleep(PENDING_CYCLES)
    end.record()
    end.synchronize()
    return float(PENDING_CYCLES / begin.elapsed_time(end) * 1e3)


@contextlib.contextmanager
def error_mode() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


OTHERS = Check('PyTorch\'s mode "error"', error_mode, None)
OURS = Check("syncscope", lambda: syncscope.guard("raise"), lambda: syncscope.guard("raise", allow=ALL))
OURS_ALL = Check("syncscope, all threads", lambda: syncscope.guard("raise", threads="all"), None)
OURS_HELD = Check(f"syncscope, hold_ms={HOLD_MS:.0f}", lambda: syncscope.guard("raise", hold_ms=HOLD_MS), None)


def look(check: Check, run: Callable[[], Any]) -> Outcome:
    """What the check does with one wait."""
    torch.cuda.synchronize()
    torch.cuda._sleep(PENDING_CYCLES)
    stream = torch.cuda.current_stream()
    try:
        with check.armed():
            run()
    except (RuntimeError, AssertionError) as error:
        before = not stream.query()
        frames = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == waits.__file__
        ]
        asserted = isinstance(error, AssertionError) or "the device was held" in str(error)
        return Outcome(True, before and not asserted, frames[-1] if frames else None, asserted=asserted)
    finally:
        torch.cuda.synchronize()
    return Outcome(False)


def cost_us(allows: Block, run: Callable[[], Any]) -> float:
    """Microseconds that the armed check adds to one call that it lets pass: the median of blocks in turn."""
    added = []
    for _ in range(BLOCKS):
        plain = timed(run)
        with allows():
            added.append(timed(run) - plain)
    return statistics.median(added) * 1e6


def timed(run: Callable[[], Any]) -> float:
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        run()
    return (time.perf_counter() - start) / CALLS


def line_of(run: Callable[[], Any]) -> int:
    """The line that waits: the function's own, and in one of several lines the one that reads."""
    code: Any = run.__code__  # type: ignore[attr-defined]
    return next((inner.co_firstlineno for inner in code.co_consts if hasattr(inner, "co_code")), code.co_firstlineno)


def table(checks: list[Check]) -> list[str]:
    kinds = waits.make_kinds(torch)
    false_alarms = [
        f"{check.name}: {name}"
        for name, run in waits.make_harmless(torch).items()
        for check in [*checks, OURS_HELD]
        if look(check, run).raised
    ]
    if false_alarms:
        raise SystemExit(f"raised where nothing waits, so the table would say nothing: {', '.join(false_alarms)}")
    names = [check.name for check in checks]
    priced = [f"{check.name}, µs" for check in checks if check.allows is not None]
    lines = [
        "| " + " | ".join(("what waits", *names, *priced)) + " |",
        "|---|" + "---|" * len(names) + "--:|" * len(priced),
    ]
    caught = dict.fromkeys(names, 0)
    for kind, run in kinds.items():
        found = [look(OURS_ALL if check is OURS and kind == "another thread" else check, run) for check in checks]
        for check, outcome in zip(checks, found, strict=True):
            caught[check.name] += outcome.raised
            if check.allows is not None and kind not in ("empty_cache", "a hook in backward"):
                outcome.cost_us = cost_us(check.allows, run)
        costs = [
            "–" if outcome.cost_us is None else f"{outcome.cost_us:.1f}"
            for check, outcome in zip(checks, found, strict=True)
            if check.allows is not None
        ]
        lines.append("| " + " | ".join((kind, *(outcome.text(line_of(run)) for outcome in found), *costs)) + " |")
    totals = [f"**{caught[name]} of {len(kinds)}**" for name in names]
    lines.append("| " + " | ".join(("**caught**", *totals, *("" for _ in priced))) + " |")
    return lines


WORKER = """
import sys, torch
from pathlib import Path
sys.path.insert(0, {root!r})
net, x = torch.nn.Linear(8, 8).cuda(), torch.ones(8, 8, device="cuda")
def step(number):
    y = net(x)
    return y.sum().item() if number == 24 else y
how = {how!r}
if how == "vLLM":
    from benchmarks.guards import load_vllm
    armed = load_vllm(Path({vllm!r})).armed
elif how != "syncscope":
    from benchmarks.guards import error_mode as armed
for number in range(30):
    if how == "syncscope" or number < 20:
        step(number)
    else:
        with armed():
            step(number)
"""


def unseen(checks: list[Check]) -> list[str]:
    """What waits without PyTorch's knowledge, under each check, and under ours that holds the device."""
    checks = [*checks, OURS_HELD]
    names = [check.name for check in checks]
    lines = ["", "| " + " | ".join(("what waits where PyTorch does not know of it", *names)) + " |"]
    lines.append("|---|" + "---|" * len(names))
    for kind, run in waits.make_unknown(torch).items():
        found = [look(check, run).text(line_of(run)) for check in checks]
        lines.append("| " + " | ".join((kind, *found)) + " |")
    return lines


def workers(checks: list[Check], vllm: Path | None) -> list[str]:
    """A process that another one starts, and that waits after its warm-up. Ours is told by the environment alone."""
    lines = [
        "",
        "| a worker that waits in step 25 | its program says | it dies | its parent says |",
        "|---|---|---|---|",
    ]
    start = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    hook = ROOT / "syncscope" / "collect" / "children" / "path"
    for check in checks:
        ours = check is OURS
        program = WORKER.format(root=str(ROOT), how=check.name, vllm=str(vllm))
        environment = {**os.environ}
        if ours:
            environment |= {"SYNCSCOPE_GUARD": "raise:after=20", "PYTHONPATH": f"{hook}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-c", start, program], capture_output=True, text=True, env=environment, check=False
        )
        said = [line.removeprefix("syncscope: ") for line in done.stderr.splitlines() if line.startswith("syncscope: ")]
        asks = "nothing: `SYNCSCOPE_GUARD=raise:after=20`" if ours else "a region around its steps, after the warm-up"
        parent = "; ".join(" ".join(line.split()) for line in said) or "nothing"
        lines.append(
            f"| {check.name} | {asks} | {'yes' if done.returncode else '**no**'} | {parent} |".replace("<", "&lt;")
        )
    return lines


def cost_of_loops() -> list[str]:
    """What an armed guard costs a step of each loop, which lets all waits pass."""
    lines = [
        "| loop | ms a step | armed / not | 95 % interval |",
        "|---|--:|--:|---|",
    ]
    order = random.Random(1)
    for name, (make, _) in LOOPS.items():
        if name == SAME_LOOP:
            continue
        step = make()
        timed_steps(step, 5, nothing)
        length = timed_steps(step, 20, nothing)
        steps, learning = max(2, round(BLOCK_S / length)), max(3, round(LEARNING_S / length))
        ratios, bare = [], []
        for _ in range(COST_BLOCKS):
            pair = {}
            for armed in order.sample([True, False], 2):
                with OURS.allows() if armed and OURS.allows is not None else contextlib.nullcontext():
                    timed_steps(step, learning, nothing)
                    pair[armed] = timed_steps(step, steps, nothing)
            ratios.append(pair[True] / pair[False])
            bare.append(pair[False])
        low, high = interval(ratios)
        middle = statistics.median(ratios)
        lines.append(f"| {name} | {statistics.median(bare) * 1e3:.3f} | {middle:.4f} | {low:.4f} – {high:.4f} |")
    return lines


def write(page: Path, marks: tuple[str, str], lines: list[str]) -> None:
    """Put ``lines`` between the marks of ``page``."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    page.write_text("\n".join((before + begin, *lines, end + after)), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", type=Path, help="vLLM's gpu_sync_debug.py; without it that column is missing")
    parser.add_argument("--tensorrt-llm", type=Path, help="TensorRT-LLM's tests/unittest/utils/util.py; likewise")
    parser.add_argument("--write", type=Path, help="the page whose tables to write anew")
    parser.add_argument("--cost", action="store_true", help="measure what an armed guard costs four loops instead")
    options = parser.parse_args()
    if options.cost:
        head = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {COST_BLOCKS} interleaved blocks:"
        lines, marks = [head, "", *cost_of_loops()], COST_MARKS
        print("\n".join(lines))
        if options.write:
            write(options.write, marks, lines)
        return
    theirs = [load_vllm(options.vllm)] if options.vllm else []
    timed_check = [load_tensorrt_llm(options.tensorrt_llm)] if options.tensorrt_llm else []
    checks = [*theirs, OTHERS, *timed_check, OURS]
    head = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}:"
    asked = [check for check in checks if check not in timed_check]  # that one is of tests, and not for workers
    lines = [head, "", *table(checks), *unseen(checks), *workers(asked, options.vllm)]
    print("\n".join(lines))
    if options.write:
        write(options.write, MARKS, lines)


if __name__ == "__main__":
    main()
