"""What the tests of races on a real GPU share. Import it only where torch and a GPU are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from syncscope.collect.hazards import hazards

N = 1 << 20


def on_device() -> Any:
    return torch.randn(N, device="cuda")


def pinned() -> Any:
    return torch.ones(N, pin_memory=True)


def look(case: Callable[[], Any]) -> list[Any]:
    torch.cuda.synchronize()
    with hazards() as found:
        case()
    torch.cuda.synchronize()
    assert all(entry.partial and "was not followed" not in entry.why for entry in found.not_checked)
    return list(found.findings)


def rules(case: Callable[[], Any]) -> list[str]:
    return [finding.rule for finding in look(case)]
