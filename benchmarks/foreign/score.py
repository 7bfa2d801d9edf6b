"""Score the findings of traces that others recorded: ``python -m benchmarks.foreign.score FOLDER [--all]``.

``FOLDER`` holds the traces of the judgements, under any name and in any folders below; they are known by their hashes,
and those that are not there are named. Nothing is fetched. Prints for each set of judgements how many findings of a
rule are right in every respect, and each that is not with what is wrong. Exits with 1 when there is any.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import syncscope
from benchmarks.foreign.judging import SETS, Case, Verdict, judge, read_cases


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="name the findings that are right too")
    options = parser.parse_args(arguments)
    files = find_files(options.folder)
    judged = {name: judge_all(read_cases(path), files, options.all) for name, path in SETS.items()}
    for name, verdicts in judged.items():
        print(f"\n{name}")
        print_table(verdicts)
    return 1 if any(verdict.wrong for verdicts in judged.values() for verdict in verdicts) else 0


def judge_all(cases: Iterable[Case], files: Mapping[str, Path], every: bool) -> list[Verdict]:
    """The verdicts on all cases whose traces are among ``files``; prints those that are wrong, or ``every`` one."""
    verdicts: list[Verdict] = []
    for case in cases:
        paths = [files.get(file.sha256) for file in case.files]
        print(f"\n{case.device}: {case.program}\n  {address(case)}")
        if None in paths:
            print("  not in this folder")
            continue
        judged = judge(case, syncscope.analyze(*[path for path in paths if path]))
        verdicts += judged
        for verdict in judged:
            if verdict.wrong or every:
                print(f"  {verdict.rule} {verdict.what}: {'; '.join(verdict.wrong) or 'right'}")
    return verdicts


def find_files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their SHA-256."""
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def address(case: Case) -> str:
    file, others = case.files[0], len(case.files) - 1
    more = f" and {others} beside it" if others else ""
    return f"github.com/{file.repository}/blob/{file.commit[:12]}/{file.path}{more}"


def print_table(verdicts: list[Verdict]) -> None:
    right = Counter(verdict.rule for verdict in verdicts if not verdict.wrong)
    wrong = Counter(verdict.rule for verdict in verdicts if verdict.wrong)
    why = Counter((verdict.rule, text.split(":")[0]) for verdict in verdicts for text in verdict.wrong)
    print(f"{'rule':8} {'right':>5} {'wrong':>5}  of it")
    for rule in sorted({*right, *wrong}):
        reasons = [f"{aspect} {n}" for (of, aspect), n in why.most_common() if of == rule]
        print(f"{rule:8} {right[rule]:5} {wrong[rule]:5}  {', '.join(reasons)}")
    n, m = right.total(), right.total() + wrong.total()
    print(f"all      {n:5} {m - n:5}  {n / m:.0%} right" if m else "no trace of the list is in this folder")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
