"""The op behind a warning, from PyTorch's ops alone."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import msgspec
import pytest

from syncscope.collect.looks.behind import find_ops
from syncscope.collect.sites.threads import kineto_tid
from syncscope.schema.recording import SiteEvent

BASE = 1_700_000_000_000_000_000
US = 1_000
MINE = 7


def trace(*ops: tuple[str, float, float], tid: Any = MINE) -> bytes:
    """Ops with begin and end in µs."""
    rows = [{"ph": "X", "cat": "cpu_op", "name": name, "tid": tid, "ts": begin, "dur": end - begin, "args": {}}
            for name, begin, end in ops]  # fmt: skip
    others = [{"ph": "M", "name": "process_name", "tid": 0}, {"cat": "user_annotation", "name": "mine", "tid": tid}]
    return json.dumps({"baseTimeNanoseconds": BASE, "traceEvents": [*others, *rows]}).encode()


def warning(us: float, stack: int = 0) -> SiteEvent:
    at = BASE + round(us * US)
    return SiteEvent(kind="warning", name="", tid=MINE, start_ns=at, end_ns=at, stack=stack)


def chains(exported: bytes, *events: SiteEvent) -> list[tuple[int, int, tuple[str, ...]]]:
    return [(one.stack, one.ordinal, one.ops) for one in find_ops(exported, events, {})]


READ = (("aten::item", 10.0, 60.0), ("aten::_local_scalar_dense", 11.0, 59.0))


def test_the_op_that_has_just_ended_is_the_one_that_waited() -> None:
    exported = trace(("aten::mm", 0, 5), *READ, ("aten::add", 90, 95))
    assert chains(exported, warning(62)) == [(0, 0, ("aten::item", "aten::_local_scalar_dense"))]


def test_of_the_ops_inside_the_one_that_is_known_to_wait_is_taken_else_the_longest() -> None:
    inside = ("aten::index", 0, 100), ("aten::nonzero", 5, 30), ("aten::take", 35, 95)
    assert chains(trace(*inside), warning(101)) == [(0, 0, ("aten::index", "aten::nonzero"))]
    foreign = ("mine::count", 0, 100), ("mine::small", 5, 10), ("mine::big", 20, 95)
    assert chains(trace(*foreign), warning(101)) == [(0, 0, ("mine::count", "mine::big"))]
    even = ("mine::count", 0, 100), ("mine::one", 5, 40), ("mine::two", 50, 95)
    assert chains(trace(*even), warning(101)) == [(0, 0, ("mine::count",))]


def test_a_warning_inside_of_an_op_has_both() -> None:
    exported = trace(("mine::outer", 0, 200), *READ)
    assert chains(exported, warning(62)) == [(0, 0, ("mine::outer", "aten::item", "aten::_local_scalar_dense"))]


def test_a_warning_long_after_any_op_before_all_or_of_another_thread_has_none() -> None:
    assert chains(trace(*READ), warning(60 + 1_001)) == []
    assert chains(trace(*READ), warning(5)) == []
    assert chains(trace(*READ, tid=8), warning(62)) == []
    assert chains(trace(("mine::outer", 0, 200)), warning(62)) == []


def test_a_thread_may_have_its_other_number() -> None:
    (found,) = find_ops(trace(*READ, tid="99"), [warning(62)], {"99": MINE})
    assert found.ops == ("aten::item", "aten::_local_scalar_dense")


def test_several_waits_of_a_line_are_numbered() -> None:
    exported = trace(*READ, ("aten::nonzero", 100, 120))
    assert [one[:2] for one in chains(exported, warning(62, 3), warning(121, 3), warning(122, 4))] == [
        (3, 0), (3, 1), (4, 0),
    ]  # fmt: skip


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        find_ops(b"nothing", [], {})


def test_pytorchs_own_export_is_read() -> None:
    torch = pytest.importorskip("torch", reason="records with PyTorch's own profiler")
    from syncscope.collect.profiler import KinetoWindow

    x = torch.ones(64, 64)
    before = KinetoWindow.had_cupti
    profiler = KinetoWindow(torch, cpu=True, cuda=False, on_foreign=lambda: None)
    profiler.prepare()
    profiler.start()
    (x @ x).sum().item()
    at = time.time_ns()
    exported = profiler.stop(detach=False)
    assert exported is not None and KinetoWindow.had_cupti is before
    event = SiteEvent(kind="warning", name="", tid=threading.get_native_id(), start_ns=at, end_ns=at, stack=5)
    aliases = {str(kineto_tid(threading.get_ident())): threading.get_native_id()}
    (found,) = find_ops(exported, [event], aliases)
    assert (found.stack, found.ops) == (5, ("aten::item", "aten::_local_scalar_dense"))
