"""A part of a trace that was lost with all its calls and device rows: the numbers of the calls tell."""

from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

BEFORE = 20


def skipping(numbers: int, *, everywhere: int = 2, kinds: int = 5, launches: bool = False) -> TraceBuilder:
    """Sixty ops of some kinds that each launch a kernel, behind ``everywhere`` calls that are not recorded, but for ten
    in a row: those launch nothing unless told, and ``numbers`` calls are missing there."""
    builder, number = TraceBuilder().device_sync(-20, 5), 1
    for op in range(60):
        lost = BEFORE <= op < BEFORE + 10
        builder.op(f"aten::kind{op % kinds}", 20 * op, 10)
        number += numbers if op == BEFORE + 9 else 0
        number += everywhere + 1 if launches or not lost else 0
        if not lost or launches:
            builder.call("cudaLaunchKernel", 20 * op + 2, 3, correlation=number)
            builder.kernel("kernel", 20 * op + 6, 3, correlation=number)
    return builder


def said(builder: TraceBuilder) -> list[str]:
    return [one.text for one in Timeline(builder.trace()).disagreements if one.lost == "runtime"]


def test_many_numbers_that_are_missing_while_ops_run_that_launch_tell_of_calls_that_were_lost() -> None:
    (text,) = said(skipping(300))
    assert text.startswith("302 calls in a row are not in the trace, by their numbers, while ops ran")


@pytest.mark.parametrize(
    "builder",
    [
        skipping(15),  # as where a library looks up its kernels
        skipping(300, everywhere=200),  # as everywhere else
        skipping(300, kinds=2),  # a loop on the host
        skipping(300, launches=True),
    ],
)
def test_fewer_numbers_or_ops_tell_nothing(builder: TraceBuilder) -> None:
    assert said(builder) == []
