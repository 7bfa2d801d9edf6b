"""Programs nobody here wrote, held against PyTorch's own warnings: ``python benchmarks/programs.py`` with a GPU.

Each program of ``benchmarks/programs`` logs every warning that PyTorch raises. Of those raised inside the recorded
steps, each must be a finding whose ``at`` is the warning's line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from syncscope.schema.report import Report
from syncscope.trace import load

PROGRAMS = Path(__file__).parent / "programs"


def tail(path: str) -> str:
    """The last two parts: enough to compare a path with its normalised form."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def run(program: Path, folder: Path) -> str:
    """One row of the table."""
    log = folder / "oracle.jsonl"
    command = [sys.executable, "-m", "syncscope", "profile", "-o", str(folder), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "ORACLE": str(log)})
    if not (folder / "report.json").exists():
        return f"exit {done.returncode}: {done.stderr.strip()[-1500:]}"
    report = Report.from_json((folder / "report.json").read_bytes())
    recording = load(folder / "trace.json.gz").recording
    assert recording is not None
    begin, end = recording.steps.boundaries_ns[0], recording.steps.boundaries_ns[-1]
    warned = [entry for entry in map(json.loads, log.read_text().splitlines()) if begin <= entry[0] <= end]
    lines = Counter((tail(file), line) for _, file, line in warned)
    findings: Counter[tuple[str, int | None]] = Counter()
    for finding in report.findings:
        if finding.at is not None and finding.rule.startswith("SYN"):
            findings[tail(finding.at.file), finding.at.line] += finding.count
    counted = sum(min(count, findings[place]) for place, count in lines.items())
    exact = sum(place in findings for place in lines)
    trace = report.traces[0]
    ratio = (trace.steps.profiled_ms or 0) / trace.steps.bare_ms if trace.steps.bare_ms else float("nan")
    missed = [f"{file}:{line}" for file, line in lines if (file, line) not in findings]
    lines_exact, covered = f"{exact}/{len(lines)}", f"{trace.coverage.with_line}/{trace.coverage.waits}"
    row = f"{len(warned):8d} {counted:8d} {lines_exact:>9} {covered:>13} {trace.steps.bare_ms or 0:9.2f} {ratio:8.2f}"
    return f"{row}  {' '.join(missed)}"


def main() -> None:
    head = f"{'warnings':>8} {'found':>8} {'lines':>9} {'coverage':>13} {'bare ms':>9} {'overhead':>8}"
    print(f"{'program':12} {head}")
    for program in sorted(PROGRAMS.glob("*.py")):
        if program.stem != "oracle":
            with tempfile.TemporaryDirectory() as folder:
                print(f"{program.stem:12} {run(program, Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
