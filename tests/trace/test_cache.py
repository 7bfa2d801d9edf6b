"""A cached trace equals the one that was read, as long as its file does not change."""

from __future__ import annotations

import os
import sys
import zlib

import msgspec
import numpy as np
import pytest

from fixtures.labels import TRACES
from syncscope.trace import TraceError, cache, entries, load, reader
from syncscope.trace.extras import MissingExtra
from tests.builders import TraceBuilder
from tests.same import assert_same

pytest.importorskip("platformdirs")
REAL = sorted(TRACES.glob("[a-e]*/*.json.gz"))[:8]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "syncscope"


@pytest.fixture
def path(tmp_path):
    return trace("kernel").write(tmp_path / "t.json")


@pytest.fixture
def no_reading(monkeypatch):
    """Called, the files of traces can no longer be read."""
    return lambda: monkeypatch.setattr(reader, "read_file", None)


def trace(kernel: str) -> TraceBuilder:
    return TraceBuilder().step(0, 100).launch(kernel, call=(1, 2), runs=(5, 5)).op("aten::add", 0, 4)


@pytest.mark.parametrize("real", REAL, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_cached_trace_equals_the_one_that_was_read(real, no_reading):
    first = load(real, cache=True)
    no_reading()
    assert_same(load(real, cache=True), first)


def test_a_cached_trace_without_steps_or_frames_equals_the_one_that_was_read(tmp_path, no_reading):
    path = TraceBuilder().launch("", call=(1, 2), runs=(5, 5)).write(tmp_path / "t.json.gz")
    first = load(path, cache=True)
    no_reading()
    assert_same(load(path, cache=True), first)


def test_nothing_is_cached_by_default(path, folder):
    load(path)
    assert not folder.exists()


@pytest.mark.parametrize("same_time", [True, False])
def test_a_file_that_changed_is_read_again(path, same_time):
    load(path, cache=True)
    time = path.stat().st_mtime_ns
    trace("KERNEL").write(path)  # of the same length
    if same_time:
        os.utime(path, ns=(time, time))
    assert list(load(path, cache=True).device["name"]) == ["KERNEL"]


def test_a_file_with_another_time_is_read_again(path, no_reading):
    load(path, cache=True)
    os.utime(path, ns=(1, 1))
    no_reading()
    with pytest.raises(TypeError):
        load(path, cache=True)


def test_an_entry_of_another_version_is_replaced(path, monkeypatch, no_reading):
    with monkeypatch.context() as older:
        older.setattr(cache, "MAGIC", b"SYNCSCOPE trace 0\n")
        first = load(path, cache=True)
    assert cache.CacheEntry(str(path)).load("t.json") is None
    assert_same(load(path, cache=True), first)
    no_reading()
    assert_same(load(path, cache=True), first)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:30],
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2] + b"\x00\xff" + data[len(data) // 2 + 2 :],
        lambda data: b"x" * len(data),
    ],
    ids=["empty", "head", "cut", "changed", "another"],
)
def test_a_damaged_entry_is_replaced(path, folder, spoil, no_reading):
    first = load(path, cache=True)
    (kept,) = folder.iterdir()
    kept.write_bytes(spoil(kept.read_bytes()))
    assert_same(load(path, cache=True), first)
    no_reading()
    assert_same(load(path, cache=True), first)


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff" * 1000])
def test_an_entry_that_holds_no_trace_is_ignored_even_with_its_checksum(path, folder, body):
    first = load(path, cache=True)
    (kept,) = folder.iterdir()
    kept.write_bytes(cache.MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)
    assert_same(load(path, cache=True), first)


def test_a_folder_that_cannot_be_written_is_no_error(path, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file" / name)
    assert_same(load(path, cache=True), load(path))


def test_the_entries_not_used_for_the_longest_time_are_deleted(tmp_path, folder, monkeypatch, no_reading):
    paths = [trace(f"kernel {number}").write(tmp_path / f"{number}.json") for number in range(4)]
    for number, path in enumerate(paths[:3]):
        load(path, cache=True)
        os.utime(max(folder.iterdir(), key=lambda file: file.stat().st_mtime), (number, number))
    load(paths[0], cache=True)  # used again
    monkeypatch.setattr(entries, "LIMIT", 2 * next(folder.iterdir()).stat().st_size + 100)
    load(paths[3], cache=True)
    assert len(list(folder.iterdir())) == 2
    no_reading()
    load(paths[0], cache=True)
    load(paths[3], cache=True)


def test_a_trace_that_cannot_be_read_is_not_cached(tmp_path, folder):
    path = tmp_path / "t.json"
    path.write_text("{}")
    with pytest.raises(TraceError):
        load(path, cache=True)
    assert not folder.exists()


def test_without_the_extra_the_cache_says_so(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(MissingExtra, match=r"^platformdirs is not installed: pip install 'syncscope\[cache\]'$"):
        load(path, cache=True)
    load(path)


@pytest.mark.parametrize("numbers", [[], [0], [-1, 5], [-(2**63), 2**63 - 1], [2**40, -1], [255, 0], [128, -128]])
def test_a_column_is_kept_as_narrow_as_its_numbers_and_nothing_is_lost(numbers):
    kept = cache._column(np.array(numbers, dtype=np.int64))
    assert np.frombuffer(zlib.decompress(kept.data), dtype=kept.type).tolist() == numbers
    if max(map(abs, numbers), default=0) < 128:
        assert kept.type == "|i1"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda columns: columns.pop("tid"),
        lambda columns: columns.update(tid=cache._column(np.arange(7))),
        lambda columns: columns.update(name=cache._column(np.array([5]), ["aten::add"])),
        lambda columns: columns.update(name=cache._column(np.array([0]))),
        lambda columns: setattr(columns["tid"], "type", "<f8"),
        lambda columns: setattr(columns["tid"], "data", b"no"),
    ],
    ids=["lost", "longer", "code", "names", "type", "data"],
)
def test_an_entry_whose_columns_do_not_fit_is_ignored(path, folder, spoil, no_reading):
    first = load(path, cache=True)
    (kept,) = folder.iterdir()
    entry = msgspec.msgpack.decode(kept.read_bytes()[len(cache.MAGIC) + 4 :], type=cache._Kept)
    spoil(entry.tables["ops"])
    body = msgspec.msgpack.encode(entry)
    kept.write_bytes(cache.MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)
    assert_same(load(path, cache=True), first)
    no_reading()
    assert_same(load(path, cache=True), first)
