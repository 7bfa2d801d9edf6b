"""The trace file is torch's own export plus one key, written whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from syncscope.collect.tracefile import splice, write_trace
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording

RECORDING = Recording(format=FORMAT, version="0", steps=RecordedSteps(source="none"))


@pytest.mark.parametrize("exported", ['{"traceEvents": []}', '{"a": {"b": "}"}, "traceEvents": []\n}\n  ', "{}"])
def test_the_key_is_added_and_the_rest_is_kept(exported: str) -> None:
    spliced = json.loads(splice(exported.encode(), RECORDING))
    assert spliced.pop("syncscope")["format"] == FORMAT
    assert spliced == json.loads(exported)


def test_quotes_in_the_recording_survive() -> None:
    recording = Recording(format=FORMAT, version='"}\\', steps=RecordedSteps(source="none"), notes=('say "no"',))
    assert json.loads(splice(b'{"traceEvents": []}', recording))["syncscope"]["notes"] == ['say "no"']


def test_the_machines_name_and_temporary_paths_are_blanked() -> None:
    exported = (
        b'{"host_name": "secret-7", "traceEvents": [' + b'{"ph": "X"},' * 20000 + b'{}], "traceName": "/tmp/x\\"y"}'
    )
    text = splice(exported, RECORDING)
    assert b"secret-7" not in text and b"/tmp/x" not in text
    assert len(json.loads(text)["traceEvents"]) == 20001


def test_a_cut_export_is_refused() -> None:
    with pytest.raises(ValueError, match="no complete trace"):
        splice(b'{"traceEvents": [', RECORDING)


def test_writing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trace.json.gz"
    write_trace(path, b"one")
    write_trace(path, b"two")
    assert gzip.decompress(path.read_bytes()) == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["trace.json.gz"]
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, b"old")
    monkeypatch.setattr("os.replace", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_trace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def _umask() -> int:
    import os

    current = os.umask(0)
    os.umask(current)
    return current
