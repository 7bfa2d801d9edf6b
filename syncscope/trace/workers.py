"""Pieces of a file → parts, in this process at first and in worker processes where there is more to read.

A worker is a fresh interpreter, neither forked (this process may have threads and a GPU) nor given the program's main
module, and loads no pandas. It reads pieces on its standard input, or where in the shared file they are, and answers
with their columns; a thread here waits for each. It is of a session of its own, so Ctrl-C reaches only this process,
and ends when its input does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope.trace.decode import decode_piece
from syncscope.trace.pieces import Piece, Pieces
from syncscope.trace.rows import Part, Strings, split
from syncscope.trace.source import Unclear
from syncscope.trace.spans import Buffer, Span

ALONE = 16
"""Pieces read in this process before workers are started, which takes a quarter of a second."""

MOST_WORKERS = 4
"""More of them wait for this process, which inflates and cuts."""

_START = "import sys; _, file, *sys.path = sys.argv; from syncscope.trace.workers import serve; serve(int(file))"
_AHEAD = 3  # pieces under way, for each worker
_SENT = -1
_ASKED = struct.Struct("<qq")  # where a span begins and ends; or that the piece follows, and its length
_SIZE = 8  # bytes of an answer's length
_INT32 = np.iinfo(np.int32)


class WorkerLost(Exception):
    """A worker could not be started, or is gone."""


class Answer(msgspec.Struct):
    """What becomes of a piece."""

    part: Part | None
    """``None`` where the piece is unclear."""
    texts: list[str] = []
    """The strings that are new, in the order of their numbers."""


def parts(pieces: Pieces, strings: Strings, workers: int) -> Iterator[Part]:
    """The parts in the pieces' order; the names in them are numbers of ``strings``.

    Raises :class:`.Unclear`, and :class:`WorkerLost`.
    """
    remaining, buffer = iter(pieces), Buffer()
    for number, piece in enumerate(remaining, start=1):
        yield split(decode_piece(_list(piece, pieces.file, buffer)), strings)
        if number == ALONE and workers > 1:
            break
    else:
        return
    with _Team(workers, pieces.file) as team:
        yield from team.parts(remaining, strings)


def _list(piece: Piece, file: int | None, buffer: Buffer) -> memoryview:
    if isinstance(piece, memoryview):
        return buffer.copy(piece)
    assert file is not None
    return buffer.read(file, piece)


def default_workers() -> int:
    """As many as there are cores for this process, 1 where no worker can be started."""
    if not sys.executable or getattr(sys, "frozen", False):
        return 1
    return min(available_cores(), MOST_WORKERS)


def available_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
"""glibc gives the memory of each piece back to the system, and gets it again for the next, unless told otherwise."""


class _Team:
    """Workers, each with a thread here that feeds it."""

    def __init__(self, workers: int, file: int | None) -> None:
        self._size = workers
        self._file = file
        self._threads = ThreadPoolExecutor(workers)
        self._own = threading.local()
        self._workers: list[_Worker] = []

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()  # so that its thread ends
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def parts(self, pieces: Iterator[Piece], strings: Strings) -> Iterator[Part]:
        pending: deque[Future[tuple[_Worker, bytes]]] = deque()
        for piece in pieces:
            pending.append(self._threads.submit(self._ask, piece))
            if len(pending) >= _AHEAD * self._size:
                yield _taken(*pending.popleft().result(), strings)
        while pending:
            yield _taken(*pending.popleft().result(), strings)

    def _ask(self, piece: Piece) -> tuple[_Worker, bytes]:
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker(self._file)
            self._workers.append(worker)
        return worker, worker.ask(piece)


class _Worker:
    def __init__(self, file: int | None) -> None:
        self.numbers: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        """The number here of each string that the worker has told."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(-1 if file is None else file), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if file is None else (file,),
                env={**os.environ, **_KEEP_MEMORY, "OPENBLAS_NUM_THREADS": "1"},
            )
        except OSError:
            raise WorkerLost from None

    def ask(self, piece: Piece) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _ask(self._process.stdin, piece)
            answer = _receive(self._process.stdout)
        except (OSError, ValueError):
            raise WorkerLost from None
        if not answer:
            raise WorkerLost
        return answer

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def serve(file: int) -> None:
    """What a worker does; ``file`` is the descriptor that it shares, if any."""
    gc.disable()  # what a piece leaves behind holds no cycles
    strings, buffer = Strings(), Buffer()
    told = 0
    while (asked := sys.stdin.buffer.read(_ASKED.size)) and len(asked) == _ASKED.size:
        start, end = _ASKED.unpack(asked)
        try:
            text = buffer.receive(sys.stdin.buffer, end) if start == _SENT else buffer.read(file, Span(start, end))
            if text is None:
                break
            part = split(decode_piece(text), strings)
        except Unclear:
            part = None
        texts = list(strings)[told:] if len(strings) > told else []
        told = len(strings)
        _answer(sys.stdout.buffer, msgspec.msgpack.encode(Answer(part, texts), enc_hook=_packed))


def _taken(worker: _Worker, data: bytes, strings: Strings) -> Part:
    """The part, its names in our numbers."""
    answer = msgspec.msgpack.decode(data, type=Answer, dec_hook=_unpacked)
    if answer.part is None:
        raise Unclear
    if answer.texts:
        worker.numbers = np.concatenate([worker.numbers, strings.column(answer.texts).astype(np.int32)])
    answer.part.renumber(worker.numbers)
    return answer.part


def _ask(stream: IO[bytes], piece: Piece) -> None:
    if isinstance(piece, Span):
        stream.write(_ASKED.pack(*piece))
    else:
        stream.write(_ASKED.pack(_SENT, len(piece)))
        stream.write(piece)
    stream.flush()


def _answer(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(_SIZE, "little"))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """A message; nothing at the end of the stream."""
    size = int.from_bytes(stream.read(_SIZE), "little")
    data = stream.read(size)
    return data if len(data) == size else b""


def _packed(column: Any) -> tuple[int, bytes]:
    """A column in as few bytes as hold it."""
    narrow = not len(column) or (column.min() >= _INT32.min and column.max() <= _INT32.max)
    packed = column.astype(np.int32) if narrow else column
    return packed.itemsize, packed.tobytes()


def _unpacked(kind: type, packed: Any) -> Any:
    size, data = packed
    return np.frombuffer(data, dtype=f"i{size}")
