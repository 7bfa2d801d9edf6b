"""What goes with the read of a condition: the kernels that made it."""

from __future__ import annotations

import pytest

from syncscope.estimate.study import Study
from tests.builders import TraceBuilder
from tests.estimate.test_questions import asked, each_step, saved_us, study

COMPARE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, bool, CompareEq> >(int)"
)
ABS = "void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<float> >(int)"
ALL = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, and_kernel_cuda> >(at::native::ReduceOp)"
WHERE = "void at::native::elementwise_kernel<128, at::native::where_kernel_impl(bool, float, float)>(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def checked(kernels: tuple[str, ...], bytes: int = 1, pause: float = 10) -> Study:
    """500 µs on the device, then some kernels of 20 µs each, the last of which makes what the host reads. The host
    takes 10 µs for each of them, and ``pause`` for the copy."""

    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 50, 5), runs=(at + 60, 500))
        for number, kernel in enumerate(kernels):
            builder.launch(kernel, call=(at + 65 + 10 * number, 5), runs=(at + 560 + 20 * number, 20))
        called, end = at + 60 + 10 * len(kernels) + pause, at + 560 + 20 * len(kernels)
        builder.op("aten::item", called - 1, end + 13 - called)
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
