"""The rules speak of HIP as they do of CUDA. Times in µs."""

from __future__ import annotations

import pytest

from syncscope.schema.findings import Finding
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

Vendors = pytest.mark.parametrize("vendor", ["cuda", "hip"])


def reading(vendor: str, *ops: str, direction: str = "DtoH") -> TraceBuilder:
    """A blocking copy inside nested ops: on CUDA a copy and a wait, on HIP one call that does both."""
    builder = TraceBuilder(vendor=vendor).step(0, 100).launch("gemm", call=(1, 2), runs=(4, 30))
    for depth, op in enumerate(ops):
        builder.op(op, 5 + depth, 50 - 2 * depth)
    if vendor == "hip":
        return builder.copy(direction, call=(15, 25), runs=(35, 2), memory="host", name="hipMemcpyWithStream")
    return builder.copy(direction, call=(15, 4), runs=(35, 2)).stream_sync(20, 20)


def waits(builder: TraceBuilder) -> list[Finding]:
    return [finding for finding in findings(builder) if finding.rule.startswith("SYN")]


@Vendors
@pytest.mark.parametrize(
    ("ops", "rule"),
    [
        (("aten::item", "aten::_local_scalar_dense"), "SYN102"),
        (("aten::index", "aten::nonzero"), "SYN103"),
        (("aten::to", "aten::_to_copy", "aten::copy_"), "SYN101"),
        (("torchvision::nms",), "SYN109"),
        ((), "SYN101"),
    ],
)
def test_a_blocking_copy_is_taken_by_the_rule_of_its_ops(vendor: str, ops: tuple[str, ...], rule: str) -> None:
    (found,) = waits(reading(vendor, *ops))
    assert (found.rule, found.count, found.bytes) == (rule, 1, 4096)


@Vendors
@pytest.mark.parametrize("target", ["Device", "Stream", "Event"])
def test_an_explicit_wait_is_one(vendor: str, target: str) -> None:
    builder = TraceBuilder(vendor=vendor).step(0, 100).launch("gemm", call=(1, 2), runs=(4, 30))
    builder.call(f"{vendor}{target}Synchronize", 10, 25).launch("gemm", call=(60, 2), runs=(64, 30))
    (found,) = waits(builder)
    assert (found.rule, found.op, found.stall_ms) == ("SYN105", f"{vendor}{target}Synchronize", 0.025)


@Vendors
def test_a_copy_put_on_a_stream_waits_for_nothing(vendor: str) -> None:
    builder = TraceBuilder(vendor=vendor).step(0, 100).op("aten::to", 5, 20)
    assert waits(builder.copy("HtoD", call=(10, 4), runs=(15, 20))) == []


@Vendors
def test_a_wait_empties_the_queue(vendor: str) -> None:
    builder = reading(vendor, "aten::item").launch("gemm", call=(80, 2), runs=(90, 8))
    (starved,) = findings(builder, "OVL303")
    assert "wait" in starved.message
