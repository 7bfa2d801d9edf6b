"""The marks ``max_recompiles`` and ``max_graph_breaks``: what ``torch.compile`` may do in a test's body."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from syncscope.collect.paths import Paths
    from syncscope.schema.compiling import CompileEvent, CompileKind
    from syncscope.schema.recording import RecordedFrame

MARKS: Mapping[str, tuple[CompileKind, str, str]] = {
    "max_recompiles": ("recompile", "recompile{}", "torch.compile compiles a function again at most n times"),
    "max_graph_breaks": ("break", "graph break{}", "at most n lines end a graph of torch.compile"),
}
"""What each counts, in the record, in words, and as pytest lists it."""


def limits_of(item: pytest.Item) -> dict[str, int]:
    """The limits of a test's own marks, else of its class's or module's."""
    limits = {}
    for name in MARKS:
        mark = item.get_closest_marker(name)
        if mark is None:
            continue
        given = [*mark.args, *mark.kwargs.values()]
        if len(given) != 1 or set(mark.kwargs) - {"n"} or not _is_limit(given[0]):
            pytest.fail(f"{name} takes the number to allow, as in {name}(0)", pytrace=False)
        limits[name] = int(given[0])
    return limits


@contextlib.contextmanager
def limited(limits: Mapping[str, int], paths: Paths) -> Iterator[None]:
    """Fail the test where the block passes one of ``limits``. Skips it where there is no PyTorch."""
    torch = pytest.importorskip("torch", reason="only PyTorch compiles")
    from syncscope.collect.compiling.watch import CompileWatch
    from syncscope.collect.sites.stacks import Stacks
    from syncscope.collect.sites.threads import Threads

    stacks = Stacks(paths)
    watch = CompileWatch(stacks, Threads(), lambda frame: None)
    watch.open(torch)
    try:
        yield
    finally:
        watch.close()
    frames, found = stacks.resolve()
    if watch.failure or any(name.startswith("torch._dynamo") for name in watch.missing):
        why = watch.failure or f"This PyTorch lacks {watch.missing[0]}."
        pytest.fail(f"what torch.compile did could not be counted: {why}", pytrace=False)
    events = watch.log.recorded(()).events
    for name, limit in limits.items():
        kind, words, _ = MARKS[name]
        mine = [event for event in events if event.kind == kind and event.expected is None]
        lines = {_name_line(event, frames, found): event for event in reversed(mine)}
        number = len(lines) if kind == "break" else sum(event.count for event in mine)
        if number > limit:
            told = [f"  {line}: {event.reason or 'no reason given'}" for line, event in reversed(lines.items())]
            said = f"{number} {words.format('' if number == 1 else 's')}, at most {limit} allowed:"
            pytest.fail("\n".join([said, *told]), pytrace=False)


def _name_line(event: CompileEvent, frames: tuple[RecordedFrame, ...], stacks: tuple[tuple[int, ...], ...]) -> str:
    """``model.py:12  x * n  in Net.forward``: the innermost line of the user's."""
    stack = [frames[number] for number in stacks[event.stack]] if event.stack is not None else []
    frame = next((frame for frame in reversed(stack) if frame.user), stack[-1] if stack else None)
    return "a line" if frame is None else f"{frame.file}:{frame.line}  {frame.expression or ''}  in {frame.function}"


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
