"""Times steps of an unmodified program: between two backwards, with the device idle at both ends.

On ``PYTHONPATH``, with ``SAVINGS_TIMER`` set to JSON: ``folder``, ``name``, and ``gate``, ``settle`` and ``timed``,
numbers of backwards. The process announces itself in ``NAME.ready`` after the first, waits for ``NAME.go``, goes on for
the second, times the third, writes milliseconds for one to ``NAME.ms`` and ends. Without the variable nothing happens.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 400.0


def install(plan: dict[str, Any]) -> None:
    import torch

    folder, name = Path(plan["folder"]), plan["name"]
    gate, begin, end = plan["gate"], plan["gate"] + plan["settle"], plan["gate"] + plan["settle"] + plan["timed"]
    original, done, began = torch.Tensor.backward, 0, 0.0

    def backward(*values: Any, **options: Any) -> None:
        nonlocal done, began
        original(*values, **options)
        done += 1
        if done not in (gate, begin, end):
            return
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if done == gate:
            (folder / f"{name}.ready").touch()
            until = time.monotonic() + PATIENCE_S
            while not (folder / f"{name}.go").exists() and time.monotonic() < until:
                time.sleep(0.005)
        elif done == begin:
            began = time.perf_counter()
        else:
            length = (time.perf_counter() - began) * 1e3 / plan["timed"]
            (folder / f"{name}.part").write_text(repr(length))
            (folder / f"{name}.part").rename(folder / f"{name}.ms")
            os._exit(0)

    torch.Tensor.backward = backward


if "SAVINGS_TIMER" in os.environ:
    install(json.loads(os.environ.pop("SAVINGS_TIMER")))  # no child is timed
