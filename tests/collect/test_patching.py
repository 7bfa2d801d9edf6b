"""Attributes are replaced for a while, and everything is as before afterwards."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.patching import Patches


class Base:
    def wait(self) -> str:
        """Block until the work is done."""
        return "waited"


class Event(Base):
    def query(self) -> str:
        return "queried"


def exclaim(original: Callable[[Any], str]) -> Callable[[Any], str]:
    def wrapper(event: Any) -> str:
        return original(event) + "!"

    return wrapper


def test_a_method_is_replaced_and_put_back() -> None:
    original, patches = Event.query, Patches()
    patches.replace(Event, "query", exclaim)
    assert Event().query() == "queried!"
    patches.restore()
    assert Event.query is original
    patches.restore()
    assert Event.query is original


def test_an_inherited_method_is_shadowed_and_inherited_again() -> None:
    patches = Patches()
    patches.replace(Event, "wait", exclaim)
    assert (Event().wait(), Base().wait()) == ("waited!", "waited")
    patches.restore()
    assert "wait" not in vars(Event)
    assert Event().wait() == "waited"


def test_a_replacement_has_the_signature_of_the_original_and_can_be_pickled() -> None:
    patches = Patches()
    patches.replace(Event, "query", lambda original: lambda *args: original(*args) + "!")
    try:
        assert list(inspect.signature(Event.query).parameters) == ["self"]
        assert pickle.loads(pickle.dumps(Event.query)) is Event.query
    finally:
        patches.restore()


def test_a_method_of_c_is_replaced_for_instances_alone_while_the_gate_is_on() -> None:
    class Owner(list[int]):
        pass

    gate, lower, upper = SimpleNamespace(on=True), Patches(), Patches()
    lower.replace(Owner, "pop", lambda original: lambda *args: original(*args) + 1, gate)
    upper.replace(Owner, "pop", lambda original: lambda *args: original(*args) * 10)
    assert (Owner([1]).pop(), Owner.pop is list.pop, Owner.pop(Owner([1]))) == (20, True, 1)
    upper.restore()
    assert Owner([1]).pop() == 2
    gate.on = False
    assert Owner([1]).pop() == 1
    lower.restore()
    assert "pop" not in vars(Owner)


def test_a_descriptor_comes_back_as_it_was() -> None:
    class Owner:
        make = staticmethod(lambda: "made")

    before, patches = vars(Owner)["make"], Patches()
    patches.replace(Owner, "make", lambda original: staticmethod(lambda: original() + "!"))
    assert Owner.make() == "made!"
    patches.restore()
    assert vars(Owner)["make"] is before


def test_two_replacements_of_one_method_nest() -> None:
    original, patches = Event.query, Patches()
    patches.replace(Event, "query", exclaim)
    patches.replace(Event, "query", exclaim)
    assert Event().query() == "queried!!"
    patches.restore()
    assert Event.query is original


def test_what_is_absent_is_left_alone() -> None:
    patches = Patches()
    patches.replace(Event, "elapsed_time", exclaim)
    assert not hasattr(Event, "elapsed_time")
    patches.restore()


def test_a_replacement_is_known_by_the_name_of_what_it_replaces() -> None:
    patches = Patches()
    patches.replace(Event, "wait", exclaim)
    try:
        names = (Event.wait.__name__, Event.wait.__qualname__, Event.wait.__doc__, Event.wait.__module__)
    finally:
        patches.restore()
    assert names == ("wait", "Event.wait", "Block until the work is done.", __name__)


@pytest.mark.parametrize("given_torch", [False, True])
def test_dynamo_skips_a_replacement_only_on_request(given_torch: bool) -> None:
    skipped: list[object] = []
    torch = SimpleNamespace(
        _C=SimpleNamespace(_dynamo=SimpleNamespace(eval_frame=SimpleNamespace(skip_code=skipped.append)))
    )
    patches = Patches(torch) if given_torch else Patches()
    patches.replace(Event, "query", exclaim)
    code = vars(Event)["query"].__code__
    patches.restore()
    assert skipped == [code] * given_torch


def test_the_installed_dynamo_can_skip_a_replacement() -> None:
    torch = pytest.importorskip("torch", reason="Dynamo is part of PyTorch")
    evaluator = torch._C._dynamo.eval_frame
    assert hasattr(evaluator, "set_code_exec_strategy") or hasattr(evaluator, "skip_code")
    patches = Patches(torch)
    patches.replace(Event, "query", exclaim)
    assert Event().query() == "queried!"
    patches.restore()


def test_replacements_are_taken_out_and_put_in_again() -> None:
    patches = Patches()
    patches.replace(Event, "query", exclaim)
    patches.replace(Event, "wait", exclaim)
    patches.replace(Event, "query", exclaim)
    for _ in range(2):
        patches.take_out()
        assert (Event().query(), "wait" in vars(Event)) == ("queried", False)
        patches.put_in()
        assert (Event().query(), Event().wait()) == ("queried!!", "waited!")
    patches.take_out()
    patches.restore()
    assert (Event().query(), Event().wait()) == ("queried", "waited")


def test_what_was_replaced_while_ours_was_out_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    patches = Patches()
    patches.replace(Event, "query", exclaim)
    patches.take_out()
    monkeypatch.setattr(Event, "query", lambda event: "the program's")
    patches.put_in()
    patches.take_out()
    patches.restore()
    assert Event().query() == "the program's"


@pytest.mark.parametrize("out", [False, True])
def test_two_that_overlap_leave_everything_as_it_was_whichever_ends_first(out: bool) -> None:
    query, wait = Event.query, Base.wait
    first, second = Patches(), Patches()
    for patches in (first, second):
        patches.replace(Event, "query", exclaim)
        patches.replace(Event, "wait", exclaim)
    if out:
        first.take_out()
    first.restore()
    assert Event().query() == "queried!!"  # the second still calls it
    second.restore()
    assert Event.query is query and "wait" not in vars(Event) and Base.wait is wait


def test_what_the_program_replaced_meanwhile_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Owner:
        def method(self) -> str:
            return "plain"

    patches = Patches()
    patches.replace(Owner, "method", lambda original: lambda self: f"ours, {original(self)}")
    ours = Owner.method
    monkeypatch.setattr(Owner, "method", lambda self: f"the program's, {ours(self)}")
    patches.restore()
    assert Owner().method() == "the program's, ours, plain"
