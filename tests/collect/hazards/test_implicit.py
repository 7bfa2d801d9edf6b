"""Waits inside operators, by the warnings of PyTorch's sync debug mode. Here an operator of our own warns."""

from __future__ import annotations

import gc
import traceback
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from syncscope.collect.sites.sync_debug import MESSAGE, sync_debug_mode  # noqa: E402
from tests.collect.hazards.fake import SIDE, Bench  # noqa: E402
from tests.collect.hazards.test_copies import arriving  # noqa: E402

_mode = [0]


@pytest.fixture(scope="module")
def ops() -> Iterator[Any]:
    """``item`` waits for its stream, ``fails`` waits and raises, ``warns`` raises after a warning of C++."""
    library = torch.library.Library("syncscope_test", "FRAGMENT")
    library.define("item(Tensor x) -> float")
    library.define("warns(Tensor x) -> float")
    library.define("fails(Tensor x) -> float")

    def wait() -> None:
        if _mode[0]:
            # Where PyTorch would warn from C++: in the frame that runs the operator.
            warnings.warn(MESSAGE, stacklevel=2)

    def item(x: Any) -> float:
        wait()
        return 1.0

    def warns(x: Any) -> float:
        torch.ops.aten.add.out(torch.ones(4), torch.ones(4), out=torch.empty(3))
        raise StopIteration("singular")

    def fails(x: Any) -> float:
        wait()
        raise ValueError("singular")

    for function in (item, warns, fails):
        library.impl(function.__name__, function, "CompositeExplicitAutograd")
    yield torch.ops.syncscope_test
    library._destroy()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(torch._C, "_cuda_set_sync_debug_mode", lambda mode: _mode.__setitem__(0, mode), raising=False)
    monkeypatch.setattr(torch._C, "_cuda_get_sync_debug_mode", lambda: _mode[0], raising=False)
    with Bench() as open_bench:
        yield open_bench
    assert _mode == [0]


def device(bench: Bench) -> Any:
    return bench.runtime.on_device(torch.ones(4))


def test_a_wait_inside_an_operator_counts_for_its_stream(bench: Bench, ops: Any) -> None:
    host, other = arriving(bench), device(bench)
    ops.item(other)
    host.sum()
    assert bench.rules() == []


def test_it_does_not_count_for_another_stream(bench: Bench, ops: Any) -> None:
    host, other = arriving(bench), device(bench)
    with bench.runtime.on_stream(SIDE):
        ops.item(other)
    host.sum()
    assert bench.rules() == ["HAZ401"]


def test_an_operator_that_does_not_wait_counts_for_nothing(bench: Bench, ops: Any) -> None:
    host, other = arriving(bench), device(bench)
    torch._C._cuda_set_sync_debug_mode(0)
    other.sum()
    host.sum()
    assert bench.rules() == ["HAZ401"]


def test_a_wait_that_is_spelled_out_is_not_counted_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    host = arriving(bench)
    implicit = bench.hazards._hooks[1]

    def synchronize() -> None:
        warnings.warn(MESSAGE, stacklevel=1)
        bench.synchronize_stream(SIDE)

    implicit.run_explicit(synchronize, (), {})
    host.sum()
    assert bench.rules() == ["HAZ401"]


def test_an_error_after_a_wait_is_raised_as_it_is(bench: Bench, ops: Any) -> None:
    host, other = arriving(bench), device(bench)
    with pytest.raises(ValueError, match="singular") as raised:
        ops.fails(other)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)][-1] == "fails"
    host.sum()
    assert bench.rules() == []


def test_an_error_after_a_warning_of_cpp_is_raised_as_it_is(bench: Bench, ops: Any) -> None:
    """C++ keeps its warnings until its function returns. Python must not run for them while an exception is set."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with pytest.raises(StopIteration, match="singular") as raised:
            ops.warns(device(bench))
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
    assert ["was resized" in str(warning.message) for warning in shown] == [True]


def test_an_error_keeps_nothing_alive(bench: Bench, ops: Any) -> None:
    class Held:
        pass

    def fail() -> weakref.ref[Held]:
        held = Held()
        try:
            ops.fails(device(bench))
        except ValueError:
            return weakref.ref(held)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()


def test_an_error_in_a_handler_keeps_its_context(bench: Bench, ops: Any) -> None:
    def handle() -> None:
        try:
            raise KeyError("first")
        except KeyError:
            ops.fails(device(bench))

    with pytest.raises(ValueError, match="singular") as raised:
        handle()
    assert isinstance(raised.value.__context__, KeyError)


def test_the_warning_is_not_shown_to_the_program(bench: Bench, ops: Any) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        ops.item(device(bench))
    assert shown == []


def test_a_warning_of_an_operator_arrives_with_it_at_the_programs_line(bench: Bench) -> None:
    out, x = bench.runtime.on_device(torch.empty(3)), device(bench)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        torch.add(x, x, out=out)
    (warning,) = shown
    assert "was resized" in str(warning.message)
    assert warning.filename == __file__


def test_a_warning_that_the_program_makes_an_error_is_raised(bench: Bench) -> None:
    out, x = bench.runtime.on_device(torch.empty(3)), device(bench)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="was resized"):
            torch.add(x, x, out=out)


def test_a_wait_of_an_operator_called_by_name_is_heard_while_waits_are_counted(bench: Bench, ops: Any) -> None:
    """The count switches the mode off around such a call: PyTorch would print its warnings."""
    host, other = arriving(bench), device(bench)
    sync_debug_mode.suspend()
    try:
        ops.item(other)
    finally:
        sync_debug_mode.resume()
    host.sum()
    assert bench.rules() == []
