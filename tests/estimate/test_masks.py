"""What goes with the count of a mask that keeps its shape: its indices, and what the backward does with them."""

from __future__ import annotations

import pytest

from syncscope.estimate.edits import Edits
from syncscope.estimate.study import Study
from syncscope.estimate.waiting import AFTER
from tests.builders import TraceBuilder
from tests.estimate.test_questions import asked, each_step, saved_us, study

COUNT = "void at_cuda_detail::cub::detail::reduce::DeviceReduceSingleTileKernel<int>(bool*, int*)"
BEGIN = "void at_cuda_detail::cub::detail::scan::DeviceCompactInitKernel<int>(int*)"
SELECT = "void at_cuda_detail::cub::detail::select::DeviceSelectSweepKernel<long>(long*)"
PICK = "void at::native::index_elementwise_kernel<128, 4>(long)"
SORT = "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortSingleTileKernel<long>(long*)"
ADD_UP = "void (anonymous namespace)::indexing_backward_kernel_stride_1<float>(long const*)"
WRAP = "void at::native::vectorized_elementwise_kernel<2, at::native::BUnaryFunctor<remainder_kernel_cuda> >(int)"
ZEROS = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
OTHER = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def masked(*kernels: str, backward: tuple[str, ...] = (), count: str = COUNT) -> Study:
    """Launches of 10 µs each whose kernels run at once for 2 µs: a count that is read, then some kernels; and the same
    for a backward."""

    def draw(builder: TraceBuilder, at: float) -> None:
        for names in (kernels, backward) if backward else (kernels,):
            builder.launch(OTHER, call=(at + 10, 9), runs=(at + 21, 2))
            builder.launch(count, call=(at + 20, 9), runs=(at + 30, 2))
            builder.op("aten::nonzero", at + 30, 20)
            builder.copy("DtoH", call=(at + 31, 5), runs=(at + 37, 2), memory="pinned", bytes=4)
            builder.stream_sync(at + 37, 6)
            for number, name in enumerate(names):
                builder.launch(name, call=(at + 50 + 10 * number, 9), runs=(at + 61 + 10 * number, 2))
            at += 300

    return study(each_step(draw))


def gone(one: Study, changes: Edits) -> list[str]:
    """The kernels of the first step that do not run."""
    step = one.program.items.step
    return [
        one.names[item] for item, edit in sorted(changes.items()) if edit.gone and step[item] == 0 and one.names[item]
    ]


def kernels_gone(one: Study, every: int = 1) -> list[str]:
    """Those of the fix of every wait, or of every second one; without copies."""
    waits = frozenset(range(0, len(one.timeline.waits.ts), every))
    return [name for name in gone(one, asked(one, "SYN103", waits=waits)) if "Memcpy" not in name]


def test_a_mask_without_a_backward_may_be_a_filter_and_loses_the_wait_only() -> None:
    assert kernels_gone(masked(BEGIN, SELECT, PICK, OTHER)) == []


LABELS = "void at::native::index_elementwise_kernel<128, 4, index_kernel_impl<at::native::OpaqueType<8> > >(int)"
SCORES = LABELS.replace("<8>", "<4>")


@pytest.mark.parametrize(("other", "expected"), [(LABELS, 2), (SCORES, 0)], ids=["labels", "other scores"])
def test_a_mask_that_also_picks_labels_has_a_backward_for_its_scores(other: str, expected: int) -> None:
    """Which of two picks of scores has the one backward is not known."""

    def draw(builder: TraceBuilder, at: float) -> None:
        for last in ((SCORES,), (other,), (SORT, ADD_UP)):
            builder.launch(OTHER, call=(at + 10, 9), runs=(at + 21, 2))
            builder.launch(COUNT, call=(at + 20, 9), runs=(at + 30, 2))
            builder.op("aten::nonzero", at + 30, 20)
            builder.copy("DtoH", call=(at + 31, 5), runs=(at + 37, 2), memory="pinned", bytes=4)
            builder.stream_sync(at + 37, 6)
            for number, kernel in enumerate((BEGIN, SELECT, *last)):
                builder.launch(kernel, call=(at + 50 + 10 * number, 9), runs=(at + 61 + 10 * number, 2))
            at += 200

    one = study(each_step(draw))
    assert kernels_gone(one).count(BEGIN) == expected


def test_the_step_gets_shorter_by_the_launches() -> None:
    one = masked(BEGIN, SELECT, PICK, backward=(BEGIN, SELECT, OTHER, SORT, ADD_UP))
    waits = frozenset(range(len(one.timeline.waits.ts)))
    with_indices, without = asked(one, "SYN105", waits=waits), asked(one, "SYN103", waits=waits)
    count, read, wait, indices, sorts = 9, 2 + 5, 1, (7 + 9) + (1 + 9), 2 * (1 + 9)
    # The launch after each wait goes as a whole, so that nothing is left of the way back from it. In the forward, 1 µs
    # of the dispatch of the count goes, too.
    both = 2 * (count + read + wait + indices - AFTER / 1000) + 1 + sorts
    assert saved_us(one, without) - saved_us(one, with_indices) == pytest.approx(both, abs=1.0)


@pytest.mark.parametrize(
    ("kernels", "count"),
    [((BEGIN, SELECT, OTHER, OTHER), COUNT), ((OTHER, PICK), COUNT), ((BEGIN, SELECT, PICK), OTHER)],
    ids=["indices that nothing is picked by", "no indices", "a read of something else"],
)
def test_other_reads_lose_the_wait_only(kernels: tuple[str, ...], count: str) -> None:
    backward = (BEGIN, SELECT, OTHER, SORT, ADD_UP)
    assert COUNT in kernels_gone(masked(BEGIN, SELECT, PICK, backward=backward))
    assert kernels_gone(masked(*kernels, count=count, backward=backward)) == []


def test_the_backward_does_not_count_and_sort_again() -> None:
    one = masked(BEGIN, SELECT, PICK, backward=(BEGIN, SELECT, OTHER, SORT, ADD_UP))
    assert kernels_gone(one, 2) == [COUNT, BEGIN, SELECT, COUNT, BEGIN, SELECT, OTHER, SORT]


def test_a_backward_belongs_to_no_mask_where_not_each_has_one() -> None:
    def twice(builder: TraceBuilder, at: float) -> None:
        for number, names in enumerate(((BEGIN, SELECT, PICK), (BEGIN, SELECT, PICK), (BEGIN, SELECT, SORT, ADD_UP))):
            begin = at + 200 * number
            builder.launch(COUNT, call=(begin + 20, 9), runs=(begin + 30, 2))
            builder.copy("DtoH", call=(begin + 31, 5), runs=(begin + 37, 2), memory="pinned", bytes=4)
            builder.stream_sync(begin + 37, 6)
            for place, name in enumerate(names):
                builder.launch(name, call=(begin + 50 + 10 * place, 9), runs=(begin + 61 + 10 * place, 2))

    assert kernels_gone(study(each_step(twice))) == []


def looked_up(*backward: str, pick_after: float = 1.0) -> Study:
    """Launches of 10 µs each: a count that is read, and indices that something is picked by; a backward that waits for
    nothing."""

    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch(OTHER, call=(at + 10, 9), runs=(at + 21, 2))
        builder.launch(COUNT, call=(at + 20, 9), runs=(at + 30, 2))
        builder.op("aten::nonzero", at + 30, 20)
        builder.copy("DtoH", call=(at + 31, 5), runs=(at + 37, 2), memory="pinned", bytes=4)
        builder.stream_sync(at + 37, 6)
        at += 50
        for number, name in enumerate((BEGIN, SELECT, PICK, OTHER, *backward, OTHER)):
            at += pick_after if name == PICK else 1.0
            builder.launch(name, call=(at + 9 * number, 9), runs=(at + 11 + 9 * number, 2))

    return study(each_step(draw))


@pytest.mark.parametrize(
    ("backward", "sorts"),
    [
        ((ZEROS, WRAP, OTHER, SORT, ADD_UP), [ZEROS, WRAP, OTHER, SORT]),
        ((WRAP, SORT, ADD_UP), [WRAP, SORT]),
    ],
    ids=["with zeros", "without"],
)
def test_a_backward_that_has_the_indices_does_not_sort_them(backward: tuple[str, ...], sorts: list[str]) -> None:
    assert kernels_gone(looked_up(*backward)) == [COUNT, BEGIN, SELECT, *sorts]


@pytest.mark.parametrize("backward", [(SORT, ADD_UP), (ADD_UP, WRAP), (WRAP, SORT, ADD_UP, WRAP, SORT, ADD_UP)])
def test_other_backwards_keep_what_they_do(backward: tuple[str, ...]) -> None:
    assert kernels_gone(looked_up(*backward)) == []


def test_what_picks_is_dispatched_as_others_are() -> None:
    def left(pick_after: float) -> float:
        one = looked_up(WRAP, SORT, ADD_UP, pick_after=pick_after)
        changes = asked(one, "SYN103", waits=frozenset(range(len(one.timeline.waits.ts))))
        picks = next(item for item, name in enumerate(one.names) if name == PICK)
        return changes[picks].pre * float(one.program.items.pre[picks])

    assert left(31.0) == pytest.approx(1000, abs=20)
    assert left(501.0) == pytest.approx(501_000 - 49_000, rel=0.01), "work of the program's own stays"
