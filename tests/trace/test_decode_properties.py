"""Whatever the layout of the file, the same events give the same tables."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from syncscope.trace import TraceError
from syncscope.trace.reader import read_bytes
from tests.trace.documents import TABLES, documents


@given(documents())
def test_every_event_becomes_its_row_whatever_the_layout(document):
    data, expected = document
    trace = read_bytes(data, "t.json")
    found: Counter[tuple[str, str, int, int]] = Counter()
    for table in sorted(set(TABLES.values())):
        frame = getattr(trace, table)
        found.update((table, *row) for row in zip(frame["name"], frame["ts"], frame["dur"], strict=True))
    assert found == expected
    assert not [warning for warning in trace.warnings if "skipped" in warning or "cut" in warning]


@given(documents(), st.data())
def test_a_cut_never_invents_a_row(document, data):
    text, whole = document
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        trace = read_bytes(cut, "t.json")
    except TraceError:
        return
    expected = {row[:3] for row in whole}
    for table in sorted(set(TABLES.values())):
        frame = getattr(trace, table)
        rows = zip(frame["name"], frame["ts"], strict=True)
        # A begin event may have lost its end, and a character of a name its last bytes.
        assert {(table, *row) for row in rows if "\ufffd" not in row[0]} <= expected
