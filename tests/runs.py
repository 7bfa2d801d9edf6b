"""Real recordings with a counted run around them, as if the program had gone on as it was in the recorded steps."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fixtures.labels import TRACES

CONVERSIONS = {"Tensor.to": "HtoD", "Tensor.cuda": "HtoD", "Tensor.cpu": "DtoH"}
COUNTED = {*CONVERSIONS, "torch.cuda.synchronize", "Event.synchronize", "torch.cuda.empty_cache"}
"""Calls that wait."""


def document_of(case: str, mode: str = "trace") -> dict[str, Any]:
    """The document of a fixture."""
    document: dict[str, Any] = json.loads(gzip.decompress((TRACES / case / f"{mode}.json.gz").read_bytes()))
    return document


def with_run(
    document: dict[str, Any],
    *,
    steps: int = 100,
    every: int = 1,
    phase: str = "train",
    phases: Sequence[dict[str, Any]] = (),
    waits: Sequence[dict[str, Any]] = (),
    **run: Any,
) -> dict[str, Any]:
    """The document of a recording, one phase of whose run had ``steps`` steps. Every place that PyTorch warned of, or
    that was a call in ``COUNTED``, waited as often as in the recorded steps in every ``every``-th of them. Copies with
    ``non_blocking=True`` are left out: those of pinned memory do not wait.
    ``phases`` and ``waits`` are more of the run's."""
    recording = document["syncscope"]
    recorded = len(recording["steps"]["boundaries_ns"]) - 1
    begin, end = recording["steps"]["boundaries_ns"][0], recording["steps"]["boundaries_ns"][-1]
    seen = Counter(
        (event["stack"], event["kind"], event.get("name", ""), event.get("expected"))
        for event in recording["sites"]
        if (event["kind"] == "warning" or event["name"] in COUNTED) and begin <= event["end_ns"] <= end
    )
    waiting = steps // every
    counted = [
        {
            "phase": 0, "stack": stack, "kind": kind, "name": name, "expected": expected,
            "count": times * waiting // recorded, "steps": waiting,
            "first_step": 0, "last_step": steps - 1, **_copied(name),
        }
        for (stack, kind, name, expected), times in seen.items()
        if "non_blocking=True" not in _running(recording, stack)
    ]  # fmt: skip
    first = {
        "name": phase, "kind": "train", "steps": steps, "counted_steps": steps, "recorded": True,
        "time_ns": 1_000_000_000, "median_ns": 10_000_000, "p95_ns": 12_000_000,
    }  # fmt: skip
    whole = {
        "id": "run", "started_ns": begin, "time_ns": 2_000_000_000, "complete": True,
        "phases": [first, *phases], "waits": [*counted, *waits], **run,
    }  # fmt: skip
    return {**document, "syncscope": {**recording, "phase": phase, "run": whole}}


def _running(recording: dict[str, Any], stack: int) -> str:
    return recording["frames"][recording["stacks"][stack][-1]]["expression"] or ""


def _copied(name: str) -> dict[str, Any]:
    """What is counted of a conversion: the fixtures' memory is pageable where they wait."""
    if name not in CONVERSIONS:
        return {}
    return {"direction": CONVERSIONS[name], "pageable": True}


def write(path: Path, document: dict[str, Any]) -> Path:
    """The document as a trace file at ``path``."""
    path.write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    return path
