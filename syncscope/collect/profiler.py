"""One run of torch.profiler over one window."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from syncscope.collect.detaching import detach_at_exit, threads_of_process
from syncscope.collect.patching import Patches

TEARDOWN = "TEARDOWN_CUPTI"
"""Kineto's switch to detach CUPTI when a profile ends. While CUPTI stays attached, every launch of the program takes
longer: a host-bound step by a quarter, on an H200 with torch 2.11."""

DETACHED = 0.2
"""Seconds after which CUPTI has detached: Kineto does it on a thread of its own, at a later call of the runtime. On an
H100 with torch 2.11, windows recorded nothing after no pause, and all events after 0.05 s."""


def _can_tear_down(torch: Any) -> bool:
    """Whether CUPTI survives being attached again. Torch itself relies on it from CUDA 12.6 on."""
    version = str(getattr(torch.version, "cuda", None) or "0").split(".")
    return tuple(int(part) for part in version[:2] if part.isdecimal()) >= (12, 6)


def _sync_config() -> Any:
    """Record syncs and, where this torch can, the ops of threads that the program started itself."""
    from torch._C._profiler import _ExperimentalConfig

    try:
        return _ExperimentalConfig(enable_cuda_sync_events=True, profile_all_threads=True)
    except TypeError:
        return _ExperimentalConfig(enable_cuda_sync_events=True)


class KinetoWindow:
    """Prepare, start, stop. ``cpu`` adds PyTorch ops, ``cuda_sync`` records and ``ProfilerStep#`` rows. Without
    ``cuda`` CUPTI stays away, and there are ops only.

    A second profiler would silently leave the first without events. So ``on_foreign`` is called when the program is
    about to start one of its own while ours runs. ``stop(detach=True)`` also detaches CUPTI from the process. This
    takes a while, and a profile started before ``ready_at`` records nothing.
    """

    ready_at = 0.0
    """When CUPTI has surely detached, by ``time.monotonic``, in seconds."""
    attached = False
    """CUPTI was attached, and has not been asked to detach since. It slows down every launch."""

    had_cupti = False
    """Kineto was set up with CUPTI in this process. Whoever uses it first without, leaves it without for good."""

    def __init__(self, torch: Any, *, cpu: bool, on_foreign: Callable[[], None], cuda: bool = True) -> None:
        self._torch = torch
        self._cpu = cpu
        self._cuda = cuda
        self._on_foreign = on_foreign
        self._started = False
        self._ours = False
        self._profile: Any = None
        self._prepared = False
        self._patches = Patches()
        self._detaching = False
        self._foreign = False
        """The program starts a profiler of its own, which needs CUPTI."""

    def prepare(self) -> None:
        """Switch the activities on without keeping events, so that the profiler is warm in the first recorded step."""
        from torch.profiler import ProfilerActivity, profile

        wanted = ((ProfilerActivity.CUDA, self._cuda), (ProfilerActivity.CPU, self._cpu))
        activities = [activity for activity, is_wanted in wanted if is_wanted]
        self._profile = profile(activities=activities, experimental_config=_sync_config() if self._cpu else None)
        self._watch_other_profilers()
        if self._cuda:
            KinetoWindow.attached = True
        with self._as_ours():
            self._profile.prepare_trace()
        self._prepared = True
        KinetoWindow.had_cupti |= self._cuda

    def start(self) -> None:
        with self._as_ours():
            self._profile.start_trace()
        self._started = True

    def step(self, number: int) -> AbstractContextManager[Any]:
        """Annotate a step, where annotations are recorded."""
        if not self._cpu:
            return contextlib.nullcontext()
        return self._torch.profiler.record_function(f"ProfilerStep#{number}")  # type: ignore[no-any-return]

    def stop(self, *, detach: bool) -> bytes | None:
        """Stop and return the chrome trace; ``None`` when it was never started."""
        if not self._prepared:
            self._patches.restore()
            return None
        started = self._started
        try:
            if not started:
                self.start()
            detach = detach and self._cuda and not self._foreign and TEARDOWN not in os.environ
            if detach and _can_tear_down(self._torch):
                # Not before the start: preparing a profile clears the previous one, which would then detach CUPTI.
                os.environ[TEARDOWN] = "1"
                self._detaching = True
            before = threads_of_process()
            with self._own_synchronize():
                self._profile.stop_trace()
            if self._detaching:
                detach_at_exit(self._torch, threads_of_process() - before)
        finally:
            self._patches.restore()
            KinetoWindow.attached = not self._detaching
            self._keep_cupti()
        if not started:
            return None
        with tempfile.TemporaryDirectory(prefix="syncscope-") as folder:
            path = Path(folder) / "trace.json"
            self._profile.export_chrome_trace(str(path))
            self._profile = None
            return path.read_bytes()

    def _watch_other_profilers(self) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def entry(*args: Any, **kwargs: Any) -> Any:
                if not self._ours:
                    self._foreign = True
                    self._on_foreign()
                return original(*args, **kwargs)

            return entry

        for name in ("_prepare_profiler", "_enable_profiler"):
            self._patches.replace(self._torch.autograd.profiler, name, make)

    def _keep_cupti(self) -> None:
        """Take back the request to detach CUPTI, so that a profiler of the program's does not follow it."""
        if self._detaching:
            self._detaching = KinetoWindow.attached = False
            KinetoWindow.ready_at = time.monotonic() + DETACHED
            os.environ.pop(TEARDOWN, None)

    @contextlib.contextmanager
    def _own_synchronize(self) -> Iterator[None]:
        """Keep a ``torch.cuda.synchronize`` that the program has replaced out of what PyTorch's profiler calls."""
        native = getattr(self._torch._C, "_cuda_synchronize", None)
        patches = Patches()
        if native is not None:
            patches.replace(self._torch.cuda, "synchronize", lambda original: lambda device=None: native())
        try:
            yield
        finally:
            patches.restore()

    @contextlib.contextmanager
    def _as_ours(self) -> Any:
        self._ours = True
        try:
            yield
        finally:
            self._ours = False


_forked = False


def forked_from_a_window() -> bool:
    """Whether this process was forked from one in which CUPTI was attached. What CUPTI does at the end of a process
    then waits for threads that the fork does not have. Nothing tells whether it has detached since: it does so only at
    a later call of the runtime."""
    return _forked


def _after_fork() -> None:
    global _forked
    _forked = _forked or KinetoWindow.attached or KinetoWindow.had_cupti


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
