"""Whether budgets in time have one verdict: ``python -m benchmarks.budgets`` on a machine with a GPU, under a minute.

Records one program many times, each in a process of its own, and judges every recording by ``syncscope check``'s
budgets. The first half of the recordings gives the spread of each figure: from the least lower quartile of the steps to
the greatest upper one, widened by ``MARGIN``. Printed for each budget: that spread, and how many of the other half keep
a budget at several multiples of the median. Ends with 1 where, for a budget at either side of the spread, any two
verdicts differ. ``--gpus 2`` adds collectives and a rank that comes late; starting the ranks takes longer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from syncscope.policy import Budgets, Policy, check_gate
from syncscope.schema.report import Report
from syncscope.schema.verdict import Budget

SETTLING = 150
"""Steps beside the recorded ones: the collector first lets up to 100 pass, until the program is as it was."""
MARGIN = 0.05
MULTIPLES = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2)
CELL = 7
"""Characters of a cell."""
LENIENT = 1e9
"""A budget that everything keeps, to ask for the figure alone."""
OF_ONE = ("max_exposed_copy_ms", "max_idle_share", "max_stall_share")
OF_SEVERAL = (*OF_ONE, "max_exposed_comm_ms", "max_straggling_ms")


def program(prof: Any, rank: int, ranks: int, steps: int) -> None:
    """A step copies its batch with nothing beside it, computes, reads its loss, and works on the host."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    if ranks > 1:
        dist.init_process_group("nccl", rank=rank, world_size=ranks)
    batch = torch.randn(1024, 4096).pin_memory()
    weight = torch.randn(4096, 4096, device="cuda")
    for _ in range(steps):
        x = batch.cuda(non_blocking=True)
        for _ in range(4):
            x = torch.tanh(x @ weight)
        if ranks > 1:
            if rank == 1:
                work_on_host(0.0015)
            dist.all_reduce(weight)
            weight /= ranks
        x.sum().item()
        work_on_host(0.001)
        prof.step()
    if ranks > 1:
        dist.destroy_process_group()


def work_on_host(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def record(folder: Path, rank: int, ranks: int, steps: int) -> None:
    """Record the program once, as a rank of it; its reports are made by the process that judges."""
    import syncscope
    from syncscope import session

    if ranks > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
    session.write_reports = lambda *_: None  # type: ignore[assignment]
    with syncscope.profile(folder, warmup=5, bare=5, steps=steps, attribution=0) as prof:
        program(prof, rank, ranks, steps + SETTLING)


def judge(report: Report, name: str, allowed: float) -> Budget:
    """The budget ``name`` on a report, of the rank on which it is worst."""
    # A share has a limit of 1 in a configuration, and none here.
    budgets = check_gate(report, Policy(budgets=Budgets(**{name: allowed}))).budgets
    return max(budgets, key=lambda budget: (budget.outcome == "not checked", budget.found or 0.0))


def spread_of(figures: Sequence[Budget]) -> tuple[float, float]:
    """Below and above which budgets have one verdict, as far as these recordings show."""
    low, high = min(one.low or 0.0 for one in figures), max(one.high or 0.0 for one in figures)
    return low * (1 - MARGIN), high * (1 + MARGIN)


def assess(reports: Sequence[Report], name: str) -> tuple[str, bool]:
    """A row of the table, and whether all verdicts agree at either side of the spread."""
    figures = [judge(report, name, LENIENT) for report in reports]
    if missing := [one.message for one in figures if one.outcome == "not checked"]:
        return f"{name:<22} not checked: {missing[0]}", False
    known, others = figures[: len(figures) // 2], reports[len(figures) // 2 :]
    low, high = spread_of(known)
    medians = sorted(one.found or 0.0 for one in figures)
    middle = medians[len(medians) // 2]
    kept = [sum(judge(report, name, middle * by).outcome == "kept" for report in others) for by in MULTIPLES]
    below = {judge(report, name, low).outcome for report in others}
    above = {judge(report, name, high).outcome for report in others}
    agree = below == {"exceeded"} and above == {"kept"}
    cells = "".join(f"{f'{number}/{len(others)}':>{CELL}}" for number in kept)
    spread = f"{medians[0]:.4g} to {medians[-1]:.4g}"
    verdict = "agree" if agree else f"differ: below {sorted(below)}, above {sorted(above)}"
    return f"{name:<22}{spread:<20}{f'{low:.4g} to {high:.4g}':<20}{cells}  {verdict}", agree


def main() -> int:
    from syncscope.analysis.analyze import analyze_files, choose_engine, find_traces

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--gpus", type=int, default=1)
    options = parser.parse_args()
    import torch._inductor.config  # noqa: F401  # once for all that are forked: PyTorch's profiler imports it

    fork = multiprocessing.get_context("fork")
    os.environ |= {"MASTER_ADDR": "127.0.0.1"}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        reports = []
        for number in range(options.times):  # one after the other, so that none disturbs another
            folder = Path(root, str(number))
            os.environ["MASTER_PORT"] = str(29500 + number)
            ranks = [
                fork.Process(target=record, args=(folder, rank, options.gpus, options.steps))
                for rank in range(options.gpus)
            ]
            for process in ranks:
                process.start()
            for process in ranks:
                process.join()
            if any(process.exitcode for process in ranks):
                return 2
            traces = find_traces(sorted(folder.glob("trace*.json.gz")))
            reports.append(analyze_files(traces, choose_engine(), pictures=False)[0])
    print(f"{options.times} recordings of {options.steps} steps in {time.monotonic() - began:.0f} s")
    head = "".join(f"{f'×{by}':>{CELL}}" for by in MULTIPLES)
    print(f"{'budget':<22}{'medians':<20}{'spread, half of them':<20}{head}  at either side of the spread")
    rows = [assess(reports, name) for name in (OF_SEVERAL if options.gpus > 1 else OF_ONE)]
    print(*(row for row, _ in rows), sep="\n")
    return 0 if all(agree for _, agree in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
