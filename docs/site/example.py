"""Reports to click through, made from recordings of the repository, and the page that shows them."""

from __future__ import annotations

from msgspec.structs import replace

from docs.site.contents import ROOT
from syncscope.analysis.analyze import analyze_files, choose_engine
from syncscope.report import html

ONE = ("benchmarks/savings/recordings/all_of_three.medium/trace.json.gz",)
TWO = tuple(f"fixtures/traces/ddp_straggler/trace/rank{rank}.json.gz" for rank in (0, 1))
REPORTS = {"one-gpu.html": ONE, "two-ranks.html": TWO}
"""The traces of each report, by its name in the folder ``reports``."""

PAGE = """\
---
hide:
  - navigation
  - toc
---

# A report

These pages are what `syncscope analyze -o report.html` writes. Each is one file that loads nothing else. They were made
when this site was built, from recordings on an H200 that are in the repository.

## One GPU

A training loop that reads three values in each step. Click a finding to see its line and its fix, and a bar of the
timeline to see what waited for what.

<iframe class="report" src="reports/one-gpu.html" title="The report of a training loop" loading="lazy"></iframe>

[Open it alone](reports/one-gpu.html){ .md-button }

## Two ranks

One of two ranks reads a value in each step, and does more on its host. The other waits for it in each collective.

[Open the report of two ranks](reports/two-ranks.html){ .md-button }
"""


def write_reports() -> dict[str, str]:
    """Each report's page, by its name."""
    made = {}
    for name, traces in REPORTS.items():
        report, pictures = analyze_files([str(ROOT / trace) for trace in traces], choose_engine(), pictures=True)
        named = [replace(info, path=trace) for info, trace in zip(report.traces, traces, strict=True)]
        made[name] = html.render(replace(report, traces=tuple(named)), pictures)
    return made
