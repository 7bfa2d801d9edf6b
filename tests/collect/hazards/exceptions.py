"""Exceptions on their way through frames that hold and free tensors, and what arrives of them.

A case takes ``make``, which returns a new tensor, and raises or returns a value. ``outcome`` says all that the program
can tell of it. Programs that tests start as ``python program.py`` use the cases too.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch

from syncscope.collect.schedule import StopProgram

Make = Callable[[], Any]
Outcome = dict[str, Any]


def through_frames(make: Make, fail: Callable[[], Any], depth: int = 4) -> Any:
    """Call ``fail`` below frames that each hold tensors, which are freed while the exception passes."""
    held = make()
    doubled = [held * 2, held.view(-1)[1:]]
    if depth:
        return through_frames(make, fail, depth - 1)
    value = fail()
    return value, len(doubled)


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def user_error(make: Make) -> Any:
    through_frames(make, raising(ValueError("a user's error", 3)))


def error_of_an_operator(make: Make) -> Any:
    through_frames(make, lambda: make() + torch.ones(3, device=make().device))


def caught_on_the_way(make: Make) -> Any:
    seen = []
    for key in range(5):
        try:
            through_frames(make, raising(KeyError(key)))
        except KeyError as error:
            seen.append((str(error), hasattr(make(), "no_such_attribute")))
    return seen


def _batches(make: Make, n: int = 3) -> Generator[Any, None, Any]:
    for _ in range(n):
        batch = make()
        yield batch * 2
    return tuple(make().shape)


def end_of_a_generator(make: Make) -> Any:
    empty = _batches(make, 0)
    through_frames(make, lambda: next(empty))


def end_of_loops(make: Make) -> Any:
    return [len(list(enumerate(_batches(make)))), sum(1 for _ in _batches(make)), len([*map(len, _batches(make))])]


def keyboard_interrupt(make: Make) -> Any:
    if threading.current_thread() is threading.main_thread():
        through_frames(make, lambda: signal.raise_signal(signal.SIGINT))
    through_frames(make, raising(KeyboardInterrupt()))


def system_exit(make: Make) -> Any:
    through_frames(make, raising(SystemExit(5)))


def closed_generator(make: Make) -> Any:
    seen: list[str] = []

    def wait() -> Iterator[Any]:
        held = make()
        try:
            yield held
        except GeneratorExit as error:
            seen.append(type(error).__name__)
            raise

    generator = wait()
    next(generator)
    generator.close()  # type: ignore[attr-defined]
    dropped = wait()
    next(dropped)
    del dropped
    try:
        through_frames(make, raising(GeneratorExit("thrown")))
    except GeneratorExit as error:
        seen.append(str(error))
    return seen


def _backward(make: Make, hook: Callable[[Any], Any] | None = None, fail: Callable[[], Any] | None = None) -> Any:
    class Node(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            temporary = x * grad
            return temporary if fail is None else through_frames(make, fail)

    leaf = make().requires_grad_()
    hidden = Node.apply(leaf)
    if hook is not None:
        hidden.register_hook(hook)
    hidden.sum().backward()


def error_in_backward(make: Make) -> Any:
    _backward(make, fail=raising(ArithmeticError("in backward")))


def error_in_a_hook(make: Make) -> Any:
    def hook(grad: Any) -> Any:
        through_frames(make, raising(LookupError("in a hook")))

    _backward(make, hook=hook)


def error_in_del(make: Make) -> Any:
    seen: list[tuple[str, str]] = []

    class Careless:
        def __init__(self) -> None:
            self.held = make()

        def __del__(self) -> None:
            freed = self.held * 2
            del freed
            raise OSError("in __del__")

    def fail() -> Any:
        careless = Careless()
        raise RuntimeError("on the way", len(careless.held))

    outer = sys.unraisablehook
    sys.unraisablehook = lambda found: seen.append((type(found.exc_value).__name__, str(found.exc_value)))
    try:
        del Careless().held
        through_frames(make, fail)
    except RuntimeError as error:
        error.__traceback__ = None
        seen.append((type(error).__name__, str(error)))
        del error
    finally:
        sys.unraisablehook = outer
    return seen


def chained(make: Make) -> Any:
    def fail() -> Any:
        try:
            through_frames(make, raising(KeyError("first")))
        except KeyError as error:
            held = make()
            raise TypeError("second", len(held)) from error

    try:
        through_frames(make, fail)
    finally:
        through_frames(make, lambda: None)


def in_a_handler(make: Make) -> Any:
    try:
        through_frames(make, raising(KeyError("first")))
    except KeyError:
        through_frames(make, raising(TypeError("second")))


def group(make: Make) -> Any:
    errors = []
    for error in (ValueError("one"), TypeError("two")):
        try:
            through_frames(make, raising(error))
        except (ValueError, TypeError) as caught:
            errors.append(caught)
    through_frames(make, raising(ExceptionGroup("several", errors)))  # noqa: F821


def end_of_the_program(make: Make) -> Any:
    through_frames(make, raising(StopProgram(0)))


CASES: dict[str, Callable[[Make], Any]] = {
    case.__name__: case
    for case in (
        user_error, error_of_an_operator, caught_on_the_way, end_of_a_generator, end_of_loops, keyboard_interrupt,
        system_exit, closed_generator, error_in_backward, error_in_a_hook, error_in_del, chained, in_a_handler,
        end_of_the_program,
    )
}  # fmt: skip
if sys.version_info >= (3, 11):
    CASES["group"] = group


def outcome(case: Callable[[Make], Any], make: Make, *, thread: bool = False) -> Outcome:
    """What ``case`` returns or raises, on this thread or on one of its own."""
    if not thread:
        return _outcome(case, make)
    outcomes: list[Outcome] = []
    other = threading.Thread(target=lambda: outcomes.append(_outcome(case, make)))
    other.start()
    other.join()
    return outcomes[0]


def _outcome(case: Callable[[Make], Any], make: Make) -> Outcome:
    try:
        return {"returned": case(make)}
    except BaseException as error:
        return _described(error)


def _described(error: BaseException | None) -> Any:
    if error is None:
        return None
    inner = getattr(error, "exceptions", ())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "text": str(error),
        "arguments": [arg for arg in error.args if not isinstance(arg, list)],
        "traceback": [(frame.name, frame.lineno) for frame in frames],
        "cause": _described(error.__cause__),
        "context": _described(error.__context__),
        "suppressed": error.__suppress_context__,
        "group": [_described(one) for one in inner],
    }
