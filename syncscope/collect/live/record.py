"""Record the waits of a block of code, each with its line: for tests, without profiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import NamedTuple, overload

from syncscope.collect.annotations import expectation
from syncscope.collect.features import SYNC_DEBUG_MODE, lacking
from syncscope.collect.live.guard import fix_for
from syncscope.collect.live.open_blocks import OpenBlocks
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import program_frame, sync_debug_mode
from syncscope.collect.sites.wrappers import EXPLICIT, CallWrappers
from syncscope.schema.expressions import called_name
from syncscope.schema.recording import RecordedFrame


class Wait(NamedTuple):
    """One wait for the device."""

    file: str
    """As in reports: relative to the project, else ``<site-packages>/…`` or ``<python>/…``."""
    line: int | None
    function: str
    expression: str | None
    at: str
    """``file:line`` of the innermost frame: the place itself, or inside a library that it calls."""
    fix: str


def unavailable() -> str | None:
    """Why no wait can be recorded here, ``None`` where it can."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch, which is not installed"
    if not torch.cuda.is_available():
        return "needs a GPU: there is none here"
    missing = lacking(torch, SYNC_DEBUG_MODE)
    return f"needs {', '.join(missing)}, which this PyTorch lacks" if missing else None


class record(Sequence[Wait]):
    """The waits of this thread in the block: ``with record(paths) as waits: …; len(waits)``.

    A sequence that grows while the block runs. It has the waits that PyTorch warns of, and the calls in ``EXPLICIT``.
    It lacks waits inside ``torch.ops`` operators and TorchScript, waits in libraries that PyTorch does not warn of
    (thrust, MAGMA), ``non_blocking`` copies of pageable memory, and everything inside ``syncscope.expected``.
    Blocks nest. Entering one needs a GPU: see ``unavailable``.
    """

    def __init__(self, paths: Paths) -> None:
        self._stacks = Stacks(paths)
        self._stack_numbers: list[int] = []
        self._waits: list[Wait] = []

    def __enter__(self) -> record:
        _blocks.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _blocks.leave()

    @overload
    def __getitem__(self, index: int) -> Wait: ...
    @overload
    def __getitem__(self, index: slice) -> list[Wait]: ...
    def __getitem__(self, index: int | slice) -> Wait | list[Wait]:
        return self._resolved()[index]

    def __len__(self) -> int:
        return len(self._stack_numbers)

    def add(self, frame: FrameType) -> None:
        """Add a wait at ``frame``."""
        self._stack_numbers.append(self._stacks.take(frame))

    def _resolved(self) -> list[Wait]:
        missing = self._stack_numbers[len(self._waits) :]
        if missing:
            frames, stacks = self._stacks.resolve()
            self._waits += [_wait([frames[i] for i in stacks[number]]) for number in missing]
        return self._waits


def _wait(stack: Sequence[RecordedFrame]) -> Wait:
    """A wait at its user's line: the innermost frame of the user's, else the outermost frame."""
    at = stack[-1]
    site = next((frame for frame in reversed(stack) if frame.user), stack[0])
    # The call at the innermost frame says more than the one that led there.
    fix = fix_for(*(called_name(frame.expression) for frame in (at, site)))
    return Wait(site.file, site.line, site.function, site.expression, f"{at.file}:{at.line}", fix)


def _start() -> Iterator[Callable[[], None]]:
    import torch

    torch.cuda.init()
    sync_debug_mode.listen(torch, _on_wait)
    yield lambda: sync_debug_mode.unlisten(_on_wait)
    wrappers = CallWrappers(torch, _on_call, sync_debug_mode)
    wrappers.open_waits()
    yield wrappers.close


def _on_call(name: str, start_ns: int, frame: FrameType) -> None:
    if name in EXPLICIT:
        _on_wait(program_frame(frame))


def _on_wait(frame: FrameType) -> None:
    if expectation.reason is None:
        for block in _blocks.of_this_thread:
            block.add(frame)


_blocks: OpenBlocks[record] = OpenBlocks(_start)
