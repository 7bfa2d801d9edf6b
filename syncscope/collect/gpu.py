"""Is there a GPU? Asked in a child process: the program under observation must be the first to touch CUDA."""

from __future__ import annotations

import subprocess
import sys

# The driver's own count respects CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES.
_ASK = """
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


def gpu_count() -> int:
    """GPUs the driver shows to this process's environment; 0 also when the driver cannot be asked."""
    try:
        answer = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
        return int(answer.stdout.strip() or 0)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
