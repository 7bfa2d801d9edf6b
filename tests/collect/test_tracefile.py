"""The trace file is torch's own export plus one key, written whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from msgspec import structs

from syncscope.collect.tracefile import NO_EVENTS, TraceFile
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording

RECORDING = Recording(format=FORMAT, version="0", steps=RecordedSteps(source="none"))


def written(file: TraceFile) -> bytes:
    return gzip.decompress(file.path.read_bytes())


@pytest.mark.parametrize("exported", ['{"traceEvents": []}', '{"a": {"b": "}"}, "traceEvents": []\n}\n  ', "{}"])
def test_the_key_is_added_and_the_rest_is_kept(exported: str, tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(exported.encode(), RECORDING)
    document = json.loads(written(file))
    assert document.pop("syncscope")["format"] == FORMAT
    assert document == json.loads(exported)


def test_quotes_in_the_recording_survive(tmp_path: Path) -> None:
    recording = Recording(format=FORMAT, version='"}\\', steps=RecordedSteps(source="none"), notes=('say "no"',))
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(NO_EVENTS, recording)
    assert json.loads(written(file))["syncscope"]["notes"] == ['say "no"']


def test_a_name_that_is_no_utf_8_is_written_as_far_as_it_goes(tmp_path: Path) -> None:
    steps = RecordedSteps(source="none")
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(NO_EVENTS, Recording(format=FORMAT, version="0", steps=steps, files=("bad\udcff.py", "größe.py")))
    assert json.loads(written(file))["syncscope"]["files"] == ["bad?.py", "größe.py"]


def test_the_machines_name_and_temporary_paths_are_blanked(tmp_path: Path) -> None:
    exported = (
        b'{"host_name": "secret-7", "traceEvents": [' + b'{"ph": "X"},' * 20000 + b'{}], "traceName": "/tmp/x\\"y"}'
    )
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(exported, RECORDING)
    text = written(file)
    assert b"secret-7" not in text and b"/tmp/x" not in text
    assert len(json.loads(text)["traceEvents"]) == 20001


def test_a_cut_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no complete trace"):
        TraceFile(tmp_path / "trace.json.gz").write(b'{"traceEvents": [', RECORDING)
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "deep" / "trace.json.gz")
    file.write(b'{"one": 1}', RECORDING)
    file.write(b'{"two": 2}', RECORDING)
    assert set(json.loads(written(file))) == {"two", "syncscope"}
    assert [entry.name for entry in file.path.parent.iterdir()] == ["trace.json.gz"]
    assert file.path.stat().st_mode & 0o777 == 0o644 & ~_umask()


def test_an_update_replaces_our_key_and_nothing_else(tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(b'{"events": ["' + b"x" * 3_000_000 + b'"]}', RECORDING)
    before = json.loads(written(file))
    for version in ("1", "2"):
        file.update(structs.replace(RECORDING, version=version))
        after = json.loads(written(file))
        assert after["syncscope"]["version"] == version and after["events"] == before["events"]
    file.move(tmp_path / "other.json.gz")
    file.update(RECORDING)
    assert json.loads(written(file)) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["other.json.gz"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(b'{"old": 1}', RECORDING)
    monkeypatch.setattr("os.replace", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
    for write in (lambda: file.write(b'{"new": 1}', RECORDING), lambda: file.update(RECORDING)):
        with pytest.raises(OSError, match="disk full"):
            write()
        assert "old" in json.loads(written(file))
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json.gz"]


def _umask() -> int:
    import os

    current = os.umask(0)
    os.umask(current)
    return current
