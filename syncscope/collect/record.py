"""Record the waits of a block of code, each with its line: for tests, without profiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import NamedTuple, overload

from syncscope.collect.expected import reasons
from syncscope.collect.guard import fix_for
from syncscope.collect.live import Blocks
from syncscope.collect.paths import Paths
from syncscope.collect.stacks import Stacks
from syncscope.collect.warn import program_frame, waits
from syncscope.collect.wrap import EXPLICIT, Wrappers
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
    """Why no wait can be recorded here, ``None`` when it can."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch, which is not installed"
    return None if torch.cuda.is_available() else "needs a GPU: there is none here"


class record(Sequence[Wait]):
    """The waits of this thread in the block: ``with record(paths) as waits: …; len(waits)``.

    A sequence, which grows while the block runs. Seen are the waits that PyTorch warns of and the calls ``EXPLICIT``;
    not waits inside ``torch.ops`` operators and TorchScript, in libraries that PyTorch does not warn of (thrust,
    MAGMA), and ``non_blocking`` copies of pageable memory. What happens inside of ``syncscope.expected`` is left out.
    Blocks nest. Entering one needs a GPU (``unavailable``).
    """

    def __init__(self, paths: Paths) -> None:
        self._stacks = Stacks(paths)
        self._taken: list[int] = []
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
        return len(self._taken)

    def seen(self, frame: FrameType) -> None:
        """A wait at ``frame`` returned."""
        self._taken.append(self._stacks.take(frame))

    def _resolved(self) -> list[Wait]:
        missing = self._taken[len(self._waits) :]
        if missing:
            frames, stacks = self._stacks.resolve()
            self._waits += [_wait([frames[i] for i in stacks[number]]) for number in missing]
        return self._waits


def _wait(stack: Sequence[RecordedFrame]) -> Wait:
    """A wait at the user's line: the innermost user frame, else the outermost one."""
    at = stack[-1]
    site = next((frame for frame in reversed(stack) if frame.user), stack[0])
    # What is called at the innermost frame says more than the call that led there.
    fix = fix_for(*(called_name(frame.expression) for frame in (at, site)))
    return Wait(site.file, site.line, site.function, site.expression, f"{at.file}:{at.line}", fix)


def _begin() -> Iterator[Callable[[], None]]:
    import torch

    torch.cuda.init()
    waits.listen(torch, _seen)
    yield lambda: waits.unlisten(_seen)
    wrappers = Wrappers(torch, _called, waits)
    wrappers.open_waits()
    yield wrappers.close


def _called(name: str, start_ns: int, frame: FrameType) -> None:
    if name in EXPLICIT:
        _seen(program_frame(frame))


def _seen(frame: FrameType) -> None:
    if reasons.current is None:
        for block in _blocks.here:
            block.seen(frame)


_blocks: Blocks[record] = Blocks(_begin)
