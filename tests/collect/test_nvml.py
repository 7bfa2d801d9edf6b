"""How many other processes use the GPU, by a stand-in for NVML."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import nvml
from syncscope.collect.counting import RunCount
from syncscope.collect.gpu import pci_bus_id
from syncscope.collect.nvml import DeviceWatch
from syncscope.collect.paths import Paths

GIB = 2**30
STRANGERS = (2**22 + 1, 2**22 + 2)
"""Numbers that Linux gives to no process."""

UUIDS = ("5b64d4d1-0000-0000-0000-000000000000", "5b64d4d1-0000-0000-0000-000000000001")


class NVML:
    """As much of ``pynvml`` as is asked for: the processes of the GPU of each UUID."""

    class NVMLError(Exception):
        pass

    def __init__(self, processes: Mapping[int, int | None] | None = None) -> None:
        self.processes: dict[str, Mapping[int, int | None]] = {UUIDS[0]: processes or {}, UUIDS[1]: {}}
        self.names: dict[int, str] = {}
        self.mig: list[int] | None = None
        self.virtualization = 0
        self.opened = self.asked = 0

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid.removeprefix("GPU-") not in self.processes or not uuid.startswith("GPU-"):
            raise self.NVMLError("Not Found")
        return uuid.removeprefix("GPU-")

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if self.mig is None:
            raise self.NVMLError("Not Supported")
        return self.mig

    def nvmlDeviceGetVirtualizationMode(self, handle: str) -> int:
        return self.virtualization

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        self.asked += 1
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.processes[handle].items()]

    def nvmlSystemGetProcessName(self, pid: int) -> str:
        if pid not in self.names:
            raise self.NVMLError("Not Found")
        return self.names[pid]


class CUDA:
    """As much of ``torch.cuda``."""

    def __init__(self) -> None:
        self.initialized, self.device, self.reserved = True, 0, GIB

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        assert self.initialized, "asking would initialise CUDA"
        return self.device

    def memory_reserved(self, device: int) -> int:
        return self.reserved

    def get_device_properties(self, device: int) -> SimpleNamespace:
        return SimpleNamespace(uuid=UUIDS[device])


@pytest.fixture
def cuda() -> CUDA:
    return CUDA()


def watch(monkeypatch: pytest.MonkeyPatch, fake: Any, cuda: CUDA) -> DeviceWatch:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    opened = DeviceWatch()
    opened.open(SimpleNamespace(cuda=cuda))
    return opened


def others(monkeypatch: pytest.MonkeyPatch, fake: Any, cuda: CUDA) -> int | None:
    return watch(monkeypatch, fake, cuda).others


def test_other_processes_are_counted_and_its_own_run_is_not(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    me = os.getpid()
    assert others(monkeypatch, NVML({me: GIB}), cuda) == 0
    assert others(monkeypatch, NVML({me: GIB, os.getppid(): GIB}), cuda) == 0
    assert others(monkeypatch, NVML({me: GIB, **dict.fromkeys(STRANGERS, GIB)}), cuda) == 2


def test_the_server_that_shares_the_gpu_out_is_no_other_process(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake = NVML({os.getpid(): GIB, **dict.fromkeys(STRANGERS, GIB)})
    fake.names[STRANGERS[0]] = "/usr/bin/nvidia-cuda-mps-server"
    assert others(monkeypatch, fake, cuda) == 1


def test_the_largest_number_stays(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake = NVML({os.getpid(): GIB})
    opened = watch(monkeypatch, fake, cuda)
    seen = []
    for processes in ({os.getpid(): GIB, STRANGERS[0]: None}, {os.getpid(): GIB}):
        fake.processes[UUIDS[0]] = processes
        opened.sample()
        seen.append(opened.others)
    opened.close()
    assert seen == [1, 1] and opened.others == 1
    assert fake.opened == 0


def test_a_program_that_moves_to_another_device_is_asked_about_there(
    monkeypatch: pytest.MonkeyPatch, cuda: CUDA
) -> None:
    fake = NVML({os.getpid(): GIB, STRANGERS[0]: GIB})
    fake.processes[UUIDS[1]] = {os.getpid(): GIB}
    opened = watch(monkeypatch, fake, cuda)
    assert opened.others == 1
    cuda.device = 1
    opened.sample()
    assert opened.others == 0


def test_processes_that_come_and_go_in_between_are_seen(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake = NVML({os.getpid(): GIB})
    opened = watch(monkeypatch, fake, cuda)
    fake.processes[UUIDS[0]] = {os.getpid(): GIB, STRANGERS[0]: GIB}
    cuda.device = 1  # as a thread sees it that is not the program's
    opened.sample_meanwhile()
    cuda.device = 0
    fake.processes[UUIDS[0]] = {os.getpid(): GIB}
    opened.sample()
    assert opened.others == 1


def test_nobody_looks_in_between_before_the_device_is_known(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake = NVML({os.getpid(): GIB})
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    DeviceWatch().sample_meanwhile()
    cuda.initialized = False
    opened = watch(monkeypatch, fake, cuda)
    opened.sample_meanwhile()
    opened.close()
    opened.sample_meanwhile()
    assert (opened.others, fake.opened) == (None, 0)


def test_cuda_is_never_initialised_for_it(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    cuda.initialized = False
    fake = NVML({os.getpid(): GIB})
    opened = watch(monkeypatch, fake, cuda)
    assert (opened.others, fake.opened) == (None, 0)
    cuda.initialized = True
    opened.sample()
    assert opened.others == 0


@pytest.mark.parametrize(
    ("processes", "reserved", "expected"),
    [
        ({}, GIB, None),  # nothing is listed at all
        ({STRANGERS[0]: 2 * GIB}, GIB, 0),  # the only one has our memory: it is this one
        ({STRANGERS[0]: None}, GIB, 0),
        ({STRANGERS[0]: GIB // 2}, GIB, None),  # it has less than we have
        ({STRANGERS[0]: GIB}, 0, None),  # we may not be on the GPU yet
        (dict.fromkeys(STRANGERS, GIB), GIB, 1),
    ],
)
def test_in_a_container_that_numbers_processes_anew(
    monkeypatch: pytest.MonkeyPatch, cuda: CUDA, processes: dict[int, int | None], reserved: int, expected: int | None
) -> None:
    monkeypatch.setattr(nvml, "count_children", lambda in_use_s: 0)
    cuda.reserved = reserved
    assert others(monkeypatch, NVML(processes), cuda) == expected


def test_there_children_and_ranks_may_be_those_listed(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    monkeypatch.setattr(nvml, "count_children", lambda in_use_s: 1)
    assert others(monkeypatch, NVML(dict.fromkeys(STRANGERS, GIB)), cuda) is None
    monkeypatch.setattr(nvml, "count_children", lambda in_use_s: 0)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert others(monkeypatch, NVML(dict.fromkeys(STRANGERS, GIB)), cuda) is None


def test_parts_of_a_gpu_are_not_told(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    cut, guest = NVML({os.getpid(): GIB}), NVML({os.getpid(): GIB})
    cut.mig, guest.virtualization = [1, 1], 2
    assert (others(monkeypatch, cut, cuda), others(monkeypatch, guest, cuda)) == (None, None)
    whole = NVML({os.getpid(): GIB})
    whole.mig = [0, 0]
    assert others(monkeypatch, whole, cuda) == 0


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetComputeRunningProcesses"])
def test_a_driver_that_refuses_is_silent_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], cuda: CUDA, call: str
) -> None:
    fake, asked = NVML({os.getpid(): GIB}), []

    def refuse(*_: object) -> None:
        asked.append(call)
        raise fake.NVMLError("Insufficient Permissions")

    monkeypatch.setattr(fake, call, refuse)
    opened = watch(monkeypatch, fake, cuda)
    opened.sample()
    opened.close()
    assert opened.others is None
    assert asked == [call]
    assert capfd.readouterr() == ("", "")


def test_without_nvml_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], cuda: CUDA
) -> None:
    assert others(monkeypatch, None, cuda) is None  # None in sys.modules: the import fails
    assert capfd.readouterr() == ("", "")


def test_a_device_that_torch_gives_no_identity_is_looked_up_on_the_bus(
    monkeypatch: pytest.MonkeyPatch, cuda: CUDA
) -> None:
    fake = NVML({os.getpid(): GIB})
    monkeypatch.setattr(cuda, "get_device_properties", lambda device: SimpleNamespace())
    monkeypatch.setattr(fake, "nvmlDeviceGetHandleByPciBusId", {"0000:4E:00.0": UUIDS[0]}.get, raising=False)
    monkeypatch.setattr(nvml, "pci_bus_id", lambda device: "0000:4E:00.0")
    assert others(monkeypatch, fake, cuda) == 0
    monkeypatch.setattr(nvml, "pci_bus_id", lambda device: None)
    assert others(monkeypatch, fake, cuda) is None


def test_no_driver_no_bus() -> None:
    assert pci_bus_id(0, driver="no-such-driver.so") is None
    assert pci_bus_id(0, driver="libc.so.6") is None


def test_a_driver_that_hangs_holds_the_program_up_once(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake, release = NVML({os.getpid(): GIB}), threading.Event()
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.05)
    opened = watch(monkeypatch, fake, cuda)
    monkeypatch.setattr(fake, "nvmlDeviceGetComputeRunningProcesses", lambda handle: release.wait(20))
    start = time.perf_counter()
    for _ in range(5):
        opened.sample()
    opened.close()
    assert time.perf_counter() - start < 5
    assert opened.others == 0
    release.set()


def test_an_answer_that_comes_late_counts(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    """Eight programs that begin at once on one GPU hold each other up for seconds."""
    fake, release = NVML({os.getpid(): GIB, STRANGERS[0]: GIB}), threading.Event()
    monkeypatch.setattr(nvml, "PATIENCE_OPENING_S", 0.05)
    monkeypatch.setattr(fake, "nvmlInit", lambda: release.wait(20))
    opened = watch(monkeypatch, fake, cuda)
    opened.sample()
    assert opened.others is None and fake.asked == 0
    release.set()
    for _ in range(200):
        opened.sample()
        if opened.others is not None:
            break
        time.sleep(0.05)
    assert opened.others == 1
    opened.sample()
    assert fake.asked == 2


def test_its_thread_is_in_no_list_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    fake, before = NVML({os.getpid(): GIB}), threading.enumerate()
    seen: list[list[threading.Thread]] = []
    monkeypatch.setattr(fake, "nvmlDeviceGetMigMode", lambda handle: seen.append(threading.enumerate()))
    assert others(monkeypatch, fake, cuda) == 0
    assert seen == [before] and threading.enumerate() == before


def test_a_program_that_breaks_torch_cuda_is_not_disturbed(monkeypatch: pytest.MonkeyPatch, cuda: CUDA) -> None:
    def broken() -> bool:
        raise RuntimeError("replaced")

    monkeypatch.setattr(cuda, "is_initialized", broken)
    assert others(monkeypatch, NVML({os.getpid(): GIB}), cuda) is None


class Sharing:
    """Notes that somebody asked."""

    def __init__(self) -> None:
        self.opened, self.others = 0, None

    def open(self, torch: Any) -> None:
        self.opened += 1


def test_who_uses_the_gpu_is_asked_at_the_first_step_also_if_a_state_was_written_before(tmp_path: Path) -> None:
    count: Any = RunCount(Paths(tmp_path), "run", lambda: None)
    count._torch = SimpleNamespace(__version__="2.11", cuda=CUDA())
    count.sharing = sharing = Sharing()
    count.recording()
    assert sharing.opened == 0
    for _ in range(2):
        count.stepped(SimpleNamespace())
    assert sharing.opened == 1
