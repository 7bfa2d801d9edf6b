"""What a collective is part of, by the names of the annotations, ops and files around it."""

import re

import pytest

from syncscope.rules.base.collective_advice import CONTEXTS
from syncscope.trace.names import collective_of_call


@pytest.mark.parametrize(
    "name",
    [
        "vllm::all_reduce",
        "<site-packages>/vllm/distributed/parallel_state.py",
        "_ReduceFromModelParallelRegion",
        "LinearWithGradAccumulationAndAsyncCommunication",
        "VocabParallelCrossEntropy",
    ],
)
def test_names_of_tensor_parallel_layers_are_known(name: str) -> None:
    assert re.search(CONTEXTS["tensor-parallel"], name)


@pytest.mark.parametrize("name", ["DistributedDataParallel.forward", "Optimizer.step#AdamW.step", "my_vllm_clone::run"])
def test_others_are_none_of_them(name: str) -> None:
    assert not re.search(CONTEXTS["tensor-parallel"], name)


def test_an_operator_of_vllm_names_its_collective() -> None:
    assert collective_of_call("vllm::all_reduce") == collective_of_call("c10d::allreduce_") == "allreduce"
