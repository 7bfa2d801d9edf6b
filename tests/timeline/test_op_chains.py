from __future__ import annotations

import pytest

from syncscope.timeline.op_chains import known_op


@pytest.mark.parametrize(
    ("chain", "op"),
    [
        (("aten::item", "aten::_local_scalar_dense"), "aten::item"),
        (("aten::to", "aten::_to_copy", "aten::copy_"), "aten::copy_"),
        (("aten::_foreach_copy_", "mylib::_inner"), "mylib::_inner"),
        (("aten::item", "aten::_local_scalar_dense", "PythonSubclass", "aten::_local_scalar_dense"), "aten::item"),
        (("autograd::engine::evaluate_function: AddBackward0", "c10d::_allgather_base_"), "c10d::_allgather_base_"),
        (("RingFlashAttnFunc",), "RingFlashAttnFunc"),
        (("autograd::engine::evaluate_function: Mul", "torch::autograd::Mul"), "torch::autograd::Mul"),
        ((), "cudaStreamSynchronize"),
        (("PythonDispatchMode",), "cudaStreamSynchronize"),
    ],
)
def test_an_op_goes_by_the_innermost_name_that_a_user_knows(chain: tuple[str, ...], op: str):
    assert known_op(chain, "cudaStreamSynchronize") == op
