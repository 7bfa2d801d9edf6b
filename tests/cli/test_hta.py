"""``syncscope hta`` and ``analyze --hta``, as processes that have a release of HTA, and without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import releases
from tests.cli.conftest import Run
from tests.releases import RELEASES, ROOT

TRACE = ROOT / "fixtures" / "traces" / "ddp_overlapped" / "full" / "rank0.json.gz"
STRAGGLER = ROOT / "fixtures" / "traces" / "ddp_straggler" / "full"
ANALYSES = ["temporal_breakdown", "idle_time_breakdown", "comm_comp_overlap", "queue_length", "critical_path"]


def process(release: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "syncscope", *map(str, arguments)]
    environment = releases.environment(release, COLUMNS="100", **more)
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False)


@pytest.mark.parametrize("release", RELEASES)
def test_every_analysis_is_shown_or_says_why_not(release: str, folder: Path) -> None:
    done = process(release, "hta", TRACE, "-o", "json=-", "-o", folder / "hta.txt")
    assert (done.returncode, done.stderr) == (0, f"wrote {folder / 'hta.txt'}\n")
    (trace,) = json.loads(done.stdout)["traces"]
    assert (trace["rank"], trace["hta"]["release"]) == (0, release.replace("==", " "))
    tables = {table["analysis"]: table for table in trace["hta"]["tables"]}
    assert list(tables) == ANALYSES
    for name in ANALYSES[:-1]:
        assert tables[name]["rows"], name
    path = tables["critical_path"]
    if path["why"] is None:
        assert sum(row[path["columns"].index("pctg_of_path")] for row in path["rows"]) == pytest.approx(100, abs=0.1)
    else:  # where pandas is new
        assert path["why"].startswith("HolisticTraceAnalysis 0.5.0 cannot run it with pandas 3")
    text = (folder / "hta.txt").read_text(encoding="utf-8")
    assert "the last profiler step left out, times rounded inwards to whole µs" in text
    assert all(name.replace("_", " ") in text for name in ANALYSES)


def test_the_last_step_and_the_nanoseconds_can_be_kept() -> None:
    release = RELEASES[-1]
    kept = json.loads(process(release, "hta", TRACE, "--format", "json", "--last-step").stdout)["traces"][0]["hta"]
    assert (kept["last_step_left_out"], kept["rounded"]) == (False, True)
    finer = process(release, "hta", TRACE, "--format", "json", HTA_DISABLE_NS_ROUNDING="1")
    exact = json.loads(finer.stdout)["traces"][0]["hta"]
    assert (exact["last_step_left_out"], exact["rounded"]) == (True, False)
    compute = [
        dict(zip(one["tables"][0]["columns"], one["tables"][0]["rows"][0], strict=True)) for one in (kept, exact)
    ]
    assert compute[0]["compute_time(us)"] > compute[1]["compute_time(us)"] > 0


def test_the_report_shows_them_with_the_option(folder: Path) -> None:
    done = process(RELEASES[-1], "analyze", TRACE, "--hta", "-o", folder / "report.json", "-o", folder / "page.html")
    assert (done.returncode, done.stderr) == (0, f"wrote {folder / 'report.json'}\nwrote {folder / 'page.html'}\n")
    assert "HTA\n  traceinsight 0.6.1" in done.stdout
    (info,) = json.loads((folder / "report.json").read_text(encoding="utf-8"))["traces"]
    assert [table["analysis"] for table in info["hta"]["tables"]] == ANALYSES
    assert "traceinsight 0.6.1" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["hta"], ["analyze", "--hta"]], ids=" ".join)
def test_without_hta_one_line_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    for name in ("hta", "hta.common.trace"):
        monkeypatch.setitem(sys.modules, name, None)
    done = run(*arguments, "waiting.json.gz")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: HTA is not installed: pip install 'syncscope[hta]'\n"


def test_a_trace_beyond_the_limit_is_3() -> None:
    done = process(RELEASES[-1], "hta", TRACE, "--max-size", "100K")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("inflates to more than the limit of 102,400 bytes\n")


def test_ranks_that_are_studied_twice_keep_their_tables(folder: Path) -> None:
    done = process(RELEASES[-1], "analyze", STRAGGLER, "--hta", "--format", "json", "-o", folder / "report.json")
    assert (done.returncode, done.stderr) == (0, f"wrote {folder / 'report.json'}\n")
    traces = json.loads((folder / "report.json").read_text(encoding="utf-8"))["traces"]
    assert [[table["analysis"] for table in info["hta"]["tables"]] for info in traces] == [ANALYSES] * 2


def test_ranks_in_parallel_have_the_tables_of_each() -> None:
    alone, beside = (
        process(RELEASES[-1], "hta", STRAGGLER, "--format", "json", "--jobs", jobs).stdout for jobs in ("1", "2")
    )
    assert beside == alone
    assert [trace["rank"] for trace in json.loads(beside)["traces"]] == [0, 1]


def test_a_file_that_is_no_trace_is_3_and_another_format_2(run: Run, folder: Path) -> None:
    (folder / "none.json").write_text("no", encoding="utf-8")
    unread = process(RELEASES[-1], "hta", "none.json")
    assert (unread.returncode, unread.stdout, unread.stderr) == (3, "", "error: none.json: is not JSON\n")
    done = run("hta", "waiting.json.gz", "-o", "waits.sarif")
    assert (done.code, done.err) == (2, "error: waits.sarif: hta writes text and json, not sarif\n")
    assert not os.path.exists("waits.sarif")
