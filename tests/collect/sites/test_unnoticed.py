"""Programs that look closely at what they call, and do with it as they like, get with the wrappers what they get
alone."""

from __future__ import annotations

import _thread
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the wrappers are around PyTorch's entry points")

from syncscope.collect.count.wrappers import CountingWrappers  # noqa: E402
from syncscope.collect.live.wrappers import LiveWrappers  # noqa: E402
from syncscope.collect.sites.sync_debug import SyncDebugMode  # noqa: E402
from syncscope.collect.sites.wrappers import CallWrappers  # noqa: E402

X = torch.ones(2)
ORIGINAL = torch.Tensor.to


class Counts:
    """Hears of nothing."""

    on = True

    def waited(self, *about: Any) -> None: ...

    may_have_waited = copied = waited

    def passed(self) -> None: ...

    def tell(self, wait: Any) -> None: ...

    def backward(self, run: Callable[[], Any]) -> Any:
        return run()


def _make(kind: str) -> CallWrappers:
    mode = SyncDebugMode()
    if kind == "window":
        return CallWrappers(torch, lambda *about: None, mode)
    if kind == "guard":
        return LiveWrappers(torch, Counts(), mode)
    return CountingWrappers(torch, Counts(), Counts(), mode)


@pytest.fixture(params=["count", "window", "guard"])
def wrapped(request: pytest.FixtureRequest) -> Iterator[None]:
    wrappers = _make(request.param)
    wrappers.open()
    yield
    wrappers.close()
    assert "to" not in vars(torch.Tensor)


@pytest.mark.usefixtures("wrapped")
def test_what_is_copied_may_be_named() -> None:
    assert torch.zeros(2).copy_(other=X).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="other"):
        torch.zeros(2).copy_(src=X)


@pytest.mark.usefixtures("wrapped")
def test_an_argument_may_say_what_a_conversion_returns() -> None:
    class Says:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
            return "made"

    assert X.to(Says()) == "made"


@pytest.mark.usefixtures("wrapped")
def test_a_class_of_tensors_and_a_mode_are_given_the_functions_that_they_know() -> None:
    table, seen = {ORIGINAL}, []

    class Own(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func in table, func is torch.Tensor.to))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func in table, func is torch.Tensor.to))
            return func(*args, **(kwargs or {}))

    assert torch.nn.parameter.UninitializedParameter().to(torch.float64).dtype is torch.float64
    X.as_subclass(Own).to(torch.float64)
    with Mode():
        X.to(torch.float64)
    assert seen == [(True, True), (True, True)]


@pytest.mark.usefixtures("wrapped")
def test_a_traced_graph_has_no_node_of_ours() -> None:
    class Copies(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.kept.copy_(x)
            return torch.linalg.eigh(x)

    nodes = [node.name for node in torch.fx.symbolic_trace(Copies()).graph.nodes]
    assert nodes == ["x", "kept", "copy_", "linalg_eigh", "output"]


@pytest.mark.usefixtures("wrapped")
def test_methods_and_functions_can_be_pickled() -> None:
    for function in (torch.Tensor.to, torch.Tensor.copy_, torch.linalg.eigh):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.usefixtures("wrapped")
@pytest.mark.parametrize("name", ["to", "copy_", "neg"])
def test_a_thread_may_run_nothing_but_a_wrapped_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the autograd engine does with a hook."""
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: errors.append(unraisable.exc_value))
    done, kept = threading.Event(), X.clone().as_subclass(type("Own", (torch.Tensor,), {}))
    call: Any = torch.ops.aten.neg if name == "neg" else getattr(kept, name)
    _thread.start_new_thread(call, ({"neg": X, "to": torch.float64, "copy_": X}[name],))
    _thread.start_new_thread(done.set, ())
    assert done.wait(10)
    time.sleep(0.05)
    assert not errors


@pytest.fixture
def filters() -> Iterator[None]:
    mode = SyncDebugMode()
    with warnings.catch_warnings():
        warnings.resetwarnings()
        mode.hold_filter()
        yield
        mode.release_filter()


@pytest.mark.usefixtures("filters")
def test_a_program_may_warn_of_what_is_no_text() -> None:
    class Silent(UserWarning):
        def __str__(self) -> str:
            raise RuntimeError("does not say")

    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.warn(ValueError("what was caught"), stacklevel=1)  # type: ignore[call-overload]
        warnings._showwarnmsg(SimpleNamespace(message=Silent(), filename=__file__, lineno=1))  # type: ignore[attr-defined]
    assert [str(one.message) for one in caught[:1]] == ["what was caught"]
    assert len(caught) == 2


def test_code_of_a_class_of_tensors_is_compiled_whole_and_once() -> None:
    class Own(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    convert = torch.compile(lambda x: x.to(torch.float64) + 1, backend=backend, fullgraph=True)
    x, wrappers = X.as_subclass(Own), CountingWrappers(torch, Counts(), Counts(), SyncDebugMode())
    try:
        wrappers.open()
        results = [convert(x)]
        wrappers.take_out()
        results.append(convert(x))
        wrappers.put_in()
        results.append(convert(x))
    finally:
        wrappers.close()
    assert [one.tolist() for one in results] == [[2.0, 2.0]] * 3
    assert len(graphs) == 1
