"""What others' traces say of torch.compile is what their JSON holds by plain reading."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from syncscope.timeline import Timeline
from syncscope.trace import TraceError, load
from tests.foreign import EXTRA, raw_events, span

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")

REGION, COMPILATION = "Torch-Compiled Region", "_compile.compile_inner (dynamo_timed)"


@pytest.fixture(params=sorted(path.name for path in Path(EXTRA or "/nonexistent").glob("*.json*")))
def trace(request: pytest.FixtureRequest) -> Path:
    path = Path(EXTRA or "") / request.param
    try:
        load(path)
    except TraceError:
        pytest.skip("refused")
    return path


def test_parts_inside_of_each_other_and_compilations_are_those_of_the_file(trace: Path) -> None:
    hosts = [event for event in raw_events(trace) if event.get("cat") in ("cpu_op", "user_annotation")]
    regions = [event for event in hosts if event["name"].startswith(REGION)]
    compilations = [event for event in hosts if event["name"] == COMPILATION]
    steps = [span(event) for event in hosts if event["name"].startswith("ProfilerStep#")]
    compiled = Timeline(load(trace)).compiled
    assert (compiled is None) == (not regions and not compilations)
    if compiled is None or steps:
        return
    outermost = [one for one in regions if not any(one in _inside(other, regions) for other in regions)]
    in_parts = Counter(one["name"].removeprefix(f"{REGION}: ") for one in outermost if _inside(one, regions))
    assert {one.event.compile_ids[0]: one.event.count for one in compiled.of("break")} == in_parts
    assert sum(one.event.count for one in compiled.of("compile", "recompile")) == len(compilations)


def _inside(outer: dict, regions: list[dict]) -> list[dict]:
    """The regions inside of one."""
    begin, end = span(outer)
    return [
        one
        for one in regions
        if one is not outer and one["tid"] == outer["tid"] and begin <= one["ts"] and span(one)[1] <= end
    ]
