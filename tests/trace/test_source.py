import gzip
import os
import socket

import pytest

from syncscope.trace import TraceError, load
from syncscope.trace.source import inflate
from tests.builders import TraceBuilder


def small():
    return TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 20)).stream_sync(6, 30)


def refusal(path):
    with pytest.raises(TraceError) as caught:
        load(path)
    assert caught.value.path == str(path)
    assert str(caught.value).endswith(f": {caught.value.reason}")
    assert str(caught.value).isprintable()
    return caught.value.reason


def test_a_trace_error_is_a_value_error_that_names_file_and_reason():
    error = TraceError("a.json", "is empty")
    assert isinstance(error, ValueError)
    assert (str(error), error.path, error.reason) == ("a.json: is empty", "a.json", "is empty")


def test_a_trace_error_stays_one_line_whatever_the_name():
    assert str(TraceError("a\n\x1b[31m.json", "is empty")) == "a\ufffd\ufffd[31m.json: is empty"


def test_a_missing_file_is_refused(tmp_path):
    assert refusal(tmp_path / "none.json") == "does not exist"


def test_a_folder_is_refused(tmp_path):
    assert refusal(tmp_path) == "is a folder, not a trace file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    assert refusal(tmp_path / "pipe.json") == "is not a regular file"


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")
def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.json")
        assert refusal("s.json") == "is not a regular file"


def test_an_unreadable_file_is_refused(tmp_path, monkeypatch):
    path = small().write(tmp_path / "t.json")

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("syncscope.trace.source.open", deny, raising=False)
    assert refusal(path) == "cannot be read: permission denied"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("written", [False, True])
def test_a_file_that_calls_itself_regular_and_waits_for_what_comes_is_refused_at_once(tmp_path, monkeypatch, written):
    """As ``/proc/kmsg`` does."""
    os.mkfifo(tmp_path / "t.json")
    monkeypatch.setattr("syncscope.trace.source.stat.S_ISREG", lambda mode: True)
    writer = os.open(tmp_path / "t.json", os.O_RDWR) if written else None
    assert refusal(tmp_path / "t.json") == "is empty"
    if writer is not None:
        os.close(writer)


def test_a_name_that_no_file_can_have_is_refused():
    assert refusal("a\0b") == "is not a possible file name"
    assert refusal("x" * 5000).startswith("cannot be read: ")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "t.json").write_bytes(b"")
    assert refusal(tmp_path / "t.json") == "is empty"


def test_an_empty_document_in_gzip_is_refused(tmp_path):
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b""))
    assert refusal(tmp_path / "t.json.gz") == "is empty"


def test_gzip_is_known_by_its_content_not_its_suffix(tmp_path):
    (tmp_path / "zipped.json").write_bytes(gzip.compress(small().json()))
    (tmp_path / "plain.json.gz").write_bytes(small().json())
    for name in ("zipped.json", "plain.json.gz"):
        trace = load(tmp_path / name)
        assert len(trace.runtime) == 2
        assert trace.warnings == ()


def test_gzip_of_several_members_is_read_whole(tmp_path):
    data = small().json()
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]) + b"\0\0\0\0")
    assert len(load(path).runtime) == 2


def test_gzip_cut_short_is_read_up_to_the_cut_and_says_so(tmp_path):
    builder = TraceBuilder()
    for start in range(2000):
        builder.stream_sync(start * 10, 5)
    data = gzip.compress(builder.json())
    path = tmp_path / "t.json.gz"
    path.write_bytes(data[: len(data) // 2])
    trace = load(path)
    assert 0 < len(trace.runtime) < 2000
    assert trace.warnings[0] == "the gzip data is cut short: only a part could be inflated"
    assert trace.warnings[1] == f"the file is cut short: the {len(trace.runtime):,} events before the cut were read"


def test_gzip_damaged_in_the_middle_is_read_up_to_the_damage(tmp_path):
    noise = TraceBuilder()
    for start in range(2000):
        noise.call("cudaStreamSynchronize", start * 10 + os.urandom(1)[0] / 1000, 5)
    data = bytearray(gzip.compress(noise.json()))
    data[-6] ^= 0xFF  # the checksum
    path = tmp_path / "t.json.gz"
    path.write_bytes(data)
    trace = load(path)
    assert len(trace.runtime) > 1900
    assert trace.warnings[0] == "the gzip data is damaged: only a part could be inflated"


@pytest.mark.parametrize("length", [2, 5, 10, 12])
def test_gzip_with_nothing_to_recover_is_refused(tmp_path, length):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(small().json())[:length])
    assert refusal(path) == "is gzip that is cut short: nothing could be inflated"


def test_a_gzip_bomb_stops_at_the_limit():
    bomb = gzip.compress(b"[" + b" " * 50_000_000)
    with pytest.raises(TraceError, match="inflates to more than the limit of 1,000,000 bytes"):
        inflate(bomb, "bomb.json.gz", max_bytes=1_000_000)


def test_the_limit_holds_for_plain_files_too(tmp_path):
    path = small().write(tmp_path / "t.json")
    with pytest.raises(TraceError, match="more than the limit of 100"):
        load(path, max_bytes=100)


def test_a_damaged_file_beyond_its_limit_is_refused(tmp_path):
    path = tmp_path / "t.json"
    data = small().json()
    path.write_bytes(data[:-10])
    assert load(path, max_bytes=4 * len(data)).warnings
    with pytest.raises(TraceError, match=r"is damaged, and holds more than \d+ bytes, the limit for a damaged file"):
        load(path, max_bytes=2 * len(data))
