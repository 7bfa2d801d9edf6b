"""Where the steps of a trace come from."""

from __future__ import annotations

import gzip
import json
from itertools import cycle, islice
from pathlib import Path

import pytest

from syncscope.trace import load
from syncscope.trace.reader import read_bytes
from syncscope.trace.tables.repeats import find_repetition
from tests.builders import TraceBuilder


def optimizing(*names: str, rounds: int, ops: tuple[int, ...] = (3,)) -> TraceBuilder:
    """Optimizers that step in turn, every 100 µs, each after as many ops as ``ops`` says in turn."""
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 5)
    turns = zip(cycle(names), cycle(ops), strict=False)
    for number, (name, before) in enumerate(islice(turns, rounds * max(len(names), len(ops)))):
        for op in range(before):
            builder.op("aten::add", 100 * number + op, 0.5)
        builder.annotation(f"Optimizer.step#{name}.step", 100 * number + 80, 10)
    return builder


def steps(builder: TraceBuilder) -> tuple[str, list[tuple[int, int]]]:
    """The source, and begins and ends in µs."""
    trace = builder.trace()
    begins, ends = ((trace.steps[name] // 1000).tolist() for name in ("ts", "end"))
    return trace.step_source, list(zip(begins, ends, strict=True))


def test_without_marks_of_the_profiler_a_step_ends_with_the_optimizers() -> None:
    assert steps(optimizing("AdamW", rounds=3)) == ("optimizer", [(90, 190), (190, 290)])


def test_marks_of_the_profiler_come_first() -> None:
    assert steps(optimizing("AdamW", rounds=3).steps(0, 150, 300)) == ("profiler", [(0, 150), (150, 300)])


def test_steps_of_another_loop_are_none() -> None:
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 5)
    for at, number in enumerate((2, 1, 2, 3, 4)):
        builder.op("aten::add", 100 * at + 5, 1).step(100 * at, 90, number=number)
    trace = builder.trace()
    assert (trace.steps["number"].tolist(), trace.steps["ts"].tolist()[0]) == ([1, 2, 3, 4], 100_000)
    assert trace.warnings == ("1 of 5 marked steps are left out: their numbers are those of another loop",)


def test_steps_that_no_loop_has_most_of_are_all_kept() -> None:
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 5)
    for at, number in enumerate((0, 1, 0, 1)):
        builder.op("aten::add", 100 * at + 5, 1).step(100 * at, 90, number=number)
    assert len(builder.trace().steps) == 4


def test_a_last_step_in_which_nothing_is_done_is_none() -> None:
    builder = TraceBuilder().steps(0, 100, 200, 230)
    builder.launch("a", call=(10, 5), runs=(20, 5)).launch("b", call=(110, 5), runs=(120, 90)).device_sync(201, 9)
    assert steps(builder) == ("profiler", [(0, 100), (100, 200)])
    assert len(steps(builder.op("aten::add", 215, 1))[1]) == 3


def test_what_lies_between_marks_that_are_open_only_in_step_is_a_step() -> None:
    builder = TraceBuilder()
    for number in range(3):
        builder.launch("k", call=(100 * number, 5), runs=(100 * number + 6, 50)).step(100 * number + 90, 8)
    steps = builder.trace().steps
    assert steps["ts"].tolist() == [90_000, 190_000] and steps["end"].tolist() == [190_000, 290_000]
    assert steps["number"].tolist() == [0, 1]


def test_where_only_the_device_was_recorded_no_step_is_left_out() -> None:
    assert len(steps(TraceBuilder().steps(0, 100, 200).kernel("k", 10, 5))[1]) == 2


def test_the_work_of_a_loader_now_and_then_makes_no_optimizers_that_take_turns() -> None:
    builder = optimizing("AdamW", rounds=7)
    for number in range(1, 7):
        builder.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100 * number + 20, 30)
        for op in range(0 if number % 3 else 16):
            builder.op("aten::set_", 100 * number + 21 + op, 0.5)
    assert steps(builder) == ("optimizer", [(100 * number - 10, 100 * number + 90) for number in range(1, 7)])


@pytest.mark.parametrize("ops", [(3,), (3, 40)])
def test_optimizers_that_take_turns_make_one_step(ops: tuple[int, ...]) -> None:
    assert steps(optimizing("Adam", "SGD", rounds=3, ops=ops)) == ("optimizer", [(190, 390), (390, 590)])


def test_two_optimizers_of_one_class_are_told_apart_by_what_comes_before_them() -> None:
    assert steps(optimizing("Adam", rounds=3, ops=(3, 40))) == ("optimizer", [(190, 390), (390, 590)])


def test_two_marks_do_not_repeat() -> None:
    assert steps(optimizing("AdamW", rounds=2)) == ("none", [])


def test_optimizers_that_step_now_and_then_give_no_steps() -> None:
    builder = optimizing("Adam", rounds=4).annotation("Optimizer.step#SGD.step", 392, 2)
    assert steps(builder.annotation("Optimizer.step#Adam.step", 480, 10)) == ("none", [])


def test_a_recording_knows_its_steps_itself() -> None:
    assert steps(optimizing("AdamW", rounds=3).recording()) == ("none", [])


def looping(*names: str, rounds: int, copies: tuple[str, ...] = ("HtoD", "DtoH")) -> TraceBuilder:
    """Rounds of 30 kernels, one every 10 µs, between copies in and out."""
    builder, at = TraceBuilder(), 0
    for _ in range(rounds):
        for number in range(30):
            builder.launch(names[number % len(names)], call=(at, 3), runs=(at + 4, 3))
            at += 10
        for direction in copies:
            builder.copy(direction, call=(at, 3), runs=(at + 4, 3))
            at += 10
    return builder


def test_what_the_whole_trace_repeats_is_a_step() -> None:
    source, found = steps(looping("gemm", "relu", rounds=4))
    assert (source, found) == ("kernels", [(300, 620), (620, 940), (940, 1260)])
    (warning,) = looping("gemm", "relu", rounds=4).trace().warnings
    assert warning.startswith("no step is marked: a step is the 32 device rows")


def test_a_round_that_ends_with_an_optimizer_is_a_step() -> None:
    names = [*(f"kernel{number}" for number in range(29)), "multi_tensor_apply_kernel"]
    assert steps(looping(*names, rounds=4, copies=())) == ("kernels", [(0, 300), (300, 600), (600, 900)])


def test_two_rounds_of_few_rows_are_no_step_together() -> None:
    names = [*(f"kernel{number}" for number in range(9)), "multi_tensor_apply_kernel"]
    assert steps(looping(*names, rounds=4, copies=())) == ("none", [])


def test_layers_are_no_steps() -> None:
    assert steps(looping(*(f"kernel{number}" for number in range(30)), rounds=9, copies=())) == ("none", [])


def test_what_repeats_but_for_one_kernel_is_no_step() -> None:
    builder = looping("gemm", "relu", rounds=4)
    assert steps(builder.launch("head", call=(1300, 3), runs=(1304, 3))) == ("none", [])


def test_two_rounds_are_too_few_to_tell() -> None:
    assert steps(looping("gemm", "relu", rounds=2)) == ("none", [])


TOLD = ("amp_scaler", "clean_loop", "dataloader_unpinned", "explicit_sync", "fixes", "isnan_branch", "item_logging")


@pytest.mark.parametrize("case", TOLD)
def test_steps_that_are_found_by_what_repeats_are_the_true_ones(case: str) -> None:
    (path,) = (path for path in Path("fixtures/traces", case).glob("full.json.gz"))
    document = json.loads(gzip.decompress(path.read_bytes()))
    true = read_bytes(json.dumps(document).encode(), "true.json").steps["dur"].to_numpy()
    del document["syncscope"]
    document["traceEvents"] = [e for e in document["traceEvents"] if "Step#" not in e["name"] and "#" not in e["name"]]
    trace = read_bytes(json.dumps(document).encode(), "unmarked.json")
    assert trace.step_source == "kernels"
    assert len(trace.steps) == len(true) - 1
    assert true.min() * 0.8 < trace.steps["dur"].mean() < true.max() * 1.2


def test_nothing_that_repeats_in_a_recording_is_cut_wrongly() -> None:
    for path in sorted(Path("fixtures/traces").glob("*/full.json.gz")):
        trace = load(path, workers=1)
        found = find_repetition(trace.rows["device"], trace.rows["runtime"], trace.pid)
        assert found is None or len(found.bounds) == len(trace.steps), path


def serving(*marks: str, kernels: tuple[int, ...] = (40,), between: int = 1) -> TraceBuilder:
    """Batches of some kernels each in turn, every 1 ms, with ``between`` kernels behind each mark."""
    builder = TraceBuilder()
    for number, (mark, many) in enumerate(zip(marks, cycle(kernels), strict=False)):
        begin = 1000 * number
        builder.annotation(mark, begin, 500)
        for kernel in range(many):
            builder.launch(f"kernel{kernel % 7}", call=(begin + 10 * kernel, 3), runs=(begin + 10 * kernel + 4, 3))
        for kernel in range(between):
            builder.launch("sample", call=(begin + 600 + 10 * kernel, 3), runs=(begin + 604 + 10 * kernel, 3))
    return builder


@pytest.mark.parametrize(
    "mark", ["step[DECODE bs=8]", "execute_context_0(0)_generation_8(8)", "execute_new_0_cached_8"]
)
def test_batches_that_a_server_marks_are_steps(mark: str) -> None:
    assert steps(serving(*[mark] * 4)) == ("server", [(0, 1000), (1000, 2000), (2000, 3000), (3000, 3607)])


def test_what_is_put_together_before_the_first_mark_belongs_to_its_step() -> None:
    early = serving(*["step[DECODE bs=8]"] * 4).copy("HtoD", call=(-30, 3), runs=(-20, 3))
    assert steps(early)[1][0] == (-30, 1000)
    long_ago = serving(*["step[DECODE bs=8]"] * 4).copy("HtoD", call=(-9000, 3), runs=(-8990, 3))
    assert steps(long_ago)[1][0] == (-1000, 1000)


def test_batches_of_several_kinds_are_no_steps() -> None:
    assert steps(serving("step[EXTEND bs=1 toks=128]", *["step[DECODE bs=1]"] * 4)) == ("none", [])


def test_batches_in_which_the_device_does_not_as_much_are_no_steps() -> None:
    assert steps(serving(*["step[DECODE bs=8]"] * 4, kernels=(40, 30)))[0] == "none"


def test_batches_beside_which_the_device_does_more_are_no_steps() -> None:
    before = serving(*["step[DECODE bs=8]"] * 4, between=0)
    for number in range(20):
        before.launch("capture", call=(10_000 + 10 * number, 3), runs=(10_004 + 10 * number, 3))
    assert steps(before)[0] == "none"


def test_marks_of_others_are_no_steps() -> None:
    assert steps(serving(*["attention"] * 4)) == ("none", [])
