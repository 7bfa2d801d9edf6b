"""What goes with the read of a condition: the kernels that made it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscope.estimate.questions import question
from syncscope.estimate.study import Study
from syncscope.rules import Hit
from syncscope.schema.findings import Frame
from tests.builders import TraceBuilder
from tests.estimate.test_questions import STEPS, asked, each_step, saved_us, study
from tests.report.sample import finding

COMPARE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, bool, CompareEq> >(int)"
)
ABS = "void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<float> >(int)"
ALL = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, and_kernel_cuda> >(at::native::ReduceOp)"
WHERE = "void at::native::elementwise_kernel<128, at::native::where_kernel_impl(bool, float, float)>(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"

SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum_functor<float> > >(int)"
LEAST = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MinNanFunctor<float> > >(int)"
TIMES = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, MulFunctor<float> > >(int)"
LEFT = "void at::native::vectorized_elementwise_kernel<4, at::native::remainder_kernel_cuda(float, float)>(int)"
SIMPLEX = (COMPARE, ALL, SUM, ADD, ABS, COMPARE, COMPARE, ALL)
"""``torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)`` and its ``all()``."""
CLOSE = (COMPARE, TIMES, ABS, ADD, ADD, ABS, ABS, COMPARE, COMPARE, COMPARE, COMPARE, COMPARE, COMPARE, ALL)
"""``isclose`` and its ``all()``: the fifth and sixth are the difference, the four behind them whether it is finite."""
LIBRARY = "lib/python3.12/site-packages/torch/distributions/distribution.py"


def checked(kernels: tuple[str, ...], bytes: int = 1, pause: float = 10, op: str = "aten::is_nonzero") -> Study:
    """500 µs on the device, then some kernels of 20 µs each, the last of which makes what the host reads. The host
    takes 10 µs for each of them, and ``pause`` for the copy."""

    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 50, 5), runs=(at + 60, 500))
        for number, kernel in enumerate(kernels):
            builder.launch(kernel, call=(at + 65 + 10 * number, 5), runs=(at + 560 + 20 * number, 20))
        called, end = at + 60 + 10 * len(kernels) + pause, at + 560 + 20 * len(kernels)
        builder.op(op, called - 2, end + 15 - called).op("aten::item", called - 1, end + 13 - called)
        builder.copy("DtoH", call=(called, 5), runs=(end + 1, 2), memory="pinned", bytes=bytes)
        builder.stream_sync(called + 6, end + 6 - called)

    return study(each_step(draw))


@pytest.mark.parametrize(
    ("kernels", "gone"),
    [
        ((COMPARE,), 1),
        ((ADD, ABS, COMPARE, ALL), 3),
        ((ABS,), 0),
        ((WHERE,), 0),
        ((COMPARE, ADD), 0),
        ((ADD, COMPARE), 1),
    ],
    ids=["a comparison", "isfinite and all", "abs alone", "where", "a sum of comparisons", "a comparison of a sum"],
)
def test_the_kernels_right_before_the_read_that_make_truth_values_go_with_it(
    kernels: tuple[str, ...], gone: int
) -> None:
    one = checked(kernels)
    changes = asked(one, "SYN102")
    items = one.program.items
    assert sum(edit.gone and bool(items.kernel[item]) for item, edit in changes.items()) == gone * one.program.steps


def test_what_is_read_as_a_number_stays() -> None:
    one = checked((COMPARE,), bytes=4)
    assert not any(edit.gone and one.program.items.kernel[item] for item, edit in asked(one, "SYN102").items())


def test_the_saving_holds_the_kernels_and_their_dispatch() -> None:
    without, with_check = (saved_us(one, asked(one, "SYN102")) for one in (checked((ADD,)), checked((COMPARE,))))
    assert with_check > without


def test_work_of_the_program_s_own_before_the_copy_stays() -> None:
    one = checked((COMPARE,), pause=300)
    changes = asked(one, "SYN102")
    kept = [edit.pre for item, edit in changes.items() if edit.gone and not one.program.items.kernel[item]]
    assert kept and all(0.98 < pre < 1 for pre in kept), "but for the dispatch of the copy"


def test_the_dispatch_of_the_first_kernel_goes_as_far_as_it_is_usual() -> None:
    one = checked((ADD, COMPARE))
    changes, items = asked(one, "SYN102"), one.program.items
    first = [item for item, edit in changes.items() if edit.gone and items.kernel[item]]
    assert all(changes[item].pre == 0 for item in first)
    one = checked((COMPARE,))
    changes, items = asked(one, "SYN102"), one.program.items
    first = [item for item, edit in changes.items() if edit.gone and items.kernel[item]]
    assert all(changes[item].pre < 1 for item in first)


def kernels_gone(one: Study, at: Frame | None = None) -> int:
    """How many kernels of a step do not run where none of its waits is there any more, for a finding ``at`` a line."""
    waits = frozenset(range(len(one.timeline.waits.ts)))
    hit = Hit(replace(finding("SYN102", "made-up", 1, "x"), at=at), waits=waits)
    changes = question(one, hit).by_item()
    return sum(edit.gone and bool(one.program.items.kernel[item]) for item, edit in changes.items()) // STEPS


@pytest.mark.parametrize(
    ("kernels", "gone", "own"),
    [
        ((ADD, *SIMPLEX), 8, 4),
        ((COMPARE, TIMES, ADD, COMPARE, ALL, ALL), 3, 3),
        ((LEFT, COMPARE, COMPARE, COMPARE, COMPARE, COMPARE, ALL), 7, 6),
        ((LEFT, ADD, COMPARE, ALL), 2, 2),
    ],
    ids=["a simplex", "the program's own before it", "whole numbers", "a remainder of the program's own"],
)
def test_what_a_distribution_checks_goes_as_a_whole(kernels: tuple[str, ...], gone: int, own: int) -> None:
    one = checked(kernels)
    assert kernels_gone(one, Frame(file=LIBRARY, line=76, function="Distribution.__init__")) == gone
    assert kernels_gone(one, Frame(file="train.py", line=76, function="step")) == own


@pytest.mark.parametrize(
    ("op", "kernels", "gone", "own"),
    [("aten::allclose", (ADD, *CLOSE), 14, 9), ("aten::normal", (LEAST, COMPARE), 2, 1)],
    ids=["allclose", "normal"],
)
def test_what_an_op_checks_goes_as_a_whole(op: str, kernels: tuple[str, ...], gone: int, own: int) -> None:
    assert kernels_gone(checked(kernels, op=op)) == gone
    assert kernels_gone(checked(kernels)) == own
