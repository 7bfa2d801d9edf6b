"""Which other processes use the GPU that the program uses, by NVML (the module ``pynvml`` of nvidia-ml-py).

What NVML cannot tell is ``None``, never 0: no NVML, a driver that refuses, a GPU that is cut into MIG instances, a
virtual GPU (whose other guests NVML does not list), a container in which no process is listed.

In a container, NVML may list processes by the numbers that they have outside, so that this one is not among them. The
program has memory on the GPU, so it is one of those listed: one alone is this one, if it has at least as much memory.
Of several, those that may be children or ranks of this run are left out, and where none is left nobody can tell. A copy
of this process that was made once CUDA was in use, such as a loader's worker, cannot use it and is none of them.
"""

from __future__ import annotations

import _thread
import importlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from syncscope.collect.gpu import pci_bus_id
from syncscope.collect.process_age import since_boot
from syncscope.collect.relatives import count_children, is_of_this_run

PATIENCE_S = 0.5
"""NVML answers in milliseconds. One that takes longer hangs with its driver, or while other processes open the GPU. It
is asked nothing more until it has answered."""

PATIENCE_OPENING_S = 2.0
"""It also loads its library, and looks at all GPUs of the machine."""

MPS_SERVER = "nvidia-cuda-mps-server"
"""Has every GPU open that it shares out, and runs nothing of its own."""

VIRTUAL = 2
"""``NVML_GPU_VIRTUALIZATION_MODE_VGPU``: this machine is a guest that has a share of the GPU."""


class DeviceWatch:
    """Asks NVML now and then how many other processes use the device that is current in PyTorch.

    It asks in a thread of its own, which no list of Python's has, and waits for the answer for ``PATIENCE_S`` at most.
    Nothing is raised or printed. ``variables`` are names of environment variables that have the same value in all
    processes of this run, besides those of ``relatives.RENDEZVOUS``.
    """

    def __init__(self, variables: Sequence[str] = ()) -> None:
        self._variables = tuple(variables)
        self._torch: Any = None
        self._nvml: Any = None
        self._handles: dict[int, Any] = {}
        self._most: dict[int, int] = {}
        self._device: int | None = None
        self._in_use_s = math.inf
        """CUDA is in use since then at least, by ``since_boot``."""
        self._looking = _thread.allocate_lock()
        self._late: tuple[int, Question] | None = None
        """A question that was not answered in time, and the device that it is about."""

    def open(self, torch: Any, patience_s: float = PATIENCE_OPENING_S) -> None:
        """Find NVML and look for the first time. CUDA is initialised."""
        self._torch = torch
        self._look(patience_s)

    def sample(self) -> None:
        """Look again: at the begin of each window, and at the end."""
        self._look(PATIENCE_S)

    def sample_meanwhile(self) -> None:
        """Look again, from a thread that is not the program's and has no current device. Does nothing before ``open``
        has looked, and while another thread looks."""
        if self._device is not None:
            self._look(PATIENCE_S, self._device)

    def close(self) -> None:
        """Leave NVML. ``others`` stays."""
        nvml, self._nvml, self._torch = self._nvml, None, None
        self._handles.clear()
        if nvml is not None and self._late is None:
            ask_in_time(nvml.nvmlShutdown, PATIENCE_S)

    @property
    def others(self) -> int | None:
        """How many other processes used the device that was current last: the largest number seen."""
        return None if self._device is None else self._most.get(self._device)

    def _look(self, patience_s: float, device: int | None = None) -> None:
        if self._looking.acquire(blocking=False):
            try:
                self._look_at(current_device(self._torch) if device is None else device, patience_s)
            finally:
                self._looking.release()

    def _look_at(self, device: int | None, patience_s: float) -> None:
        if device is None or self._torch is None:
            return
        self._in_use_s = min(self._in_use_s, since_boot())
        self._device = device
        if self._late is None:
            about, question = device, Question(lambda: self._count(device))
        else:
            (about, question), patience_s = self._late, 0.0
        if not question.is_over(patience_s):
            self._late = about, question
            return
        self._late = None
        if not question.answer:
            self._torch = self._nvml = None  # never again
        elif (found := question.answer[0]) is not None:
            self._most[about] = max(found, self._most.get(about, 0))

    def _count(self, device: int) -> int | None:
        if self._nvml is None:
            nvml = sys.modules.get("pynvml") or importlib.import_module(
                "pynvml"
            )  # PyTorch has it where it is installed
            nvml.nvmlInit()
            self._nvml = nvml
        if device not in self._handles:
            self._handles[device] = find_device(self._nvml, self._torch, device)
        handle, cuda = self._handles[device], self._torch.cuda
        if handle is None:
            return None
        return processes_on_device(
            self._nvml, handle, lambda: int(cuda.memory_reserved(device)), self._variables, self._in_use_s
        )


def processes_on_device(
    nvml: Any, handle: Any, own_bytes: Callable[[], int], variables: Sequence[str], in_use_s: float
) -> int | None:
    """How many processes of other runs compute on a device, ``None`` where NVML's list does not tell.

    ``own_bytes`` tells the memory that this process has there, and is asked only if it is not listed. CUDA is in use
    since ``in_use_s``, by ``since_boot``. Raises what ``nvml`` raises.
    """
    listed = {process.pid: process.usedGpuMemory for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    if os.getpid() in listed:
        return sum(not is_of_this_run(pid, variables) and not _is_mps_server(nvml, pid) for pid in listed)
    if not listed or not (own := own_bytes()):
        return None
    if len(listed) == 1:
        (used,) = listed.values()
        return 0 if used is None or used >= own else None
    more = len(listed) - 1 - count_children(in_use_s) - (_ranks_here() - 1)
    return more if more > 0 else None


def _ranks_here() -> int:
    """How many ranks of this run may be on this machine."""
    value = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("WORLD_SIZE") or ""
    return max(1, int(value)) if value.isascii() and value.isdecimal() else 1


def _is_mps_server(nvml: Any, pid: int) -> bool:
    name = _unless_refused(nvml, nvml.nvmlSystemGetProcessName, pid)
    return isinstance(name, str) and MPS_SERVER in name


def find_device(nvml: Any, torch: Any, device: int) -> Any:
    """NVML's handle of PyTorch's device; ``None`` where the program has a part of it only."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    if uuid is not None:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{str(uuid).removeprefix('GPU-')}")
    elif (bus := pci_bus_id(device)) is not None:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(bus)
    else:
        return None
    cut = _unless_refused(nvml, nvml.nvmlDeviceGetMigMode, handle)
    virtual = _unless_refused(nvml, nvml.nvmlDeviceGetVirtualizationMode, handle)
    return None if (cut and cut[0]) or virtual == VIRTUAL else handle


def _unless_refused(nvml: Any, ask: Callable[[Any], Any], about: Any) -> Any:
    """The answer, ``None`` where this GPU or driver has none."""
    try:
        return ask(about)
    except nvml.NVMLError:
        return None


def current_device(torch: Any) -> int | None:
    """PyTorch's current device, ``None`` before CUDA is initialised: asking would initialise it."""
    try:
        return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_initialized() else None
    except Exception:  # whatever the program made of torch.cuda
        return None


def ask_in_time(question: Callable[[], Any], patience_s: float) -> tuple[bool, Any]:
    """Whether an answer came in time, and the answer."""
    asked = Question(question)
    return (True, asked.answer[0]) if asked.is_over(patience_s) and asked.answer else (False, None)


class Question:
    """Is asked on a thread that no list of Python's has. ``answer`` stays empty where it raises."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question
        self.answer: list[Any] = []
        self._done = _thread.allocate_lock()
        self._done.acquire()
        try:
            _thread.start_new_thread(self._ask, ())
        except RuntimeError:  # no more threads, or the interpreter ends
            self._done.release()

    def _ask(self) -> None:
        try:
            self.answer.append(self._question())
        except BaseException:  # no NVML, or it refuses: it does not matter why
            pass
        finally:
            self._done.release()

    def is_over(self, patience_s: float) -> bool:
        """Whether it was answered, or was refused, within so long from now."""
        over = self._done.acquire(timeout=patience_s)
        if over:
            self._done.release()
        return over
