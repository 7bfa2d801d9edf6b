"""Read in pieces, a document gives the same trace as read as a whole, wherever the pieces are cut."""

from __future__ import annotations

import json
import os
import tempfile
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.trace import TraceError, source
from syncscope.trace.decoding import pieces
from syncscope.trace.decoding.pieces import Buffer, Pieces, Span, structure
from syncscope.trace.reader import read_bytes, read_pieces
from syncscope.trace.source import PiecesFailed
from syncscope.trace.tables.build import build_trace
from tests.builders import TraceBuilder
from tests.same import assert_same
from tests.trace.documents import documents

SIZES = st.sampled_from([1, 2, 7, 30, 100, 333, 1000, 10_000])


def blocks(data: bytes, size: int):
    return (data[start : start + size] for start in range(0, len(data), size))


def in_pieces(data: bytes, size: int):
    return build_trace(read_pieces(blocks(data, size), "t.json"), "t.json")


def in_spans(data: bytes, size: int):
    """As a file is read, whose pieces are mostly spans."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return build_trace(read_pieces(source.Blocks(file.name, size=size), "t.json"), "t.json")


EITHER = pytest.mark.parametrize("reading", [in_pieces, in_spans])


def hold_to_the_whole(data: bytes, size: int, reading) -> None:
    try:
        found = reading(data, size)
    except PiecesFailed:
        # Only events may hold what is no JSON; elsewhere it is left to the whole.
        assert b"NaN" in data or b"Infinity" in data
        return
    assert_same(found, read_bytes(data, "t.json"))


@EITHER
@given(document=documents(), size=SIZES)
def test_pieces_hold_what_the_document_holds(reading, document, size):
    hold_to_the_whole(document[0], size, reading)


@EITHER
@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(document=documents(), size=SIZES)
def test_many_documents_are_the_same_in_pieces(reading, document, size):
    hold_to_the_whole(document[0], size, reading)


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("size", [10, 1000, 100_000])
@EITHER
def test_bare_numbers_that_are_not_json_are_read_in_pieces_too(reading, size, token):
    data = trace_json().replace(b'"dur"', b'"x": %b, "dur"' % token)
    assert_same(reading(data, size), read_bytes(data, "t.json"))


@EITHER
@given(document=documents(), size=SIZES, data=st.data())
def test_a_damaged_document_is_refused_or_read_as_a_whole_would_be(reading, document, size, data):
    text, _ = document
    at = data.draw(st.integers(0, len(text)))
    spoiled = text[:at] + data.draw(st.sampled_from([b"", b"]", b'"', b"}", b",", b"\\", b"\xff"])) + text[at + 1 :]
    try:
        found = outcome(lambda: reading(spoiled, size))
    except PiecesFailed:
        return
    whole = outcome(lambda: read_bytes(spoiled, "t.json"))
    if isinstance(whole, str) or isinstance(found, str):
        assert found == whole
    else:
        # Bytes that are no text, in what nobody reads, are met only where something else is damaged.
        unread = tuple(warning for warning in whole.warnings if warning in found.warnings or "not UTF-8" not in warning)
        assert_same(found, msgspec.structs.replace(whole, warnings=unread))


def outcome(read):
    """What is read, or why it is not."""
    try:
        return read()
    except TraceError as error:
        return error.reason


def trace_json(**top) -> bytes:
    builder = TraceBuilder().step(0, 100)
    for number in range(50):
        builder.launch(f"kernel {number}", call=(2.0 * number, 1), runs=(2.0 * number + 0.5, 1))
    builder.top |= top
    return builder.json()


@pytest.mark.parametrize("size", [1, 50, 1000, 1_000_000])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data,
        lambda data: b"\xef\xbb\xbf \r\n" + data,
        lambda data: json.dumps(json.loads(data)["traceEvents"]).encode(),
        lambda data: json.dumps(json.loads(data), indent=3).replace("\n", "\r\n").encode(),
        lambda data: data.replace(b'"kernel 7"', b'"]}, {\\"ph\\": \\"}\\\\"'),
        lambda data: data.replace(b'"args":', b'"before": [[{"ph": "X"}, {"ph": "X"}], [{}]], "args":'),
        lambda data: data.replace(b'"traceEvents": [', b'"traceEvents": [,'),
    ],
    ids=["as it is", "byte order mark", "a bare list", "pretty", "brackets in a name", "nested events", "comma"],
)
@EITHER
def test_layouts(reading, size, change):
    data = change(trace_json(after=[{"a": [{"b": "]"}, {}]}]))
    assert_same(reading(data, size), read_bytes(data, "t.json"))


@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-20],
        lambda data: data[:-1] + b', "traceEvents": []}',
        lambda data: data + b"{}",
        lambda data: b'{"a": {"traceEvents": [{}]}, ' + data[1:],
        lambda data: data.replace(b'"kernel 7"', b'"kernel "7"'),
        lambda data: data.replace(b'"kernel 7"', b"7"),
        lambda data: b'{"traceEvents": []}',
        lambda data: b"[]",
        lambda data: b"{}",
        lambda data: b'"text"',
    ],
    ids=["cut", "twice", "text behind", "nested", "quote", "type", "no events", "empty list", "empty", "text"],
)
@EITHER
def test_a_document_that_cannot_be_cut_is_refused(reading, size, change):
    with pytest.raises(PiecesFailed):
        reading(change(trace_json()), size)


def test_only_the_first_pieces_are_searched_character_by_character(monkeypatch):
    looked = []

    def noted(text):
        looked.append(text)
        return structure(text)

    monkeypatch.setattr(pieces, "structure", noted)
    data = trace_json()
    assert len(list(Pieces(blocks(data, 1000), "t.json"))) > 10
    assert len(looked) <= 3


def whole_text(given: Pieces) -> list[memoryview]:
    """The pieces of a text that is in no file."""
    return [piece for piece in given if isinstance(piece, memoryview)]


def test_what_separates_the_events_is_seen_from_the_first_of_a_long_text(monkeypatch):
    looked = []

    def noted(text):
        looked.append(len(text))
        return structure(text)

    monkeypatch.setattr(pieces, "structure", noted)
    monkeypatch.setattr(pieces, "ENOUGH", 2000)
    data = trace_json()
    given = b"".join(whole_text(Pieces(blocks(data, len(data)), "t.json")))
    assert given.count(b"kernel ") == data.count(b"kernel ")
    assert max(looked) <= 2000


@pytest.mark.parametrize("enough", [1, 50, 150, 400])
def test_a_text_whose_first_bytes_do_not_tell_is_looked_at_as_a_whole(monkeypatch, enough):
    monkeypatch.setattr(pieces, "ENOUGH", enough)
    data = trace_json()
    given = b"".join(whole_text(Pieces(blocks(data, 1000), "t.json")))
    assert given.count(b"kernel ") == data.count(b"kernel ")


def test_most_pieces_of_a_plain_file_are_spans(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(trace_json())
    text = source.Blocks(str(path), size=1000)
    given = [piece for piece in Pieces(text, "t.json") if isinstance(piece, Span)]
    assert len(given) > 10
    assert all(before.end + 1 == after.start for before, after in pairwise(given))


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(trace_json())
    text = source.Blocks(str(path), size=1000)
    with pytest.raises(PiecesFailed):  # noqa: PT012
        for piece in Pieces(text, "t.json"):
            if isinstance(piece, Span):
                os.truncate(path, piece.start + 10)
                assert text.file is not None
                Buffer().read(text.file, piece)


def test_an_event_that_is_too_long_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(pieces, "LONGEST", 10_000)
    path = tmp_path / "t.json"
    path.write_bytes(trace_json().replace(b'"kernel 30"', b'"%b"' % (b"k" * 20_000)))
    with pytest.raises(TraceError, match="more than 10,000 bytes"):
        list(Pieces(source.Blocks(str(path), size=1000), "t.json"))


def test_a_file_whose_layout_changes_in_the_middle_is_read_in_pieces(monkeypatch, tmp_path):
    monkeypatch.setattr(pieces, "LONGEST", 10_000)
    document = json.loads(trace_json())
    events = document["traceEvents"] * 4
    last = len(events) - 5
    document["traceEvents"] = [
        event if number < 20 or number > last else {"other": 1, **event} for number, event in enumerate(events)
    ]
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(document).encode())
    assert path.stat().st_size > 30_000
    found = build_trace(read_pieces(source.Blocks(str(path), size=500), "t.json"), "t.json")
    assert_same(found, read_bytes(path.read_bytes(), "t.json"))


def test_a_file_that_fails_while_it_is_read_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(trace_json())
    read, calls = os.pread, list[int]()

    def given(most):
        left = iter(range(most))

        def failing(*args):
            if next(left, None) is None:
                raise OSError(5, "Input/output error")
            calls.append(1)
            return read(*args)

        monkeypatch.setattr(os, "pread", failing)
        return list(Pieces(source.Blocks(str(path), size=1000), "t.json"))

    assert len(given(1000)) > 10
    for most in range(len(calls)):
        with pytest.raises(PiecesFailed):
            given(most)


def test_an_endless_event_is_refused_before_it_fills_the_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(pieces, "LONGEST", 10_000)
    endless = (b" " * 1000 for _ in range(1_000_000))
    with pytest.raises(TraceError, match="more than 10,000 bytes"):
        list(Pieces(iter([b'{"traceEvents": [{"name": "', *[next(endless) for _ in range(100)]]), "t.json"))
    assert len(list(endless)) > 900_000


@given(st.lists(st.one_of(st.integers(), st.text(), st.lists(st.text())), min_size=1), SIZES)
def test_structure_finds_the_commas_between_items_only(items, spaces):
    text = json.dumps(items, indent=spaces % 3, ensure_ascii=False).encode()
    end, commas = structure(text[1:] + b', "after": [1, 2]')
    assert end == len(text) - 2
    assert len(commas) == len(items) - 1
    bounds = [-1, *commas.tolist(), end]
    assert [json.loads(text[1:][a + 1 : b]) for a, b in pairwise(bounds)] == items


def test_blocks_of_gzip_are_those_of_the_file(tmp_path):
    plain = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).write(tmp_path / "t.json")
    packed = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).write(tmp_path / "t.json.gz")
    for size in (1, 10, 1000):
        assert b"".join(source.Blocks(str(packed), size=size)) == plain.read_bytes()
