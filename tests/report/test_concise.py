"""One line a finding, as linters print them."""

from __future__ import annotations

import msgspec

from syncscope.report.concise import render
from syncscope.schema.findings import Site
from syncscope.schema.ranks import Unread
from syncscope.schema.verdict import Verdict
from tests.report import sample

READ = sample.findings()[0]
CLOSED = "3 findings · 1 expected · 1 in the baseline · all fixed together: saves 0.4 ms (7.8 %) a recorded step"


def test_a_finding_is_a_line_with_its_place_rule_and_impact() -> None:
    report = msgspec.structs.replace(sample.report(), stale=())
    assert render(report).splitlines() == [
        "train.py:42: SYN102 The host waits for everything queued before it. [saves 3.7 %]",
        "train.py:31: CPY201 4.0 MiB a step are copied from pageable memory, so the host blocks inside the copy. "
        "[saving not known]",
        "train.py:31: OVL301 Exposed 0.40 ms a step [saving not known]",
        CLOSED,
    ]
    assert len(render(report, top=1).splitlines()) == 2


def test_the_column_is_told_where_it_is_known_and_the_trace_where_no_line_is() -> None:
    site = Site(file="a.py", line=7, function="f", column=5)
    known, unknown = (msgspec.structs.replace(READ, site=one, fingerprint=str(one)) for one in (site, None))
    first, second, *_ = render(sample.report(found=[known, unknown])).splitlines()
    assert first.startswith("a.py:7:5: SYN102 ")
    assert second.startswith("runs/trace.json.gz: SYN102 ")


def test_with_a_verdict_only_what_stands_against_the_gate_is_told() -> None:
    report = msgspec.structs.replace(sample.report(), unread=(Unread(path="b.json", why="is empty"),))
    verdict = Verdict(gate=("SYN102",), unexpected=(READ,), unread=report.unread)
    said = render(report, verdict).splitlines()
    assert [line.split(": ")[0] for line in said] == ["train.py:42", "b.json", "pyproject.toml:41", "failed"]
