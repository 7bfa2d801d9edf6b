"""Pieces of a file → parts: in this process at first, then in worker processes where there is more to read.

A worker is a fresh interpreter. It is not forked, since this process may have threads and a GPU; it does not import the
program's main module, which may have no guard; and it imports only what decodes. It reads pieces on its standard input,
or where in the shared file they are, and answers with their columns. A thread of this process waits for each worker. A
worker has a session of its own, so that Ctrl-C reaches only this process, and it ends when its input does.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope.trace.decoding.columns import Part, Strings, split
from syncscope.trace.decoding.decode import decode_piece
from syncscope.trace.decoding.pieces import Buffer, Piece, Pieces, Span
from syncscope.trace.source import PiecesFailed

if TYPE_CHECKING:
    from concurrent.futures import Future

PIECES_BEFORE_WORKERS = 16
"""Pieces decoded in this process before workers are started, which takes a quarter of a second."""

MOST_WORKERS = 4
"""With more, they wait for this process, which inflates and cuts."""

_START = "import sys; _, file, *sys.path = sys.argv; from syncscope.trace.workers import serve; serve(int(file))"
_UNDER_WAY = 3  # pieces, for each worker
_REQUEST = struct.Struct("<qq")  # where a span begins and ends; or _SENT, and the length of the piece that follows
_SENT = -1
_STARTED = b"!"
"""What a worker says first."""
_SIZE = 8  # bytes of a reply's length
T = TypeVar("T")

_INT32 = np.iinfo(np.int32)
_ENVIRONMENT = {
    # By default glibc returns the memory of each piece to the system, and gets it again for the next one.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "OPENBLAS_NUM_THREADS": "1",
}


class WorkerLost(Exception):
    """A worker could not be started, or has died."""


class Reply(msgspec.Struct):
    """What a worker makes of a piece."""

    part: Part | None
    """``None`` where the piece cannot be decoded."""
    texts: list[str] = []
    """The strings that are new to this worker, in the order of their numbers."""


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers() -> int:
    """One worker for each core, at most :data:`MOST_WORKERS`; 1 where no interpreter can be started."""
    if not sys.executable or getattr(sys, "frozen", False):
        return 1
    return min(available_cores(), MOST_WORKERS)


def decode_pieces(pieces: Pieces, strings: Strings, workers: int) -> Iterator[Part]:
    """The parts, in the pieces' order. Their names are numbers of ``strings``.

    Raises :class:`.PiecesFailed`, and :class:`WorkerLost`.
    """
    remaining, buffer = iter(pieces), Buffer()
    for number, piece in enumerate(remaining, start=1):
        yield split(decode_piece(_read(piece, pieces.file, buffer)), strings)
        if number == PIECES_BEFORE_WORKERS and workers > 1:
            break
    else:
        return
    with _Team(workers, pieces.file) as team:
        for piece in remaining:
            if team.is_ready():
                yield from team.decode(itertools.chain([piece], remaining), strings)
            else:  # which takes as long as to decode fifty pieces
                yield split(decode_piece(_read(piece, pieces.file, buffer)), strings)


def _read(piece: Piece, file: int | None, buffer: Buffer) -> memoryview:
    if isinstance(piece, memoryview):
        return buffer.copy(piece)
    assert file is not None
    return buffer.read(file, piece)


# ---------------------------------------------------------------------------------------------- in this process


class _Team:
    """Workers, each with a thread of this process that sends it pieces."""

    def __init__(self, workers: int, file: int | None) -> None:
        from concurrent.futures import ThreadPoolExecutor  # with logging: small files do without

        self._size = workers
        self._file = file
        self._threads = ThreadPoolExecutor(workers)
        self._own = threading.local()
        self._workers: list[_Worker] = []
        self._starting: list[Future[_Worker]] = []

    def __enter__(self) -> _Team:
        self._starting = [self._submit(self._own_worker) for _ in range(self._size)]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()  # so that its thread ends
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def is_ready(self) -> bool:
        """Whether a worker has started. Raises :class:`WorkerLost`."""
        started = [starting.result() for starting in self._starting if starting.done()]
        return bool(started)

    def decode(self, pieces: Iterator[Piece], strings: Strings) -> Iterator[Part]:
        pending: deque[Future[tuple[_Worker, bytes]]] = deque()
        for piece in pieces:
            pending.append(self._submit(self._request, piece))
            if len(pending) >= _UNDER_WAY * self._size:
                yield _part(*pending.popleft().result(), strings)
        while pending:
            yield _part(*pending.popleft().result(), strings)

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        try:
            return self._threads.submit(work, *arguments)
        except RuntimeError as error:  # Python ends, and starts no thread any more
            raise WorkerLost(str(error)) from None

    def _own_worker(self) -> _Worker:
        """Runs in a thread: the thread's own worker, once it has started."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker(self._file)
            self._workers.append(worker)
            worker.wait_until_started()
        return worker

    def _request(self, piece: Piece) -> tuple[_Worker, bytes]:
        """Runs in a thread: the reply of the thread's own worker."""
        worker = self._own_worker()
        return worker, worker.request(piece)


class _Worker:
    def __init__(self, file: int | None) -> None:
        self.numbers: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        """By the worker's number of a string: the number of that string in this process."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(-1 if file is None else file), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if file is None else (file,),
                env={**os.environ, **_ENVIRONMENT},
            )
        except OSError:
            raise WorkerLost from None

    def wait_until_started(self) -> None:
        """Raises :class:`WorkerLost`."""
        assert self._process.stdout is not None
        try:
            started = self._process.stdout.read(len(_STARTED))
        except (OSError, ValueError):
            raise WorkerLost from None
        if started != _STARTED:
            raise WorkerLost

    def request(self, piece: Piece) -> bytes:
        """Send a piece and wait for the reply. Raises :class:`WorkerLost`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send_request(self._process.stdin, piece)
            reply = _receive_reply(self._process.stdout)
        except (OSError, ValueError):
            raise WorkerLost from None
        if not reply:
            raise WorkerLost
        return reply

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _part(worker: _Worker, data: bytes, strings: Strings) -> Part:
    """The part in a reply, with this process's numbers of strings."""
    reply = msgspec.msgpack.decode(data, type=Reply, dec_hook=_unpack)
    if reply.part is None:
        raise PiecesFailed
    if reply.texts:
        worker.numbers = np.concatenate([worker.numbers, strings.column(reply.texts).astype(np.int32)])
    reply.part.renumber(worker.numbers)
    return reply.part


# -------------------------------------------------------------------------------------------------- in a worker


def serve(file: int) -> None:
    """Runs in a worker until its input ends. ``file`` is the shared descriptor, −1 for none."""
    gc.disable()  # what a piece leaves behind holds no cycles
    sys.stdout.buffer.write(_STARTED)
    sys.stdout.buffer.flush()
    strings, buffer = Strings(), Buffer()
    sent = 0
    while len(request := sys.stdin.buffer.read(_REQUEST.size)) == _REQUEST.size:
        start, end = _REQUEST.unpack(request)
        try:
            text = buffer.receive(sys.stdin.buffer, end) if start == _SENT else buffer.read(file, Span(start, end))
            if text is None:
                break
            part = split(decode_piece(text), strings)
        except PiecesFailed:
            part = None
        texts = list(strings)[sent:] if len(strings) > sent else []
        sent = len(strings)
        _send_reply(sys.stdout.buffer, msgspec.msgpack.encode(Reply(part, texts), enc_hook=_pack))


# -------------------------------------------------------------------------------------------------- between them


def _send_request(stream: IO[bytes], piece: Piece) -> None:
    if isinstance(piece, Span):
        stream.write(_REQUEST.pack(*piece))
    else:
        stream.write(_REQUEST.pack(_SENT, len(piece)))
        stream.write(piece)
    stream.flush()


def _send_reply(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(_SIZE, "little"))
    stream.write(data)
    stream.flush()


def _receive_reply(stream: IO[bytes]) -> bytes:
    """A reply, empty where the stream ended."""
    size = int.from_bytes(stream.read(_SIZE), "little")
    data = stream.read(size)
    return data if len(data) == size else b""


def _pack(column: Any) -> tuple[int, bytes]:
    """A column in as few bytes as hold it."""
    narrow = not len(column) or (column.min() >= _INT32.min and column.max() <= _INT32.max)
    packed = column.astype(np.int32) if narrow else column
    return packed.itemsize, packed.tobytes()


def _unpack(kind: type, packed: Any) -> Any:
    size, data = packed
    return np.frombuffer(data, dtype=f"i{size}")
