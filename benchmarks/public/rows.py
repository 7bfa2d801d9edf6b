"""The rows of the table: one a program, from its runs and from what was compared."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.public.comparing import Compared, Judged, are_close
from benchmarks.public.running import Done

HEAD = (
    f"{'program':26} {'found':>7} {'exact':>7} {'close':>7} {'oracle':>8} {'counted':>8} {'reported':>8} {'1 in':>5}"
    f" {'status':>9} {'stdout':>9} {'bare s':>7} {'ours s':>7}  phases | recorded | notes"
)
NOTHING = f"{'-':>7} {'-':>7} {'-':>7} {'-':>8} {'-':>8} {'-':>8} {'-':>5}"
SHOWN = 6


def masked(done: Done) -> str:
    """Standard output without what differs between two runs: paths, numbers, our own lines."""
    text = done.stdout.replace(str(done.copy.parent), "")
    text = "\n".join(line for line in text.splitlines() if "syncscope" not in line)
    return re.sub(r"[-+]?\d[\d.,:e+-]*|\bnan\b|\binf\b", "#", re.sub(r"\s+", " ", text)).strip()


def output_difference(one: Done, other: Done) -> str:
    if one.stdout == other.stdout:
        return "same"
    return "numbers" if masked(one) == masked(other) else "differs"


def is_close(judged: Judged) -> bool:
    return are_close(judged.reported, judged.warned)


def ending(bare: Done, oracle: Done, ours: Done) -> str:
    """Exit status, output and wall times. Output that differs under the oracle too is in brackets."""
    status = str(ours.status) if ours.status == bare.status else f"{bare.status}→{ours.status}"
    output = output_difference(bare, ours)
    if output != "same" and output == output_difference(bare, oracle):
        output = f"({output})"
    return f"{status:>9} {output:>9} {bare.seconds:7.1f} {ours.seconds:7.1f}"


def figures(compared: Compared) -> str:
    lines = compared.lines
    shares = [
        f"{sum(agrees)}/{len(lines)}"
        for agrees in ([one.found for one in lines], [one.exact for one in lines], [is_close(one) for one in lines])
    ]
    sums = [sum(one.warned for one in lines), sum(one.counted for one in lines), sum(one.reported for one in lines)]
    return " ".join([*(f"{share:>7}" for share in shares), *(f"{value:8.0f}" for value in sums)]) + (
        f" {compared.one_in:5.1f}"
    )


def described(compared: Compared) -> str:
    """Phases with their steps and share of time, the recorded steps, and what is amiss."""
    phases = [f"{phase['name']} {phase['steps']} ({float(str(phase['share'])):.0%})" for phase in compared.phases]
    notes = []
    if missed := [f"{Path(one.file).name}:{one.line}×{one.warned}" for one in compared.lines if not one.found]:
        notes.append(f"missed {', '.join(missed[:SHOWN])}")
    if off := [one for one in compared.lines if one.found and not is_close(one)]:
        said = [f"{Path(one.file).name}:{one.line} {one.warned}→{one.reported:.0f}" for one in off]
        notes.append(f"off {', '.join(said[:SHOWN])}")
    if compared.elsewhere:
        notes.append(f"elsewhere {', '.join(list(compared.elsewhere)[:SHOWN])}")
    if compared.processes != compared.oracle_processes:
        notes.append(f"processes {compared.processes} of {compared.oracle_processes}")
    return " | ".join([", ".join(phases), ", ".join(compared.windows), *notes])


def complaint(done: Done) -> str:
    """The last line that a run that failed wrote to standard error."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"{done.mode}: {lines[-1].strip()[:160]}" if done.status != 0 and lines else ""


def row(name: str, bare: Done, oracle: Done, ours: Done, compared: Compared | str) -> str:
    """``compared`` is what went wrong where there is nothing to compare."""
    said = [one for one in (complaint(bare), complaint(oracle), complaint(ours)) if one]
    if isinstance(compared, str):
        return f"{name:26} {NOTHING} {ending(bare, oracle, ours)}  {' | '.join([compared, *said])}"
    return f"{name:26} {figures(compared)} {ending(bare, oracle, ours)}  {' | '.join([described(compared), *said])}"
