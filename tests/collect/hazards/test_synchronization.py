"""Waits and orders that a program asks for: what each call of PyTorch tells the clocks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from syncscope.collect.hazards import synchronization  # noqa: E402
from tests.collect.hazards.fake import MAIN, SIDE, Bench  # noqa: E402
from tests.collect.hazards.test_copies import arriving  # noqa: E402

STREAM_METHODS = ("synchronize", "query", "record_event", "wait_event", "wait_stream")
EVENT_METHODS = ("record", "wait", "synchronize", "query", "elapsed_time")


def nothing(*args: Any, **kwargs: Any) -> None:
    """Stands where CUDA would be."""


def stream(handle: int) -> Any:
    return SimpleNamespace(cuda_stream=handle)


def event(handle: int) -> Any:
    return SimpleNamespace(cuda_event=handle)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A window on streams and events whose methods do nothing themselves; every query says that all is over."""
    for name in STREAM_METHODS:
        monkeypatch.setattr(torch.cuda.Stream, name, nothing)
    for name in EVENT_METHODS:
        monkeypatch.setattr(torch.cuda.Event, name, nothing)
    for kind in (torch.cuda.Stream, torch.cuda.Event):
        monkeypatch.setattr(kind, "query", lambda this: True)
    monkeypatch.setattr(torch.cuda.Stream, "record_event", lambda this, event=None: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream(MAIN))
    monkeypatch.setattr(torch._C, "_cuda_synchronize", nothing, raising=False)
    monkeypatch.setattr(torch._C, "_accelerator_synchronizeDevice", nothing, raising=False)
    with Bench() as open_bench:
        yield open_bench
    assert open_bench.hazards.notes == []


Stream, Event = torch.cuda.Stream, torch.cuda.Event

HOST_WAITS: dict[str, Callable[[], Any]] = {
    "Stream.synchronize": lambda: Stream.synchronize(stream(MAIN)),
    "Stream.query": lambda: Stream.query(stream(MAIN)),
    "torch.cuda.synchronize": lambda: torch._C._cuda_synchronize(),
    "torch.accelerator.synchronize": lambda: torch._C._accelerator_synchronizeDevice(0),
    "Event.synchronize": lambda: (Event.record(event(7)), Event.synchronize(event(7))),
    "Event.query": lambda: (Event.record(event(7), stream=stream(MAIN)), Event.query(event(7))),
    "Stream.record_event": lambda: (Stream.record_event(stream(MAIN), event(7)), Event.synchronize(event(7))),
    "Event.elapsed_time": lambda: (Event.record(event(7)), Event.elapsed_time(event(6), end_event=event(7))),
    "a stream in between": lambda: (
        Stream.wait_stream(stream(SIDE), stream(MAIN)),
        Stream.synchronize(stream(SIDE)),
    ),
    "an event in between": lambda: (
        Event.record(event(7)),
        Stream.wait_event(stream(SIDE), event(7)),
        Event.record(event(8), stream(SIDE)),
        Event.synchronize(event(8)),
    ),
    "Event.wait": lambda: (Event.record(event(7)), Event.wait(event(7), stream(SIDE)), Stream.query(stream(SIDE))),
}


@pytest.mark.parametrize("wait", HOST_WAITS.values(), ids=HOST_WAITS)
def test_the_host_may_read_after(bench: Bench, wait: Callable[[], Any]) -> None:
    host = arriving(bench)
    wait()
    host.sum()
    assert bench.rules() == []


NO_WAITS: dict[str, Callable[[], Any]] = {
    "another stream": lambda: Stream.synchronize(stream(SIDE)),
    "an event that was never recorded": lambda: Event.synchronize(event(0)),
    "an event of another stream": lambda: (Event.record(event(7), stream(SIDE)), Event.synchronize(event(7))),
    "a stream that waits the other way": lambda: (
        Stream.wait_stream(stream(MAIN), stream(SIDE)),
        Stream.synchronize(stream(SIDE)),
    ),
    "an order on the device": lambda: (Event.record(event(7)), Stream.wait_event(stream(SIDE), event(7))),
}


@pytest.mark.parametrize("wait", NO_WAITS.values(), ids=NO_WAITS)
def test_the_host_may_not_read_after(bench: Bench, wait: Callable[[], Any]) -> None:
    host = arriving(bench)
    wait()
    host.sum()
    assert bench.rules() == ["HAZ401"]


def test_a_query_counts_only_when_it_says_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"over": False}
    monkeypatch.setattr(torch.cuda.Event, "query", lambda this: answers["over"])
    with Bench() as bench:
        host = arriving(bench)
        bench.record(77)
        assert not torch.cuda.Event.query(event(77))
        host.sum()
        answers["over"] = True
        assert torch.cuda.Event.query(event(77))
        host.mean()
        (found,) = bench.events()
        assert found.access.op == "aten::sum"


def test_a_wait_that_fails_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("device not ready")

    monkeypatch.setattr(torch.cuda.Event, "elapsed_time", fail)
    with Bench() as bench:
        host = arriving(bench)
        bench.record(77)
        with pytest.raises(RuntimeError, match="not ready"):
            torch.cuda.Event.elapsed_time(event(76), event(77))
        host.sum()
        assert bench.rules() == ["HAZ401"]


def test_what_a_collective_waited_for_is_ordered_but_the_host_has_not_waited() -> None:
    with Bench() as bench:
        a = bench.runtime.on_device(torch.ones(8))
        a.normal_()
        host = arriving(bench)
        done: Any = torch.futures.Future()
        done.set_result(1)
        with bench.runtime.on_stream(SIDE):
            assert done.wait() == 1
            a.sum()
        host.sum()
        assert bench.rules() == ["HAZ401"]


def test_an_event_of_another_process_stands_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.Event, "from_ipc_handle", classmethod(lambda cls, device, handle: event(handle)))
    monkeypatch.setattr(torch.cuda.Event, "synchronize", nothing)
    with Bench() as bench:
        theirs = torch.cuda.Event.from_ipc_handle("cuda:0", 99)
        host = arriving(bench)
        torch.cuda.Event.synchronize(theirs)
        host.sum()
        assert bench.rules() == []


def test_the_generic_classes_are_hooked_though_they_are_c_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their objects come from C++, and their attributes cannot be assigned."""
    seen: list[Any] = []
    for name in ("_stream_queried", "_event_queried"):
        monkeypatch.setattr(synchronization.SynchronizationHooks, name, lambda self, this, *_: seen.append(this))
    stream, event = torch.Stream("cpu"), torch.Event("cpu")

    def query() -> None:
        for _ in range(64):  # the interpreter remembers where it found the methods
            stream.query()
            event.query()

    before = dict(vars(torch.Stream)), dict(vars(torch.Event))
    query()
    with Bench() as bench:
        for kind, names in ((torch.Stream, STREAM_METHODS), (torch.Event, EVENT_METHODS)):
            for name in names:
                assert vars(kind)[name].function.__code__.co_filename == synchronization.__file__, name
        query()
        assert seen == 64 * [stream, event]
        assert bench.events() == []
    query()
    assert len(seen) == 2 * 64
    assert (dict(vars(torch.Stream)), dict(vars(torch.Event))) == before


def test_a_stream_of_another_kind_of_device_is_passed_through() -> None:
    with Bench() as bench:
        assert torch.Stream("cpu").query()
        torch.Stream("cpu").synchronize()
        assert torch.Event("cpu").query()
        assert bench.events() == []


def test_a_fault_in_our_hook_is_noted_and_the_call_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.Event, "record", lambda this, stream=None: "recorded")
    with Bench() as bench:
        assert torch.cuda.Event.record(SimpleNamespace(), stream(SIDE)) == "recorded"
        (note,) = bench.hazards.notes
    assert note.startswith("record was not followed")
