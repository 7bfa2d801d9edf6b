"""Times steps of an unmodified program: between two backwards, with the device idle at both ends.

On ``PYTHONPATH``, with ``SAVINGS_TIMER`` set to JSON: ``folder``, ``name``, ``seconds``, and ``gate``, ``settle`` and
``timed``, numbers of backwards. The process announces itself in ``NAME.ready`` after the first, waits for ``NAME.go``,
goes on for the second, times the third, writes milliseconds for one to ``NAME.ms`` and ends. That is the median of
stretches of ``part`` backwards each: a stretch in which the host was at something else does not count. A process that
has timed ``FEWEST`` of them ends when it has timed for so many ``seconds``. Without the variable nothing happens.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 400.0
FEWEST = 4
"""Stretches that are timed, however long they take."""


def install(plan: dict[str, Any]) -> None:
    import torch

    folder, name = Path(plan["folder"]), plan["name"]
    gate, part = plan["gate"], plan["part"]
    begin = gate + plan["settle"]
    end = begin + plan["timed"] // part * part
    original, done, marks, enough = torch.Tensor.backward, 0, list[Any](), float("inf")

    def mark() -> Any:
        """Now, when the device gets here."""
        if not torch.cuda.is_available():
            return time.perf_counter() * 1e3
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(early: Any, later: Any) -> float:
        """Milliseconds."""
        return later - early if isinstance(early, float) else early.elapsed_time(later)  # type: ignore[no-any-return]

    def backward(*values: Any, **options: Any) -> None:
        nonlocal done, enough
        original(*values, **options)
        done += 1
        if done in (gate, begin) and torch.cuda.is_available():
            torch.cuda.synchronize()
        if done == gate:
            (folder / f"{name}.ready").touch()
            until = time.monotonic() + PATIENCE_S
            while not (folder / f"{name}.go").exists() and time.monotonic() < until:
                time.sleep(0.005)
        elif done >= begin and (done - begin) % part == 0:
            marks.append(mark())
            enough = min(enough, time.monotonic() + plan["seconds"])
        if done == end or (len(marks) > FEWEST and time.monotonic() > enough):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            length = statistics.median(itertools.starmap(between, itertools.pairwise(marks))) / part
            (folder / f"{name}.part").write_text(repr(length))
            (folder / f"{name}.part").rename(folder / f"{name}.ms")
            os._exit(0)

    torch.Tensor.backward = backward


if "SAVINGS_TIMER" in os.environ:
    install(json.loads(os.environ.pop("SAVINGS_TIMER")))  # no child is timed
