"""Keep ``torch.compile`` away from our own functions."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def skip(torch: Any, function: Any) -> Any:
    """``function``, run by Python even where Dynamo compiles every frame it meets. Does not import Dynamo.

    What Dynamo inlines while it traces is not affected: there ``torch.compiler.is_compiling()`` is true.
    """
    evaluator = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if evaluator is None or not isinstance(function, FunctionType):
        return function
    if hasattr(evaluator, "set_code_exec_strategy"):
        action = evaluator._FrameAction
        strategy = evaluator._FrameExecStrategy(action.SKIP, action.DEFAULT)
        evaluator.set_code_exec_strategy(function.__code__, strategy)
    elif hasattr(evaluator, "skip_code"):
        evaluator.skip_code(function.__code__)
    return function
