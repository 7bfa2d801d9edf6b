"""Replace attributes of PyTorch's classes and modules for a while, and put them back."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_MISSING: Any = object()


class Patches:
    """Replaces attributes. ``restore`` puts back what was there.

    A replacement keeps the name and the docstring of what it replaces. Given ``torch``, Python runs the replacements
    even where Dynamo compiles every frame it meets. ``take_out`` and ``put_in`` switch all replacements off and on in
    microseconds.
    """

    def __init__(self, torch: Any = None) -> None:
        self._torch = torch
        self._originals: list[tuple[Any, str, Any]] = []
        self._replacements: list[Any] = []
        self._out = False

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set ``owner.name`` to ``make(original)``. An inherited attribute is shadowed, an absent one left alone."""
        original = getattr(owner, name, None)
        if original is None:
            return
        replacement = make(original)
        if self._torch is not None:
            skip_in_dynamo(self._torch, replacement)
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            try:
                setattr(replacement, attribute, getattr(original, attribute))
            except (AttributeError, TypeError):
                continue
        self._originals.append((owner, name, vars(owner).get(name, _MISSING)))
        self._replacements.append(replacement)
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Undo every replacement, the latest first. Does nothing the second time."""
        while self._originals:
            owner, name, original = self._originals.pop()
            self._replacements.pop()
            if not self._out:
                _put_back(owner, name, original)

    def take_out(self) -> None:
        """Put back what was there, until ``put_in``. What somebody replaced in the meantime stays as it is."""
        self._out = True
        for (owner, name, original), replacement in zip(self._originals[::-1], self._replacements[::-1], strict=True):
            if vars(owner).get(name) is replacement:
                _put_back(owner, name, original)

    def put_in(self) -> None:
        """Undo ``take_out``. What somebody replaced in the meantime stays as it is."""
        self._out = False
        for (owner, name, original), replacement in zip(self._originals, self._replacements, strict=True):
            if vars(owner).get(name, _MISSING) is original:
                setattr(owner, name, replacement)


def _put_back(owner: Any, name: str, original: Any) -> None:
    if original is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


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
