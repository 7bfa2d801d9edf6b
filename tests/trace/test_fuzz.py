"""Whatever a file holds: a trace or a ``TraceError``, and in good time."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscope.trace import Trace, TraceError, load, source
from tests.builders import TraceBuilder
from tests.trace.documents import documents

SCRAPS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e999", b"-", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b'"traceEvents": [', b'{"ph": "X"}', b'"ts": "x"', b"NaN", b"\\ud800", b'"args": []', b"[[[[[[[[",
]  # fmt: skip
BUILT = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).op("aten::add", 0, 9).json()


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A document with pieces taken out, put in and repeated; sometimes gzipped, and then spoiled again."""
    data = draw(st.one_of(documents().map(lambda made: made[0]), st.just(BUILT), st.binary(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        middle = draw(st.sampled_from([b"", data[begin:end] * 2, *SCRAPS]))
        data = data[:begin] + middle + data[end if draw(st.booleans()) else begin :]
    if draw(st.booleans()):
        data = gzip.compress(data, mtime=0)
        at = draw(st.integers(0, len(data)))
        data = draw(st.sampled_from([data, data[:at], data[:at] + b"\x00" + data[at + 1 :], data + data, data + b"x"]))
    return data


def read(data: bytes, size: int, folder) -> None:
    path = folder / "t.json"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source.Blocks.__init__, "__defaults__", (source.MAX_BYTES, size))
        try:
            found: Trace | str = load(path, workers=1)
        except TraceError as error:
            found = str(error)
    assert isinstance(found, Trace) or found.isprintable()


SIZES = st.sampled_from([1, 10, 100, 1 << 19])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spoiled(), SIZES)
def test_any_bytes_are_a_trace_or_a_trace_error(tmp_path, data, size):
    read(data, size, tmp_path)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spoiled(), SIZES)
def test_many_bytes_are_a_trace_or_a_trace_error(tmp_path, data, size):
    read(data, size, tmp_path)
