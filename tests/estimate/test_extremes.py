"""What goes with the read of an op that looks for the range of its input: the kernels by which it finds it."""

from __future__ import annotations

import pytest

from syncscope.estimate.study import Study
from tests.builders import TraceBuilder
from tests.estimate.test_questions import asked, each_step, saved_us, study

REDUCE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<long, at::native::{}<long> >(at::native::ReduceOp)"
)
GREATEST, LEAST = (
    REDUCE.format("func_wrapper_t<long, MaxNanFunctor"),
    REDUCE.format("func_wrapper_t<long, MinNanFunctor"),
)
BOTH, WHERE, SUM = (REDUCE.format(name) for name in ("MinMaxOps", "ArgMaxOps", "func_wrapper_t<long, sum_functor"))
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<long> >(int)"


def looked(*kernels: str, op: str = "aten::one_hot", pause: float = 10) -> Study:
    """A kernel, then others of 20 µs each, the last of which makes what the host reads inside an op. The host takes
    10 µs for each, and ``pause`` before the copy."""

    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 50, 5), runs=(at + 60, 300))
        for number, kernel in enumerate(kernels):
            builder.launch(kernel, call=(at + 65 + 10 * number, 5), runs=(at + 360 + 20 * number, 20))
        called, end = at + 60 + 10 * len(kernels) + pause, at + 360 + 20 * len(kernels)
        builder.op(op, called - 2, end + 15 - called).op("aten::item", called - 1, end + 13 - called)
        builder.copy("DtoH", call=(called, 5), runs=(end + 1, 2), memory="pinned", bytes=8)
        builder.stream_sync(called + 6, end + 6 - called)

    return study(each_step(draw))


def kernels_gone(one: Study, code: str) -> int:
    """How many kernels of a step do not run."""
    kernel = one.program.items.kernel
    waits = frozenset(range(len(one.timeline.waits.ts)))
    return sum(edit.gone and bool(kernel[item]) for item, edit in asked(one, code, waits=waits).items()) // 4


@pytest.mark.parametrize(
    ("kernels", "op", "gone"),
    [
        ((GREATEST,), "aten::one_hot", 1),
        ((ADD, LEAST), "aten::bincount", 1),
        ((BOTH,), "aten::histc", 1),
        ((GREATEST,), "aten::max", 0),
        ((GREATEST, ADD), "aten::one_hot", 0),
        ((WHERE,), "aten::one_hot", 0),
        ((SUM,), "aten::one_hot", 0),
    ],
    ids=["classes", "the least", "both", "the program's own", "made of it", "where it is", "a sum"],
)
@pytest.mark.parametrize("code", ["SYN102", "SYN103"])
def test_an_op_that_is_told_the_range_does_not_look_for_it(
    kernels: tuple[str, ...], op: str, gone: int, code: str
) -> None:
    assert kernels_gone(looked(*kernels, op=op), code) == gone


def test_the_saving_holds_the_kernel_and_its_dispatch() -> None:
    own, looks = (looked(GREATEST, op=op) for op in ("aten::max", "aten::one_hot"))
    more = saved_us(looks, asked(looks, "SYN102")) - saved_us(own, asked(own, "SYN102"))
    assert more == pytest.approx(20, abs=6)


def test_work_of_the_program_s_own_before_the_copy_stays() -> None:
    one = looked(GREATEST, pause=200)
    kernel = one.program.items.kernel
    kept = [edit.pre for item, edit in asked(one, "SYN102").items() if edit.gone and not kernel[item]]
    assert kept and all(0.95 < pre <= 1 for pre in kept), "but for the dispatch of the copy"
