"""PyTorch's own warnings of waits, logged by the program itself: what our findings are held against."""

from __future__ import annotations

import json
import os
import time
import warnings

import torch


def listen() -> None:
    """Ask PyTorch for its warnings and write each as a line of ``$ORACLE``: time in ns, file, line."""
    log = open(os.environ["ORACLE"], "w", buffering=1)  # noqa: SIM115
    plain = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):  # type: ignore[no-untyped-def]
        if "called a synchronizing CUDA operation" in str(message):
            log.write(json.dumps([time.time_ns(), filename, lineno]) + "\n")
        else:
            plain(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.filterwarnings("always", message="called a synchronizing CUDA operation")
    torch.cuda.set_sync_debug_mode("warn")
