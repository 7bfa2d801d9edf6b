"""The entry points of the run's count, as watched blocks use them: they tell of a wait before it begins.

What is wrapped is listed in ``CountingWrappers`` and ``CallWrappers``. Here is only what a wrapper does. An operator
called by ``torch.ops`` runs inside of a call that hands C++'s warnings to Python, so that its waits are told exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from syncscope.collect.count.wrappers import CountingWrappers
from syncscope.collect.features import find
from syncscope.collect.live.waits import Direction, LiveWait, copy_wait
from syncscope.collect.sites.sync_debug import SyncDebugMode, program_frame
from syncscope.collect.sites.tensors import Looked, is_tensor, unseen
from syncscope.collect.sites.wrappers import calling_frame

Copy = tuple["Direction | None", "str | None"]
"""The direction of a copy, and why it waits: ``None`` where it does not, or that cannot be told."""
NO_COPY: Copy = (None, None)


class Watching(Protocol):
    """Who hears of waits."""

    @property
    def on(self) -> bool:
        """Whether anybody hears of those of this thread."""

    def tell(self, wait: LiveWait) -> None:
        """A wait. May raise, which keeps one that has not begun from happening."""

    def backward(self, run: Callable[[], Any]) -> Any:
        """Run a backward, whose waits on threads of the engine are this thread's."""


class Call(threading.local):
    """The call that this thread is in."""

    told = 0
    """Calls of which somebody was told: what PyTorch warns of inside is the same wait."""
    direction: Direction | None = None
    """Of a copy."""


class LiveWrappers(CountingWrappers):
    """Tells ``watching`` of waits on every thread. While nobody there hears them, calls are passed on."""

    def __init__(self, torch: Any, watching: Watching, mode: SyncDebugMode) -> None:
        super().__init__(torch, _Unheard(), watching, mode)
        self._watching = watching
        self.call = Call()
        self._compiling = torch.compiler.is_compiling
        self._parse_to = find(torch, "_C._nn._parse_to")
        self._modes_open = find(torch, "_C._len_torch_dispatch_stack") or (lambda: 0)
        self._strided = find(torch, "strided")
        self._plain_dispatch = getattr(torch.Tensor, "__torch_dispatch__", None)
        self._hearing = hearing(torch)

    def open(self) -> None:
        super().open()
        self._record_calls(self._owner("cuda.Stream"), "synchronize", "Stream.synchronize")
        self._record_unwarned(find(self._torch, "_C._aoti.AOTIModelPackageLoader"), "boxed_run", "AOTInductor")
        self._follow_backward()

    def _told(self, wait: LiveWait, run: Callable[[], Any]) -> Any:
        """Tell of ``wait``, and ``run`` it unless that raises."""
        self._watching.tell(wait)
        self.call.told += 1
        try:
            return run()
        finally:
            self.call.told -= 1

    def _record_calls(
        self, owner: Any, name: str, label: str, group_of: Callable[[Any], str | None] | None = None
    ) -> None:
        """Tell of every call of ``owner.name``."""
        compiling, watching, caller = self._compiling, self._watching, calling_frame

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching.on:
                    return original(*args, **kwargs)
                wait = LiveWait(program_frame(caller()), label, "unknown", before=True)
                return self._told(wait, lambda: original(*args, **kwargs))

            return wrapper

        self._patches.replace(owner, name, make)

    def _record_device_calls(self, owner: Any, name: str, label: str) -> None:
        """Tell of the calls of ``owner.name`` on a tensor of the device."""
        compiling, watching, caller, plain = self._compiling, self._watching, calling_frame, self._plain

        def works_on_device(tensor: Any) -> bool:
            return tensor.is_cuda and not (name == "coalesce" and tensor.is_coalesced())

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching.on or not args or type(args[0]) not in plain:
                    return original(*args, **kwargs)
                if not self._unseen(works_on_device, args[0]):
                    return original(*args, **kwargs)
                wait = LiveWait(program_frame(caller()), label, "unknown", before=True)
                return self._told(wait, lambda: original(*args, **kwargs))

            return wrapper

        self._patches.replace(owner, name, make)

    def _record_conversions(self, name: str) -> None:
        """Tell of the calls of ``Tensor.to``, ``cuda`` and ``cpu`` that copy between host and device and wait."""
        compiling, watching, caller = self._compiling, self._watching, calling_frame
        label = f"Tensor.{name}"

        def make(original: Any) -> Any:
            def wrapper(self_: Any, *args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching.on:
                    return original(self_, *args, **kwargs)
                direction, why = self._unseen(self._conversion_waits, self_, name, args, kwargs)
                run = lambda: original(self_, *args, **kwargs)  # noqa: E731
                return self._copy(label, direction, why, caller(), run)

            return wrapper

        self._patches.replace(self._torch.Tensor, name, make)

    def _record_copies(self) -> None:
        """Tell of the calls of ``Tensor.copy_`` between host and device that wait."""
        compiling, watching, caller = self._compiling, self._watching, calling_frame

        def make(original: Any) -> Any:
            def wrapper(self_: Any, *args: Any, **kwargs: Any) -> Any:
                if compiling() or not watching.on:
                    return original(self_, *args, **kwargs)
                direction, why = self._unseen(self._copy_waits, self_, args, kwargs)
                run = lambda: original(self_, *args, **kwargs)  # noqa: E731
                return self._copy("Tensor.copy_", direction, why, caller(), run)

            return wrapper

        self._patches.replace(self._torch.Tensor, "copy_", make)

    def _unseen(self, look: Callable[..., Looked], tensor: Any, *given: Any) -> Looked:
        """``look(tensor, *given)``, of which neither a subclass nor a mode of functions hears."""
        if not self._function_modes() and type(tensor) in self._plain:
            return look(tensor, *given)
        return unseen(self._torch, look, tensor, *given)

    def _copy_waits(self, target: Any, args: Any, kwargs: Any) -> Copy:
        """The direction of ``target.copy_(source, non_blocking)``, and why it waits."""
        try:
            source = args[0] if args else kwargs["other"]
            if not is_tensor(self._torch, source):
                return NO_COPY
            non_blocking = bool(args[1] if len(args) > 1 else kwargs.get("non_blocking"))
            to_device = target.is_cuda
            host, device = (source, target) if to_device else (target, source)
            judged = self._is_real(target) and self._is_real(source) and host.is_cpu and device.is_cuda
            why = copy_wait(host, device, non_blocking) if judged else None
            return "host-to-device" if to_device else "device-to-host", why
        except Exception:  # a tensor inside of vmap, say, which has no memory of its own
            return NO_COPY

    def _copy(
        self, label: str, direction: Direction | None, why: str | None, frame: FrameType, run: Callable[[], Any]
    ) -> Any:
        """``run`` a copy, and tell first that it waits, unless ``why`` is ``None``: then PyTorch may still warn."""
        if why is not None:
            return self._told(LiveWait(program_frame(frame), label, direction, before=True, why=why), run)
        outer, self.call.direction = self.call.direction, direction
        try:
            return run()
        finally:
            self.call.direction = outer

    def _conversion_waits(self, tensor: Any, name: str, args: Any, kwargs: Any) -> Copy:
        """The direction of a call of ``to``, ``cuda`` or ``cpu``, and why it waits."""
        try:
            why = self._conversion_surely_waits(tensor, name, args, kwargs) if self._is_real(tensor) else None
            return "device-to-host" if tensor.is_cuda else "host-to-device", why
        except Exception:  # as above, or arguments of which PyTorch itself will say what is wrong
            return NO_COPY

    def _conversion_surely_waits(self, tensor: Any, name: str, args: Any, kwargs: Any) -> str | None:
        if name == "cpu":
            return "" if tensor.is_cuda and tensor.numel() else None
        if name == "cuda":
            if tensor.is_cuda or not tensor.is_cpu:
                return None
            given = args[1] if len(args) > 1 else kwargs.get("non_blocking")
            return copy_wait(tensor, None, bool(given))
        device, _, non_blocking, _ = self._parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
        kind = device.type if device is not None else None
        if tensor.is_cpu and kind == "cuda":
            return copy_wait(tensor, None, non_blocking)
        # With non_blocking PyTorch makes a pinned tensor on the host.
        return "" if tensor.is_cuda and kind == "cpu" and not non_blocking and tensor.numel() else None

    def _is_real(self, tensor: Any) -> bool:
        """Whether a call on it does what its name says: neither the operators of a subclass nor a mode decide
        otherwise."""
        kind = type(tensor)
        own = kind in self._plain or getattr(kind, "__torch_dispatch__", None) is self._plain_dispatch
        return own and not self._modes_open() and tensor.layout is self._strided

    def _record_operators(self, owner: Any) -> None:
        """Hear the warnings of operators."""
        known, look_up = self._operators.known, self._operators.look_up

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                ignored = known.get(id(args[0]))
                if ignored or (ignored is None and look_up(args[0])):
                    return original(*args, **kwargs)
                return self._hear(original, args, kwargs)

            return wrapper

        self._patches.replace(owner, "__call__", make)

    def _suspend_warnings(self, owner: Any, name: str) -> None:
        self._record_unwarned(owner, name, "")

    def _record_unwarned(self, owner: Any, name: str, label: str) -> None:
        """Hear the warnings of ``owner.name``."""

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return self._hear(original, args, kwargs)

            return wrapper

        self._patches.replace(owner, name, make)

    def _hear(self, original: Any, args: Any, kwargs: Any) -> Any:
        """Call ``original``. Its warnings reach Python."""
        if self._compiling():
            return original(*args, **kwargs)
        if self._hearing is None:  # C++ would print a line
            self._mode.suspend()
            try:
                return original(*args, **kwargs)
            finally:
                self._mode.resume()
        self._mode.hear()
        try:
            return self._hearing(original, args, kwargs)
        finally:
            self._mode.hear_no_more()

    def _follow_backward(self) -> None:
        watching = self._watching

        def make(original: Any) -> Any:
            def run_backward(*args: Any, **kwargs: Any) -> Any:
                if not watching.on:
                    return original(*args, **kwargs)
                return watching.backward(lambda: original(*args, **kwargs))

            return run_backward

        self._patches.replace(self._torch.autograd, "_engine_run_backward", make)


def hearing(torch: Any) -> Callable[[Any, Any, Any], Any] | None:
    """What calls ``function(*args, **kwargs)`` so that C++'s warnings on this thread reach Python, ``None`` in a
    PyTorch that has no such call.

    They do in every function of PyTorch that Python calls, but not in those called by ``torch.ops`` and not in those of
    C++ extensions. So this calls Python again from inside of one that does nothing else: it would switch
    ``__torch_function__`` of subclasses off, and that is switched on again.
    """
    through = find(torch, "_C._disabled_torch_function_impl")
    enabled, enable = find(torch, "_C._is_torch_function_enabled"), find(torch, "_C._EnableTorchFunction")
    if through is None or enabled is None or enable is None:
        return None

    def hear(function: Any, args: Any, kwargs: Any) -> Any:
        if not enabled():
            return through(function, (), args, kwargs)

        def run() -> Any:
            with enable():
                return function(*args, **kwargs)

        return through(run, (), (), {})

    return hear


class _Unheard:
    """Hears of calls when they are over. Nobody does: how long one took says only that it may have waited, and a guard
    must say the same each time."""

    def waited(self, name: str, start_ns: int, frame: Any) -> None: ...

    may_have_waited = waited

    def copied(self, name: str, start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None: ...

    def passed(self) -> None: ...
