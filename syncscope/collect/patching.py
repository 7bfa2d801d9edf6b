"""Replace attributes of PyTorch's classes and modules for a while, and put them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodDescriptorType, MethodType
from typing import Any, Protocol

_MISSING: Any = object()


class Gate(Protocol):
    """Says whether anybody looks at calls now."""

    @property
    def on(self) -> bool: ...


class Patches:
    """Replaces attributes. ``restore`` puts back what was there.

    A replacement keeps the name, the docstring and the signature of what it replaces, and can be pickled. A method of
    C's is only replaced for its instances: see ``OfInstances``. Given ``torch``, Python runs the replacements
    even where Dynamo compiles every frame it meets. ``take_out`` and ``put_in`` switch all replacements off and on in
    microseconds.
    """

    def __init__(self, torch: Any = None) -> None:
        self._torch = torch
        self._made: list[_Replacement] = []
        self._out = False

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any], gate: Gate | None = None) -> None:
        """Set ``owner.name`` to ``make(original)``. An inherited attribute is shadowed, an absent one left alone. While
        ``gate`` is off, instances may have the original of a method of C's."""
        shown = getattr(owner, name, None)
        if shown is None:
            return
        there = vars(owner).get(name, _MISSING)
        original = there.function if isinstance(there, OfInstances) else shown
        replacement = make(original)
        if self._torch is not None:
            skip_in_dynamo(self._torch, replacement)
        _make_look_like(replacement, shown, owner, name)
        if isinstance(shown, MethodDescriptorType) and isinstance(replacement, FunctionType):
            replacement = OfInstances(replacement, original, shown, gate or _ALWAYS)
        made = _Replacement(owner, name, there, replacement)
        self._made.append(made)
        _open.append(made)
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Undo every replacement, the latest first. Does nothing the second time.

        A replacement of ours that came on top stays, and puts back what was there before this one. What somebody else
        has put there meanwhile stays too, and may call ours.
        """
        while self._made:
            made = self._made.pop()
            _open.remove(made)
            above = made.above()
            if above is not None:
                above.original = made.original
            elif not self._out and made.there is made.replacement:
                made.put_back()

    def take_out(self) -> None:
        """Put back what was there, until ``put_in``. What somebody replaced in the meantime stays as it is."""
        self._out = True
        for made in reversed(self._made):
            if made.there is made.replacement:
                made.put_back()

    def put_in(self) -> None:
        """Undo ``take_out``. What somebody replaced in the meantime stays as it is."""
        self._out = False
        for made in self._made:
            if made.there is made.original:
                setattr(made.owner, made.name, made.replacement)


class OfInstances:
    """Replaces a method of C's where an instance is asked for it. The class has the original.

    A class that says what functions do with its tensors (``__torch_function__``), or a mode that does, is given what
    ``torch.Tensor`` has, and looks it up in a table that was made before, or compares it with what is there now. It
    would know no replacement.
    """

    __slots__ = ("function", "gate", "original", "shown")

    def __init__(self, function: Any, original: Any, shown: Any, gate: Gate) -> None:
        self.function = function
        self.original = original
        """What was there before: maybe a function that replaced ``shown``."""
        self.shown = shown
        """What the class has."""
        self.gate = gate

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.shown
        if self.gate.on:
            return MethodType(self.function, instance)
        return self.original.__get__(instance, owner)

    # Dynamo looks into the class itself, and compares what it finds with what the class shows, and calls it.

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.shown

    def __hash__(self) -> int:
        return hash(self.shown)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.shown(*args, **kwargs)


class _Always:
    on = True


_ALWAYS = _Always()


def _make_look_like(replacement: Any, original: Any, owner: Any, name: str) -> None:
    """Give ``replacement`` the name, docstring and signature of ``original``. It is pickled by where it is found."""
    module = owner.__module__ if isinstance(owner, type) else getattr(owner, "__name__", None)
    place = f"{owner.__qualname__}.{name}" if isinstance(owner, type) else name
    looks = {
        "__name__": getattr(original, "__name__", None),
        "__doc__": getattr(original, "__doc__", None),
        "__module__": module,
        "__qualname__": place,
        "__wrapped__": original,
    }
    for attribute, value in looks.items():
        try:
            setattr(replacement, attribute, value)
        except (AttributeError, TypeError):
            continue


@dataclass(eq=False, slots=True)
class _Replacement:
    owner: Any
    name: str
    original: Any
    """``_MISSING`` where it was inherited."""
    replacement: Any

    @property
    def there(self) -> Any:
        return vars(self.owner).get(self.name, _MISSING)

    def put_back(self) -> None:
        if self.original is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)

    def above(self) -> _Replacement | None:
        """The one that replaced this one."""
        return next((other for other in _open if other.original is self.replacement), None)


_open: list[_Replacement] = []


def tracing(torch: Any) -> Callable[[], bool]:
    """What tells a hook that Dynamo traces it, so that compiled code holds nothing of what the hook reads.

    In a program that runs it is the cheapest call of Python's. ``is_compiling`` calls one more, and is true as well
    where PyTorch exports a program by running it.
    """
    compiler = torch.compiler
    found: Callable[[], bool] = getattr(compiler, "is_dynamo_compiling", None) or compiler.is_compiling
    return found


def skip_in_dynamo(torch: Any, function: Any) -> None:
    """Tell Dynamo not to compile ``function``. Does not import Dynamo.

    Dynamo still traces through the function when compiled code calls it. ``torch.compiler.is_compiling()`` is true
    there.
    """
    evaluator = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if evaluator is None or not isinstance(function, FunctionType):
        return
    action, strategy = getattr(evaluator, "_FrameAction", None), getattr(evaluator, "_FrameExecStrategy", None)
    if hasattr(evaluator, "set_code_exec_strategy") and action is not None and strategy is not None:
        evaluator.set_code_exec_strategy(function.__code__, strategy(action.SKIP, action.DEFAULT))
    elif hasattr(evaluator, "skip_code"):
        evaluator.skip_code(function.__code__)
