"""Ask the driver whether there is a GPU, how many copy engines it has, and where it is."""

from __future__ import annotations

import ctypes
import subprocess
import sys

# The driver's own count respects CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES.
_COUNT_SCRIPT = """
import ctypes
def count(library, init, count):
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return 0
    n = ctypes.c_int(0)
    if init and getattr(driver, init)(0) != 0:
        return 0
    return n.value if getattr(driver, count)(ctypes.byref(n)) == 0 else 0
print(count("libcuda.so.1", "cuInit", "cuDeviceGetCount")
      or count("libamdhip64.so", "", "hipGetDeviceCount")
      or count("nvcuda.dll", "cuInit", "cuDeviceGetCount"))
"""


ASYNC_ENGINE_COUNT = 40
"""``CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT``"""


def gpu_count() -> int:
    """The number of GPUs that the driver shows to this process, 0 where the driver is missing or fails.

    A child process asks: the recorded program must be the first in its own process to touch CUDA.
    """
    try:
        command = [sys.executable, "-c", _COUNT_SCRIPT]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return int(answer.stdout.strip() or 0)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def copy_engines(device: int, driver: str = "libcuda.so.1") -> int | None:
    """How many copies CUDA's ``device`` can make at the same time, ``None`` where the driver does not say.

    Call it only after the program has initialised CUDA.
    """
    count = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL(driver).cuDeviceGetAttribute(ctypes.byref(count), ASYNC_ENGINE_COUNT, device)
    except (OSError, AttributeError):
        return None
    return None if failed else count.value


def pci_bus_id(device: int, driver: str = "libcuda.so.1") -> str | None:
    """Where CUDA's ``device`` is on the PCI bus, whatever ``CUDA_VISIBLE_DEVICES`` calls it; ``None`` where the driver
    does not say.

    Call it only after the program has initialised CUDA.
    """
    text = ctypes.create_string_buffer(32)
    try:
        failed = ctypes.CDLL(driver).cuDeviceGetPCIBusId(text, len(text), device)
    except (OSError, AttributeError):
        return None
    return None if failed else text.value.decode("ascii", "replace")
