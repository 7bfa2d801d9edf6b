"""What no finding on a trace of others may say, held against the events themselves."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import syncscope
from benchmarks.foreign.critic import criticise, read_raw
from syncscope.schema.findings import Frame
from syncscope.schema.report import Report
from syncscope.trace import TraceError
from tests.builders import TraceBuilder
from tests.foreign import EXTRA, index


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace that reads a value behind some work of the device, and goes on late."""
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 4000)).op("aten::item", 20, 4100)
    builder.copy("DtoH", call=(30, 5), runs=(4010, 2), memory="pinned", bytes=4).stream_sync(40, 4000)
    return builder.launch("gemm", call=(9000, 5), runs=(9010, 4000)).write(tmp_path / "trace.json")


def criticised(path: Path, **fields: object) -> list[str]:
    """What is said of the report where its first finding about a wait has other ``fields``."""
    report = syncscope.analyze(path)
    read = next(finding for finding in report.findings if finding.rule == "SYN102")
    changed = msgspec.structs.replace(read, **fields)
    findings = tuple(changed if finding is read else finding for finding in report.findings)
    return list(criticise(msgspec.structs.replace(report, findings=findings), read_raw(path)))


def test_a_report_that_its_events_allow_is_not_criticised(path: Path) -> None:
    assert criticised(path) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"saving_high_ms_per_step": 9.0}, "saves 9.000 ms, and the device is without compute"),
        ({"likely_saving_ms_per_step": 4.9, "saving_high_ms_per_step": 4.9}, "likely saves 4.900 ms, and blocks for"),
        ({"severity": "error", "likely_saving_ms_per_step": 0.0, "saving_low_ms_per_step": 0.0}, "an error likely"),
        ({"fix": "hipMemcpyAsync"}, "names hipMemcpyAsync, and the calls of the trace begin with cuda"),
        ({"message": "{op} waits"}, "has {op} in it"),
        ({"at": Frame(file="<python>/threading.py", line=1, function="run")}, "is inside of <python>/threading.py"),
    ],
)
def test_what_the_events_do_not_allow_is_told(path: Path, fields: dict[str, object], said: str) -> None:
    assert any(said in one for one in criticised(path, **fields))


def test_what_ranks_exchange_is_no_compute(tmp_path: Path) -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 4000))
    builder.launch("void deep_ep::internode_ll::combine<3>(x)", call=(10, 5), runs=(4010, 2000))
    raw = read_raw(builder.write(tmp_path / "trace.json"))
    assert (raw.compute_ms, raw.busy_ms) == (4.0, 6.0)


def test_what_an_earlier_recording_left_over_is_not_of_the_device(tmp_path: Path) -> None:
    def busy_ms(until: float) -> float:
        builder = TraceBuilder().kernel("left over", 0, until).launch("gemm", call=(5000, 5), runs=(5010, 4000))
        return read_raw(builder.write(tmp_path / f"{until}.json")).busy_ms

    assert (busy_ms(2000), busy_ms(4900)) == (4.0, 8.9)


def test_figures_of_the_device_are_counted_again(path: Path) -> None:
    report = syncscope.analyze(path)
    (info,) = report.traces
    assert info.overlap is not None
    overlap = msgspec.structs.replace(info.overlap, device_busy_ms=9.0)
    wrong: Report = msgspec.structs.replace(report, traces=(msgspec.structs.replace(info, overlap=overlap),))
    assert "the device is busy for 8.002 ms, not 9.000" in list(criticise(wrong, read_raw(path)))


@pytest.mark.parametrize("name", [row["file"] for row in index()])
def test_no_finding_on_a_public_trace_is_criticised(name: str) -> None:
    trace = Path(EXTRA or "") / name
    try:
        report = syncscope.analyze(trace)
    except TraceError:
        pytest.skip("refused")
    assert list(criticise(report, read_raw(trace))) == []
