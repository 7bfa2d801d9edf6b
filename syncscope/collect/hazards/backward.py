"""Follow the order in which autograd's engine puts streams.

The engine runs each node of a backward pass on the stream of its forward operator. In C++, where no hook sees it, it
lets a stream wait for the caller's current streams before its first node, for the streams that its gradients come
from before each node, and lets the caller's streams wait for all of them at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from syncscope.collect.hazards.runtime import Runtime
from syncscope.collect.hazards.vector_clocks import Clocks
from syncscope.collect.patching import Patches


class BackwardPass:
    """One call of the engine: the streams that it has used so far, the caller's among them."""

    def __init__(self, callers: frozenset[int]) -> None:
        self.callers = callers
        self.streams = set(callers)


class BackwardOrder:
    """Gives ``clocks`` the engine's order, a little more than it guarantees: each operator of a pass comes after all
    earlier operators of the pass, whatever gradients it takes.

    A stream that a hook or a ``Function.backward`` makes current by ``torch.cuda.stream`` is up to the program: the
    engine orders nothing there. ``on_window_thread`` says whether this is the thread that the window was opened on."""

    def __init__(self, torch: Any, clocks: Clocks, runtime: Runtime, on_window_thread: Callable[[], bool]) -> None:
        self._torch = torch
        self._clocks = clocks
        self._runtime = runtime
        self._on_window_thread = on_window_thread
        self._graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self._running: list[BackwardPass] = []
        self._chosen: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._replaced = Patches()

    def open(self) -> None:
        # Every call of the engine from Python looks it up there.
        self._replaced.replace(self._torch.autograd.Variable, "_execution_engine", lambda engine: _Engine(engine, self))
        self._replaced.replace(self._torch._C, "_cuda_setStream", self._note_choice)

    def close(self) -> None:
        self._replaced.restore()

    def run(self, backward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the engine."""
        if not (self._on_window_thread() or self._in_node()):
            return backward(*args, **kwargs)
        if not self._running:
            self._chosen.clear()
        this = BackwardPass(self._runtime.current_streams())
        self._running.append(this)
        try:
            return backward(*args, **kwargs)
        finally:
            self._running.remove(this)
            for caller in this.callers:
                for stream in tuple(this.streams):
                    self._clocks.wait_for_stream(caller, stream)

    def launch(self, stream: int) -> None:
        """An operator is about to be launched on ``stream``. Order it if it belongs to a backward pass."""
        if not self._running or (self._on_window_thread() and not self._in_node()):
            return
        if stream in self._chosen.get(threading.get_ident(), ((), ()))[1]:
            return
        # Passes inside of a pass run one after the other; the innermost is the one at work.
        this = self._running[-1]
        for other in tuple(this.streams):
            self._clocks.wait_for_stream(stream, other)
        this.streams.add(stream)

    def _in_node(self) -> bool:
        """Whether this thread runs a node of a backward pass."""
        return bool(self._graph_task() != -1)

    def _note_choice(self, set_stream: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self._running or (self._on_window_thread() and not self._in_node()):
                return set_stream(*args, **kwargs)
            before = self._runtime.current_streams()
            result = set_stream(*args, **kwargs)
            self._choose(before, self._runtime.current_streams())
            return result

        return wrapper

    def _choose(self, before: frozenset[int], now: frozenset[int]) -> None:
        """The program changed this thread's current streams inside a node."""
        thread = threading.get_ident()
        engines = self._chosen[thread][0] if thread in self._chosen else before
        if now <= engines:
            self._chosen.pop(thread, None)  # back to what the engine had set
        else:
            self._chosen[thread] = engines, now - engines


class _Engine:
    """Autograd's engine, with a hook around its backward passes."""

    def __init__(self, engine: Any, order: BackwardOrder) -> None:
        self._engine = engine
        self._order = order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        return self._order.run(self._engine.run_backward, args, kwargs)
