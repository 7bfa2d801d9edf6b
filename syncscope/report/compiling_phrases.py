"""What several outputs say of the waits that ``torch.compile`` makes while it compiles.

Names are as they stand in the report: not escaped.
"""

from __future__ import annotations

from collections import Counter

from syncscope.report.finding_phrases import shorten_expression
from syncscope.report.numbers import count
from syncscope.schema.run import Run

MOST_LINES, MOST_EXPRESSION = 4, 60
"""Lines that are named, and characters of their expressions."""


def describe_compiling(run: Run) -> list[str]:
    """The program's lines that wait while they compile, the most first: ``train.py:30 model(x), while it compiles: 61
    waits in all (not part of a step)``."""
    waits: Counter[str] = Counter()
    missed = set()
    for one in run.counted.compiling if run.counted is not None else ():
        site = one.site
        line = site.file if site.line is None else f"{site.file}:{site.line}"
        line += f" {shorten_expression(site.expression, MOST_EXPRESSION)}" if site.expression else ""
        waits[line] += one.waits
        missed |= {line} if one.at_least else set()
    lines = waits.most_common()
    said = []
    for line, number in lines[:MOST_LINES]:
        waited = f"at least {count(number, 'wait')}" if line in missed else f"{count(number, 'wait')} in all"
        said.append(f"{line}, while it compiles: {waited} (not part of a step)")
    if others := lines[MOST_LINES:]:
        number = sum(number for _, number in others)
        said.append(f"{count(len(others), 'more line')}, while they compile: {count(number, 'wait')}")
    return said
