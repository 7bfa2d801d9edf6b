from __future__ import annotations

import pytest

from syncscope.rules import check
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import findings, line


def loop(gap: float, *, wait: bool) -> TraceBuilder:
    """Four steps of 100 µs: a kernel, then a bubble of ``gap`` µs, behind a wait or behind host work."""
    builder = TraceBuilder().recording(*(100 * i for i in range(5)))
    for step in range(4):
        start = 100 * step
        builder.launch("k", call=(start, 1), runs=(start + 1, 99 - gap))
        if wait:
            builder.op("aten::item", start + 2, 96).copy("DtoH", call=(start + 3, 2), runs=(start + 100 - gap, 1))
            builder.stream_sync(start + 6, 96 - gap).warning(start + 99.5, line(12, "loss.item()"))
    return builder


def test_a_device_idle_for_a_tenth_is_starved():
    found = findings(loop(40, wait=False), "OVL303")
    assert len(found) == 1
    assert "40%" in found[0].message or "41%" in found[0].message
    assert "host work" in found[0].message
    assert found[0].site is None


def test_a_busy_device_is_not():
    assert findings(loop(5, wait=False), "OVL303") == []


def test_the_wait_behind_most_of_it_lends_its_line_and_is_related():
    found, _ = check(Timeline(loop(40, wait=True).trace()))
    starved = next(finding for finding in found if finding.rule == "OVL303")
    read = next(finding for finding in found if finding.rule == "SYN102")
    assert starved.site is not None
    assert starved.site.line == 12
    assert starved.related == (read.fingerprint,)
    assert "train.py:12" in starved.message


def test_the_fix_fits_the_greatest_cause():
    builder = TraceBuilder().step(0, 200).launch("k", call=(0, 1), runs=(1, 50))
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 60, 100)
    assert "DataLoader" in findings(builder.launch("k", call=(170, 1), runs=(172, 20)), "OVL303")[0].fix


@pytest.mark.parametrize("builder", [TraceBuilder().step(0, 100).stream_sync(10, 5)])
def test_without_device_activity_it_cannot_see(builder: TraceBuilder):
    found, blind = check(Timeline(builder.trace()))
    assert "OVL303" in {entry.rule for entry in blind}
    assert "OVL303" not in {finding.rule for finding in found}
