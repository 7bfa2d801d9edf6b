"""What HTA says of our columns is what it says of the file, in both releases; analysis by analysis, cell by cell."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests import releases
from tests.foreign import EXTRA, index
from tests.releases import RELEASES, ROOT

TRACES = ROOT / "fixtures" / "traces"
ALONE = [
    "item_logging/full.json.gz", "several_streams/full.json.gz", "item_logging/trace.json.gz",
]  # fmt: skip
TOGETHER = ["ddp_straggler/full/rank0.json.gz", "ddp_straggler/full/rank1.json.gz"]
EQUAL = {"same", "neither"}
PANDAS = int(pd.__version__.split(".")[0])


def compared(release: str, folder: Path, runs: list[str], **environment: str) -> dict[str, dict[str, str]]:
    out = folder / "found.json"
    subprocess.run(
        [sys.executable, "-m", "tests.hta.compare", str(out), *runs],
        cwd=ROOT, env=releases.environment(release, **environment), check=True, timeout=600,
    )  # fmt: skip
    found: dict[str, dict[str, str]] = json.loads(out.read_text(encoding="utf-8"))
    return found


def unequal(found: dict[str, dict[str, str]]) -> dict[tuple[str, str], str]:
    return {(run, name): said for run, one in found.items() for name, said in one.items() if said not in EQUAL}


@pytest.mark.parametrize("release", RELEASES)
def test_every_analysis_of_bundled_traces_is_the_same(release: str, tmp_path: Path) -> None:
    runs = [*(str(TRACES / name) for name in ALONE), "+".join(str(TRACES / name) for name in TOGETHER)]
    found = compared(release, tmp_path, runs)
    assert len(found) == 2 * len(runs)
    assert unequal(found) == {}
    compares_results = {name for one in found.values() for name, said in one.items() if said == "same"}
    assert {"rows", "temporal breakdown", "idle time", "overlap", "queue length", "queue series"} <= compares_results
    # Release 0.5.0 has no critical path where pandas is new, either way.
    assert "critical path" in compares_results or ("0.5.0" in release and PANDAS >= 3)


@pytest.mark.parametrize("release", RELEASES)
def test_times_that_hta_is_told_not_to_round_are_the_same(release: str, tmp_path: Path) -> None:
    found = compared(release, tmp_path, [str(TRACES / ALONE[0])], HTA_DISABLE_NS_ROUNDING="1")
    assert unequal(found) == {}


FOREIGN = [row["file"] for row in index() if row["vendor"] in ("NVIDIA", "AMD")]
MORE = {
    "kineto__resnet50_num_workers_0": {("critical path", "only fed")},  # in categories that HTA does not know
    "TraceLens__torch_compile_triton": {("parser", "own: TypeError")},  # pandas 3 refuses what the parser does
}
"""What only our columns allow."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("release", RELEASES)
def test_every_analysis_of_foreign_traces_is_the_same(release: str, name: str, tmp_path: Path) -> None:
    """But for host rows that name a stream, which HTA takes for device work: it gets the file without. Bandwidth is
    bytes over time here, and in old files a figure made of the nanoseconds that their times lack."""
    path = Path(str(EXTRA)) / name
    stripped = without_host_streams(path, tmp_path)
    found = compared(release, tmp_path, [f"{stripped}={path}" if stripped else str(path)])
    more = {(name, said) for (_, name), said in unequal(found).items() if name != "memory bandwidth"}
    assert more <= next((allowed for begin, allowed in MORE.items() if name.startswith(begin)), set())


def without_host_streams(path: Path, folder: Path) -> Path | None:
    """A copy of the trace whose ops and calls name no stream, ``None`` where none does."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    named = [
        event["args"]
        for event in document["traceEvents"]
        if event.get("cat") in ("cpu_op", "cuda_runtime") and "stream" in event.get("args", {})
    ]
    if not named:
        return None
    for arguments in named:
        del arguments["stream"]
    copy = folder / f"{path.name.removesuffix('.gz').removesuffix('.json')}.json"
    copy.write_text(json.dumps(document), encoding="utf-8")
    return copy
