"""Views of traces recorded elsewhere. Set SYNCSCOPE_EXTRA_TRACES to a folder of chrome traces to run them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscope.rules import check
from syncscope.timeline import Timeline
from syncscope.timeline.idle import CAUSES
from syncscope.timeline.waits import is_wait
from syncscope.trace import TraceError, load
from syncscope.trace.names import blocks

FOLDER = os.environ.get("SYNCSCOPE_EXTRA_TRACES")
FILES = sorted(p for p in Path(FOLDER).iterdir() if ".json" in p.name) if FOLDER else []
NO_WAITS = ("SYN106", "SYN107", "SYN108")
"""Rules that count calls for memory and launches."""

pytestmark = pytest.mark.skipif(not FILES, reason="SYNCSCOPE_EXTRA_TRACES names no folder of traces")


@pytest.fixture(params=FILES, ids=lambda path: path.name[:50])
def view(request: pytest.FixtureRequest) -> Timeline:
    try:
        trace = load(request.param)
    except TraceError:
        pytest.skip("no trace of a device")
    return Timeline(trace)


def test_every_blocking_call_is_a_wait_but_the_profilers_last(view: Timeline):
    blocking = view.calls["name"].astype(str).map(blocks)
    kept = is_wait(view.waits["kind"]).sum()
    assert kept <= blocking.sum() <= kept + 1


def test_every_wait_is_in_exactly_one_finding(view: Timeline):
    found = [finding for finding in check(view)[0] if finding.rule.startswith("SYN") and finding.rule not in NO_WAITS]
    inside = is_wait(view.waits["kind"]) & (((view.waits["step"] >= 0) | (not len(view.steps))).to_numpy(bool))
    if not any(finding.rule == "SYN104" for finding in found):
        assert sum(finding.count for finding in found) == inside.sum()


def test_bubbles_and_activity_fill_the_span(view: Timeline):
    if view.overlap is None or view.span is None:
        pytest.skip("no device activity")
    steps = max(len(view.steps), 1)
    length = (view.span[1] - view.span[0]) * 1e-6 / steps
    assert view.overlap.idle_ms + view.overlap.device_busy_ms == pytest.approx(length, abs=1e-3)
    assert (view.idle[list(CAUSES)].sum(axis=1) == view.idle["dur"]).all()
    assert (view.idle[list(CAUSES)] >= 0).all(axis=None)
    assert len(view.calls) == 0 or not view.idle["unknown"].any()
    assert sum(view.overlap.idle_by_cause.values()) == pytest.approx(view.overlap.idle_ms, abs=1e-5)


def test_exposed_copy_time_is_no_more_than_copy_time(view: Timeline):
    copies = view.copies
    assert (copies["exposed"] >= 0).all()
    assert (copies["exposed"] <= copies["dur"]).all()
