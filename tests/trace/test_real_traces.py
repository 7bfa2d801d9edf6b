"""Real files: the bundled fixtures, and others' traces where ``SYNCSCOPE_EXTRA_TRACES`` names their folder."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from fixtures.labels import CASES, TRACES, recordings
from syncscope.trace import Trace, TraceError, load, model
from tests.foreign import EXTRA, RUNTIME, index, raw_events

FILES = [file for case in CASES for file in recordings(case, "windows")]

WAITS = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize|hipMemcpyWithStream")


def check_tables(trace: Trace) -> None:
    """Every table has the columns and types that are documented, in order of time."""
    for name, documented in model.TABLES.items():
        table = getattr(trace, name)
        assert [(column, str(dtype)) for column, dtype in table.dtypes.items()] == list(documented.types.items()), name
        assert table["ts"].is_monotonic_increasing
        assert (table["end"] - table["ts"] == table["dur"]).all()
        assert (table["dur"] >= 0).all()


def check_against_raw(trace: Trace, path: Path) -> Counter[str]:
    """Calls are those of the raw JSON, and their times too; the waits among them."""
    calls = [event for event in raw_events(path) if str(event.get("cat")).lower() in RUNTIME]
    raw = Counter(event["name"] for event in calls)
    assert Counter(trace.runtime["name"]) == raw
    lengths = sorted(round(event.get("dur", 0) * 1000) for event in calls)
    assert sorted(trace.runtime["dur"]) == lengths
    return Counter({name: count for name, count in raw.items() if WAITS.fullmatch(name)})


# ------------------------------------------------------------------------------------------------- fixtures


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_its_trace(case):
    assert recordings(case, "windows")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TRACES)))
def test_a_fixture_has_as_many_calls_and_waits_in_the_trace_as_in_its_json(path):
    trace = load(path)
    check_tables(trace)
    assert sum(check_against_raw(trace, path).values()) > 0  # at least the profiler's own
    assert trace.warnings == ()
    assert trace.recording is not None
    boundaries = trace.recording.steps.boundaries_ns
    assert len(trace.steps) == len(boundaries) - 1 in (2, 3)  # 2 where the program ended before the third was over
    inside = (trace.runtime["ts"] >= trace.steps["ts"].min()) & (trace.runtime["end"] <= trace.steps["end"].max())
    assert inside.any()  # the recording's clock is the trace's


# -------------------------------------------------------------------------------------------- others' traces

REFUSED = {
    "not_a_chrome_trace": "it has no list of traceEvents",
    "MTIA": "holds activity of a device that is not supported (mtia_ccp_events, mtia_runtime)",
    "CPU-only": "holds no ",
}


WITH_A_TAIL = {"HolisticTraceAnalysis__amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz"}
"""Traces whose last step is what the profiler recorded behind the last ``step()``."""


def count(row: dict[str, str], column: str) -> int:
    return int(row[column] or 0)


@pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")
def test_the_folder_of_others_traces_is_indexed():
    assert len(index()) > 20


@pytest.mark.parametrize("row", index(), ids=lambda row: row["file"])
def test_a_foreign_trace_is_read_in_full_or_refused_with_its_reason(row):
    path = Path(EXTRA or "") / row["file"]
    reason = REFUSED.get(row["notes"]) or REFUSED.get(row["vendor"])
    if reason is not None:
        with pytest.raises(TraceError) as caught:
            load(path)
        assert reason in caught.value.reason
        return
    trace = load(path)
    check_tables(trace)
    check_against_raw(trace, path)
    assert trace.recording is None
    assert [w for w in trace.warnings if "does not say when it begins" not in w] == []
    kinds = Counter(trace.device["kind"])
    old_annotations = len(trace.annotations) if row["torch_guess"].startswith("1.8") else 0
    assert len(trace.ops) + old_annotations == count(row, "n_cpu_op")
    assert len(trace.frames) == count(row, "n_python_function")
    assert len(trace.runtime) == count(row, "n_runtime")
    assert (kinds["kernel"], kinds["memcpy"]) == (count(row, "n_kernel"), count(row, "n_memcpy"))
    assert len(trace.sync) == count(row, "n_cuda_sync")
    if trace.step_source == "profiler":  # a mark without work at the end is no step
        assert count(row, "n_steps") - len(trace.steps) == (row["file"] in WITH_A_TAIL)
    else:
        assert count(row, "n_steps") == 0
    calls = Counter(trace.runtime["name"])
    listed = dict(item.rsplit(":", 1) for item in row["sync_runtime"].split("|") if item)
    assert {name: str(calls[name]) for name in listed} == listed
    if row["vendor"] == "NVIDIA":  # ROCm's names are corrected by the calls
        copies = trace.device[trace.device["kind"] == "memcpy"]
        assert set(zip(copies["direction"], copies["memory"], strict=True)) == expected_copies(row["memcpy_names"])


def expected_copies(names: str) -> set[tuple[str, str]]:
    """``Memcpy HtoD (Pageable -> Device):12|…`` in the index's own words."""
    found = set()
    for direction, source, target in re.findall(r"Memcpy (\w+) \((\w+) -> (\w+)\)", names):
        host = {"H": source, "D": target}[direction[0]]
        found.add((direction, "" if direction == "DtoD" else host.lower()))
    return found


@pytest.mark.parametrize("row", index(), ids=lambda row: row["file"])
def test_calls_launch_before_their_kernels_start_in_most_foreign_traces(row):
    if row["notes"] or row["vendor"] not in ("NVIDIA", "AMD"):
        pytest.skip("refused")
    trace = load(Path(EXTRA or "") / row["file"])
    calls = trace.runtime.drop_duplicates("correlation").set_index("correlation")["ts"]
    joined = trace.device[trace.device["correlation"].isin(calls.index)]
    early = joined["ts"].to_numpy() < calls.loc[joined["correlation"]].to_numpy()
    assert len(joined) > 0
    assert early.mean() < 0.02
