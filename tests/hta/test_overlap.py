"""Our overlap figures are HTA's, where the two speak of the same: what a device ran, times not rounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import releases
from tests.releases import RELEASES, ROOT

TRACES = [
    "ddp_exposed/trace/rank0.json.gz", "ddp_overlapped/full/rank0.json.gz", "ddp_straggler/trace/rank1.json.gz",
    "allreduce_after_backward/trace/rank0.json.gz", "collective_async/trace.json.gz", "copies_both_ways/trace.json.gz",
    "item_logging/full.json.gz", "several_streams/trace.json.gz",
]  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_overlap_of_bundled_traces_is_the_same(release: str, tmp_path: Path) -> None:
    paths = [str(ROOT / "fixtures" / "traces" / name) for name in TRACES]
    command = [sys.executable, "-m", "tests.hta.overlap", str(tmp_path / "found.json"), *paths]
    environment = releases.environment(release, HTA_DISABLE_NS_ROUNDING="1")
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert len(found) == len(TRACES)
    for path, (ours, theirs) in found.items():
        assert list(ours) == list(theirs)
        for name, value in ours.items():
            # HTA says overlap to two digits.
            assert value == pytest.approx(theirs[name], rel=1e-6, abs=0.0051 if name == "overlap" else 1e-4), path
    assert {"busy", "overlap"} <= {name for ours, _ in found.values() for name in ours}
    overlaps = {round(ours["overlap"]) for ours, _ in found.values() if "overlap" in ours}
    assert len(overlaps) > 2
