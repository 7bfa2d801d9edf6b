"""What is said of the collectives of FSDP, by its version, how many units it has, and whether the host is late."""

from __future__ import annotations

import pytest

from syncscope.rules.base.sharded_advice import FULLY_SHARD
from syncscope.schema.findings import Finding
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

ALL_GATHER, REDUCE_SCATTER = "ncclDevKernel_AllGather_RING_LL(x)", "ncclDevKernel_ReduceScatter_Sum_f32(x)"
FIRST = ("FullyShardedDataParallel.forward", "FullyShardedDataParallel._pre_forward")
FIRST_BACKWARD = "FullyShardedDataParallel._post_backward_hook"


def training(*units: str, kernel: str = ALL_GATHER, late: bool = False) -> TraceBuilder:
    """A step of 1000 µs, in which each unit's collective runs for 60 µs before 20 µs of compute. The host launches all
    of them in the first 100 µs, or each one just before it runs."""
    builder = TraceBuilder(rank=0, world_size=2).step(0, 1000).launch("gemm", call=(1, 5), runs=(10, 290))
    for number, unit in enumerate(units):
        runs = 310 + 100 * number
        at = runs - 20 if late else 20 + 10 * number
        builder.annotation(unit, at - 2, 8)
        builder.op("c10d::x_", at, 5).launch(kernel, call=(at + 1, 3), runs=(runs, 60), stream=13)
        builder.launch("gemm", call=(at + 7, 1), runs=(runs + 65, 20))
    return builder


def fix(builder: TraceBuilder) -> str:
    found: list[Finding] = findings(builder, "OVL302")
    (said,) = {one.fix for one in found}
    return said


@pytest.mark.parametrize(
    ("units", "call"), [(["FSDP::all_gather"], "fully_shard(layer)"), ([FIRST[0]], "auto_wrap_policy")]
)
def test_a_model_that_is_one_unit_is_split_into_layers(units: list[str], call: str) -> None:
    for late in (False, True):
        said = fix(training(*units, late=late))
        assert "the whole model is one" in said
        assert call in said
        assert "prefetch" not in said


@pytest.mark.parametrize(
    ("units", "keeps"),
    [
        (["FSDP::all_gather", "FSDP::all_gather (layers.0)"], "reshard_after_forward=False"),
        ([FIRST[0], FIRST[1]], "ShardingStrategy.SHARD_GRAD_OP"),
    ],
)
def test_where_the_host_is_ahead_less_is_fetched(units: list[str], keeps: str) -> None:
    said = fix(training(*units))
    assert said.startswith("Fetch less, or compute more beside it: one unit is fetched ahead by default")
    assert keeps in said
    assert "prefetch" not in said


@pytest.mark.parametrize(
    ("units", "call"),
    [
        (["FSDP::all_gather", "FSDP::all_gather (layers.0)"], "set_modules_to_forward_prefetch"),
        ([FIRST[0], FIRST[1]], "forward_prefetch=True"),
    ],
)
def test_where_the_host_is_late_it_fetches_ahead(units: list[str], call: str) -> None:
    said = fix(training(*units, late=True))
    assert said.startswith("Fetch ahead, since the host starts it only when nothing is left to compute")
    assert call in said


@pytest.mark.parametrize(
    ("units", "sends"),
    [
        (["FSDP::post_backward_reduce (layers.0)"] * 2, "set_requires_gradient_sync(False)"),
        ([FIRST_BACKWARD] * 2, "no_sync()"),
    ],
)
def test_gradients_are_sent_in_fewer_bytes_and_less_often(units: list[str], sends: str) -> None:
    said = fix(training(*units, kernel=REDUCE_SCATTER))
    assert said.startswith("Wrap units of one layer each")
    assert sends in said


def test_no_flag_is_advised_that_is_on_by_default_or_holds_fetches_back() -> None:
    for units in (["FSDP::all_gather", "FSDP::all_gather (layers.0)"], [FIRST[0], FIRST[1]]):
        for late in (False, True):
            assert "limit_all_gathers=True" not in fix(training(*units, late=late))


@pytest.mark.parametrize(
    ("path", "second"),
    [
        ("torch/distributed/fsdp/_fully_shard/_fsdp_state.py", True),
        ("torch/distributed/_composable/fsdp/fully_shard.py", True),
        ("torch/distributed/fsdp/fully_sharded_data_parallel.py", False),
    ],
)
def test_the_version_is_known_by_the_files_of_the_stack(path: str, second: bool) -> None:
    assert bool(FULLY_SHARD.search(path)) is second
