"""Damaged files: everything that can be read is, and what was lost is said."""

import json

import pytest

from syncscope.trace import Trace, TraceError
from syncscope.trace.reader import read_bytes
from tests.builders import BASE_NS, TraceBuilder


def ten_waits():
    builder = TraceBuilder(rank=3, world_size=4)
    for start in range(0, 100, 10):
        builder.stream_sync(start, 5)
    return builder


def starts(trace: Trace) -> list[int]:
    return trace.runtime["ts"].tolist()


ALL = list(range(0, 100_000, 10_000))


def in_kinetos_layout(builder):
    """As Kineto prints it: the metadata first, one event in three lines."""
    document = builder.document()
    events = document.pop("traceEvents")
    head = json.dumps(document, indent=2)[:-2]
    body = ",\n".join("  {\n    " + json.dumps(event)[1:-1] + "\n  }" for event in events)
    return f'{head},\n  "traceEvents": [\n{body}\n  ],\n  "traceName": "trace.json"\n}}'


def replaced(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


WHOLE = in_kinetos_layout(ten_waits())


def read(text):
    return read_bytes(text if isinstance(text, bytes) else text.encode(), "t.json")


def test_the_undamaged_file_has_no_warning():
    trace = read(WHOLE)
    assert (starts(trace), trace.rank, trace.warnings) == (ALL, 3, ())


def test_a_file_cut_in_an_event_is_read_up_to_the_cut():
    cut = WHOLE[: WHOLE.rindex('"dur"') + 2]
    trace = read(cut)
    assert starts(trace) == ALL[:9]
    assert (trace.base_ns, trace.rank) == (BASE_NS, 3)
    assert trace.warnings == ("the file is cut short: the 9 events before the cut were read",)


@pytest.mark.parametrize("minified", [False, True])
def test_a_file_cut_anywhere_gives_its_complete_events_or_a_reason(minified):
    text = json.dumps(json.loads(WHOLE), separators=(",", ":")) if minified else WHOLE
    first_end = text.index("}}" if minified else "\n  }", text.index('"ph"')) + 4
    events_end = text.rindex("]")
    positions = [round(len(text) * part / 61) for part in range(1, 61)] + [len(text) - 1, len(text) - 2]
    seen = set()
    for position in positions:
        cut = text[:position]
        if position <= first_end:
            with pytest.raises(TraceError, match="is cut short before its first event"):
                read(cut)
            continue
        trace = read(cut)
        found = len(starts(trace))
        assert starts(trace) == ALL[:found]
        assert any("cut short" in warning for warning in trace.warnings)
        assert found == 10 or position < events_end
        complete = cut.count('"ph"') - 1
        assert complete <= found <= complete + 1
        seen.add(found)
    assert len(seen) > 5


def test_a_list_cut_short_is_read_up_to_the_cut():
    events = json.dumps(ten_waits().events)
    trace = read(events[:-20])
    assert starts(trace) == ALL[:9]


def test_bare_nan_and_infinity_are_read():
    text = WHOLE
    for token in ("NaN", "Infinity", "-Infinity", "nan", "-inf", "inf"):
        text = replaced(text, '"cbid": 0', f'"est. achieved occupancy %": {token}')
    trace = read(text)
    assert starts(trace) == ALL
    assert trace.warnings == ("3 events with unescaped quotes or bare numbers repaired",)  # the last three


@pytest.mark.parametrize(
    "name",
    [
        'say "hello"',
        '"',
        '""',
        'f("a", "b")',
        'dict {"a": 1, "b": [2]}',
        'ends with a quote"',
        '"starts',
        "C:\\dir\\new",
        'both \\ and "quotes" {[(',
        "]}, {",
    ],
)
def test_unescaped_quotes_in_a_name_are_repaired(name):
    text = replaced(
        WHOLE,
        '"name": "cudaStreamSynchronize", "pid": 4000, "tid": 4000, "ts": 30',
        f'"name": "{name}", "pid": 4000, "tid": 4000, "ts": 30',
    )
    trace = read(text)
    assert starts(trace) == ALL
    assert list(trace.runtime["name"])[3].replace("\n", "\\n") == name
    assert set(list(trace.runtime["name"])[:3]) == {"cudaStreamSynchronize"}


def test_an_event_that_cannot_be_repaired_is_skipped_and_counted():
    trace = read(replaced(WHOLE, '"ts": 30,', '"ts": 3o,'))
    assert starts(trace) == ALL[:3] + ALL[4:]
    assert trace.rank == 3
    assert trace.warnings == ("1 event skipped as not valid, the first: broken JSON",)


def test_lists_inside_a_broken_event_do_not_end_the_events():
    spoiled = '"ts": 3o, "groups": {"all": [{"a": 1}, {"name": "b"}]}, "more": [{"a": 1}, {"name": "c"}],'
    trace = read(replaced(WHOLE, '"ts": 30,', spoiled))
    assert starts(trace) == ALL[:3] + ALL[4:]


def test_a_broken_last_event_does_not_cost_the_metadata_behind_it():
    document = ten_waits().document()
    events = document.pop("traceEvents")
    text = json.dumps({"traceEvents": events, **document})
    trace = read(replaced(text, '"ts": 90,', '"ts": 9o,'))
    assert starts(trace) == ALL[:9]
    assert (trace.rank, trace.base_ns) == (3, BASE_NS)
    assert trace.warnings == ("1 event skipped as not valid, the first: broken JSON",)


def test_a_file_without_its_beginning_is_read_from_the_first_key_that_is_known():
    trace = read("{{" + WHOLE[1:].replace('"schemaVersion": 1', '"id": 6}', 1))
    assert starts(trace) == ALL
    assert trace.warnings[0].startswith("the text before the key ")
    assert trace.warnings[0].endswith(" was not readable and is ignored")


def test_a_broken_key_before_the_events_costs_only_itself():
    trace = read(replaced(WHOLE, '"schemaVersion": 1', '"note": ""said" \\" he", "schemaVersion": 1'))
    assert starts(trace) == ALL
    assert trace.rank == 3
    assert [w for w in trace.warnings if w.endswith("was not readable and is ignored")]


@pytest.mark.parametrize(
    "event",
    [
        5, None, "text", [], {"ph": "X"}, {"ph": 5}, {"ph": "X", "cat": 5, "name": "a", "ts": 1},
        {"ph": "X", "cat": "kernel", "name": None, "ts": 1}, {"ph": "X", "cat": "kernel", "name": "a", "ts": "soon"},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "args": [1, 2]},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "args": "text"},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": [1]},
        {"ph": "X", "cat": "kernel", "name": "a"},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": 1e300, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": None, "dur": 1},
    ],
)  # fmt: skip
def test_an_event_of_odd_types_does_not_sink_the_file(event):
    builder = ten_waits()
    builder.events.insert(4, event)
    trace = builder.trace()
    assert starts(trace) == ALL
    assert trace.rank == 3
    assert len(trace.device) == 0


def test_skipped_events_are_counted_with_the_first_reason():
    builder = ten_waits()
    builder.events += [{"ph": "X", "cat": "kernel", "name": "a", "ts": "soon"}, {"ph": "X", "name": 1, "ts": 1}]
    (warning,) = builder.trace().warnings
    assert warning == "2 events skipped as not valid, the first: Expected `float`, got `str` - at `$.ts`"


@pytest.mark.parametrize(
    "args",
    [
        {"correlation": "x", "stream": None, "device": [0], "External id": {}, "bytes": "many", "kind": []},
        {"correlation": 1e400, "stream": -1.5, "device": True, "External id": 2**70, "graph id": "one"},
        {"Collective name": 5, "Python id": [], "Sequence number": "1"},
    ],
)
def test_arguments_of_odd_types_leave_the_event_in_place(args):
    builder = ten_waits()
    for category in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op", "python_function", "cuda_sync"):
        builder.events.append({"ph": "X", "cat": category, "name": "odd", "ts": 5, "dur": 1, "args": args})
    trace = read(json.dumps(builder.document()))
    assert len(trace.device) == 3
    assert len(trace.ops) == len(trace.frames) == len(trace.sync) == 1
    assert len(trace.runtime) == 11


def test_numbers_in_strings_are_numbers():
    builder = ten_waits()
    builder.events.append(
        {"ph": "X", "cat": "kernel", "name": "a", "ts": "95.5", "dur": "0.5", "args": {"stream": "7"}}
    )
    trace = builder.trace()
    assert trace.device[["ts", "dur", "stream"]].to_numpy().tolist() == [[95_500, 500, 7]]


def test_bytes_that_are_no_utf8_are_replaced():
    data = WHOLE.encode().replace(b"cudaStreamSynchronize", b"kernel \xff\xfe", 1)
    trace = read(data)
    assert starts(trace) == ALL
    assert next(iter(trace.runtime["name"])) == "kernel \ufffd\ufffd"
    assert trace.warnings == ("bytes that are not UTF-8 were replaced",)


def test_half_a_surrogate_pair_is_replaced():
    trace = read(replaced(WHOLE, "cudaStreamSynchronize", "half \\ud800"))
    name = next(iter(trace.runtime["name"]))
    assert name.encode() == "half \ufffd".encode()


@pytest.mark.parametrize("half", ['"half \\ud800": 1', '"unknown": {"a": ["\\udc00 half"], "b\\ud800": {}}'])
def test_half_a_surrogate_pair_in_what_is_not_read_loses_nothing(half):
    trace = read(WHOLE.replace('"name":', f'{half}, "name":'))
    assert starts(trace) == ALL


def test_control_characters_in_names_are_read():
    trace = read(replaced(WHOLE, "cudaStreamSynchronize", "tab\tand\nline"))
    assert trace.warnings == ()
    assert next(iter(trace.runtime["name"])) == "tab\tand\nline"


def test_text_after_the_end_is_ignored_with_a_warning():
    trace = read(WHOLE + "\n" + WHOLE)
    assert starts(trace) == ALL
    assert trace.warnings == ("text after the end of the trace is ignored",)


def test_a_byte_order_mark_is_no_damage():
    assert read(b"\xef\xbb\xbf  " + WHOLE.encode()).warnings == ()


def test_a_huge_broken_event_does_not_take_for_ever():
    hostile = '{"ph": "X", "name": "' + '"a":"' * 200_000 + "x"
    trace = read(replaced(WHOLE, '{\n    "ph"', hostile + '\n  },\n  {\n    "ph"'))
    assert starts(trace) == ALL


@pytest.mark.parametrize("phase", [[], {}, ["X"], None, 5])
def test_an_event_whose_phase_is_no_text_is_skipped_and_counted(phase):
    document = ten_waits().document()
    next(event for event in document["traceEvents"] if event.get("ph") == "X")["ph"] = phase
    trace = read_bytes(json.dumps(document).encode(), "t.json")
    assert len(trace.runtime) == 9
    assert any("1 event skipped as not valid" in warning for warning in trace.warnings)
