"""Views of traces recorded elsewhere. Set SYNCSCOPE_EXTRA_TRACES to a folder of chrome traces to run them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.tables import CAUSES
from syncscope.timeline.waits import is_wait
from syncscope.timeline.witnesses_of_launches import find_unmade
from syncscope.trace import TraceError, load
from syncscope.trace.names import SYNC_ROLES, role
from tests.foreign import EXTRA, index

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")


@pytest.fixture(params=[row["file"] for row in index()])
def view(request: pytest.FixtureRequest) -> Timeline:
    try:
        trace = load(Path(EXTRA or "") / request.param)
    except TraceError:
        pytest.skip("no trace of a device")
    return Timeline(trace)


def test_every_blocking_call_is_a_wait_but_the_profilers_last(view: Timeline):
    blocking = np.array([role(name) in SYNC_ROLES for name in view.calls.name], dtype=bool)
    kept = is_wait(view.waits.kind).sum()
    assert kept <= blocking.sum() <= kept + 1


def _is_late(view: Timeline, launch: Ints, end: Ints) -> Bools:
    """Which gaps (n,) end as soon as what follows is launched, though nothing that was launched is lost: then the host
    is why the device was idle, and nothing about it is unknown."""
    returned = np.append(view.calls.end, 0)[launch]
    lost = bool(len(find_unmade(view.calls, view.activities)))
    return (launch >= 0) & (returned >= end) & (not lost)


def test_bubbles_and_activity_fill_the_span(view: Timeline):
    if view.overlap is None or view.span is None:
        pytest.skip("no device activity")
    steps = max(len(view.steps), 1)
    length = (view.span[1] - view.span[0]) * 1e-6 / steps
    assert view.overlap.idle_ms + view.overlap.device_busy_ms == pytest.approx(length, abs=1e-3)
    bubbles = view.bubbles
    assert (bubbles.by_cause.sum(axis=1) == bubbles.dur).all()
    assert (bubbles.by_cause >= 0).all()
    assert not _is_late(view, bubbles.launch, bubbles.end)[bubbles.by_cause[:, CAUSES.index("unknown")] > 0].any()
    assert sum(view.overlap.idle_by_cause.values()) == pytest.approx(view.overlap.idle_ms, abs=1e-5)


def test_exposed_copy_time_is_no_more_than_copy_time(view: Timeline):
    copies = view.copies
    assert (copies.exposed >= 0).all()
    assert (copies.exposed <= copies.dur).all()
