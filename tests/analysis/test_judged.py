"""What was found is kept as long as file, options and code are the same, and gives the same report."""

from __future__ import annotations

import multiprocessing
import os
import zlib

import msgspec
import pytest

from fixtures.labels import TRACES
from syncscope.analysis import judged, rank
from syncscope.analysis.analyze import analyze
from tests.builders import TraceBuilder

pytest.importorskip("platformdirs")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "syncscope"


@pytest.fixture
def path(tmp_path):
    builder = TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 50))
    return builder.stream_sync(10, 50).write(tmp_path / "t.json")


@pytest.fixture
def no_judging(monkeypatch):
    """Called, no trace can be judged any more."""

    def fail(*_):
        raise AssertionError("judged again")

    return lambda: monkeypatch.setattr(rank, "_analyze", fail)


def entry(folder):
    (found,) = folder.glob("*.judged")
    return found


@pytest.mark.parametrize("real", ["item_logging/trace.json.gz", "ddp_straggler/trace"])
def test_the_second_report_is_the_first(real, no_judging):
    first = analyze(TRACES / real, cache=True)
    no_judging()
    assert analyze(TRACES / real, cache=True).to_json() == first.to_json()


def test_nothing_is_kept_by_default(path, folder):
    analyze(path)
    assert not folder.exists()


@pytest.mark.parametrize("other", [{"bare_ms": 0.08}, {"select": ["SYN106"]}, {"max_bytes": 1 << 20}])
def test_other_options_are_judged_anew(path, other):
    analyze(path, cache=True)
    assert analyze(path, cache=True, **other).to_json() == analyze(path, **other).to_json()


def test_another_file_is_judged_anew(path):
    analyze(path, cache=True)
    TraceBuilder().step(0, 100).launch("gemm", call=(1, 2), runs=(5, 60)).stream_sync(10, 60).write(path)
    assert analyze(path, cache=True).to_json() == analyze(path).to_json()


def test_another_version_of_the_code_judges_anew(path, monkeypatch, folder):
    with monkeypatch.context() as older:
        older.setattr(judged, "_code", lambda: b"older")
        analyze(path, cache=True)
    analyze(path, cache=True)
    assert len(list(folder.glob("*.judged"))) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2] + b"\x00\xff" + data[len(data) // 2 + 2 :],
        lambda data: b"SYNCSCOPE 0 judged 0\n" + data,
    ],
    ids=["empty", "cut", "changed", "another"],
)
def test_a_damaged_entry_is_replaced(path, folder, spoil, no_judging):
    first = analyze(path, cache=True)
    entry(folder).write_bytes(spoil(entry(folder).read_bytes()))
    assert analyze(path, cache=True).to_json() == first.to_json()
    no_judging()
    assert analyze(path, cache=True).to_json() == first.to_json()


@pytest.mark.parametrize("results", [b"", b"{}", b"[" * 5000])
def test_an_entry_that_holds_no_results_is_ignored_even_with_its_checksum(path, folder, results):
    first = analyze(path, cache=True)
    data = entry(folder).read_bytes()
    fingerprint, asked, _, compared = msgspec.msgpack.decode(data[len(judged.MAGIC) + 4 :])
    body = msgspec.msgpack.encode([fingerprint, asked, results, compared])
    entry(folder).write_bytes(judged.MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)
    assert analyze(path, cache=True).to_json() == first.to_json()


def test_a_trace_that_cannot_be_read_is_not_kept(tmp_path, folder, path):
    (tmp_path / "broken.json").write_text("{}")
    report = analyze(path, tmp_path / "broken.json", cache=True)
    assert len(report.unread) == 1
    assert len(list(folder.glob("*.judged"))) == 1


def _both(path, cache, out):
    os.environ["XDG_CACHE_HOME"] = cache
    for _ in range(3):
        report = analyze(path, cache=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(report.to_json())


def test_two_processes_at_once_get_the_same(tmp_path):
    trace = TRACES / "item_logging" / "trace.json.gz"
    outs = [tmp_path / f"{number}.json" for number in range(2)]
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_both, args=(trace, str(tmp_path / "shared"), out)) for out in outs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    expected = analyze(trace).to_json()
    assert [out.read_text(encoding="utf-8") for out in outs] == [expected, expected]
