"""What most events are decoded to makes the same columns as events of any kind."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from syncscope.trace.decoding.columns import Part, Strings, split
from syncscope.trace.decoding.decode import decode_piece
from syncscope.trace.decoding.events import TABLE_OF, Args, Event, complete_events

COMPLETE = msgspec.json.Decoder(complete_events())
EVENTS = msgspec.json.Decoder(list[Event])
TEXTS = {"dtype": "Float", "copy_kind": "HtoD", "source_kind": "Pinned", "collective": "allreduce", "group": "0"}


def args() -> dict[str, object]:
    """Every argument that is read, each another number or a text."""
    fields = enumerate(msgspec.structs.fields(Args), start=3)
    return {one.encode_name: TEXTS.get(one.name, number) for number, one in fields}


def event(category: str, **keys: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": "n", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, "args": args()} | keys


def arrow(category: str) -> dict[str, object]:
    return {"ph": "s", "id": 7, "pid": 1, "tid": 2, "ts": 1.5, "cat": category, "name": category}


def assert_same_part(found: Part, expected: Part) -> None:
    assert list(found.tables) == list(expected.tables)
    for table, columns in expected.tables.items():
        assert list(found.tables[table]) == list(columns)
        for name, column in columns.items():
            np.testing.assert_array_equal(found.tables[table][name], column, err_msg=f"{table}.{name}")
    assert (found.events, found.untimed, found.halves) == (expected.events, expected.untimed, expected.halves)
    assert found.metadata == expected.metadata
    assert found.capitalised == expected.capitalised


@pytest.mark.parametrize("category", TABLE_OF)
@pytest.mark.parametrize("keys", [{}, {"args": {}}, {"args": None}, {"dur": None}], ids=str)
def test_every_category_makes_the_same_columns(category, keys):
    data = json.dumps([arrow("ac2g"), event(category, **keys), arrow("fwdbwd")]).encode()
    complete = COMPLETE.decode(data)
    assert not isinstance(complete[1], Event)
    assert_same_part(split(complete, Strings()), split(EVENTS.decode(data), Strings()))


@pytest.mark.parametrize(
    "other",
    [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
        event("cpu_op", ph="B"),
        event("cpu_op", ph="i"),
        event("something else"),
        event("Operator"),
        {"ph": "X", "name": "no category", "ts": 1, "dur": 1},
    ],
    ids=lambda other: f"{other['ph']} {other.get('cat')}",
)
def test_a_piece_that_holds_anything_else_is_read_too(other):
    data = json.dumps([event("cpu_op"), other, event("kernel")]).encode()
    with pytest.raises(msgspec.ValidationError):
        COMPLETE.decode(data)
    assert_same_part(split(decode_piece(data), Strings()), split(EVENTS.decode(data), Strings()))
