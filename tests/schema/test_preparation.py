"""PyTorch's waits of its own account are told from those of the program that it runs."""

from __future__ import annotations

import pytest

from syncscope.schema.preparation import compiles, prepares, tunes

SYNCHRONIZE = "<site-packages>/torch/cuda/__init__.py"
TUNER = "<site-packages>/torch/_inductor/runtime/triton_heuristics.py"
GRAPH = "<site-packages>/torch/_inductor/output_code.py"
WRITTEN = "<torchinductor>/2g/c2g.py"
OUTSIDE = "<site-packages>/torch/_dynamo/eval_frame.py"
OPTIMIZER = "<site-packages>/torch/optim/optimizer.py"
MANAGER = "<python>/contextlib.py"


@pytest.mark.parametrize(
    ("files", "explicit", "expected"),
    [
        ([SYNCHRONIZE, TUNER, WRITTEN, GRAPH, "train.py"], True, True),
        ([SYNCHRONIZE, MANAGER, "<site-packages>/torch/cuda/graphs.py", "train.py"], True, True),
        (["<site-packages>/torch/_ops.py", "<site-packages>/torch/_dynamo/convert_frame.py", "train.py"], False, True),
        (["<site-packages>/triton/testing.py", "train.py"], False, True),
        ([WRITTEN, GRAPH, "train.py"], False, False),
        ([SYNCHRONIZE, "train.py", "<site-packages>/torch/_dynamo/convert_frame.py"], True, False),
        ([SYNCHRONIZE, "<site-packages>/lightning/loop.py", "<site-packages>/torch/cuda/graphs.py"], True, False),
        ([OPTIMIZER, OUTSIDE, "train.py"], False, False),
        ([SYNCHRONIZE, OUTSIDE, "<site-packages>/torch/_functorch/_aot_autograd/runtime_wrappers.py"], True, False),
        ([], True, False),
    ],
    ids=["tunes", "captures", "compiles", "tunes Triton", "reads in its graph", "program", "library", "not compiled",
         "runs", "no frames"],
)  # fmt: skip
def test_the_frames_up_to_the_programs_tell_it(files: list[str], explicit: bool, expected: bool) -> None:
    assert prepares(files, explicit) is expected


TUNER = "<site-packages>/torch/_inductor/runtime/triton_heuristics.py"


@pytest.mark.parametrize(
    ("file", "function", "expected"),
    [
        (TUNER, "CachingAutotuner.autotune_to_one_config", True),
        (TUNER, "CachingAutotuner.run", False),
        ("train.py", "autotune_to_one_config", False),
    ],
)
def test_a_kernel_is_tuned_when_it_first_runs_and_then_it_only_runs(file: str, function: str, expected: bool) -> None:
    copies = (TUNER, "CachingAutotuner.copy_args_to_cpu_if_needed.<locals>.maybe_copy")
    assert tunes([("train.py", "step"), ("<torchinductor>/ab/cabc.py", "call"), (file, function), copies]) is expected


LIBRARY = "<site-packages>/torch/"
RUNNING = (
    (WRITTEN, "call"), (GRAPH, "__call__"),
    (f"{LIBRARY}_functorch/_aot_autograd/runtime_wrappers.py", "runtime_wrapper"),
    (f"{LIBRARY}_inductor/compile_fx.py", "run"), (f"{LIBRARY}_inductor/compile_fx.py", "wrapper"), (TUNER, "run"),
    (f"{LIBRARY}_functorch/aot_autograd.py", "forward"), (f"{LIBRARY}_dynamo/eval_frame.py", "_fn"),
    (f"{LIBRARY}_dynamo/eval_frame.py", "compile_wrapper"), ("<site-packages>/triton/runtime/autotuner.py", "run"),
)  # fmt: skip
"""What is around each call of a compiled function."""


def test_a_wait_of_each_call_of_a_compiled_function_is_none_of_the_compilers() -> None:
    assert not compiles(RUNNING)
    assert not compiles([])


@pytest.mark.parametrize(
    ("file", "function"),
    [
        (f"{LIBRARY}_inductor/fx_passes/joint_graph.py", "constant_fold_uniform_value"),
        (f"{LIBRARY}_inductor/fx_passes/serialized_patterns/_sfdp_pattern_1.py", "<module>"),
        (f"{LIBRARY}_inductor/compile_fx.py", "codegen_and_compile"),
        (f"{LIBRARY}_inductor/compile_fx.py", "compile_fx.<locals>.bw_compiler"),
        (f"{LIBRARY}_inductor/select_algorithm.py", "anything"),
        (f"{LIBRARY}_inductor/autotune_process.py", "anything"),
        (f"{LIBRARY}_dynamo/convert_frame.py", "_compile"),
        (TUNER, "CachingAutotuner.bench"),
        ("<site-packages>/triton/runtime/autotuner.py", "Autotuner._bench"),
    ],
)
def test_a_frame_that_runs_only_while_compiling_tells_it(file: str, function: str) -> None:
    assert compiles([(f"{LIBRARY}cuda/__init__.py", "synchronize"), (file, function), *RUNNING])


def test_a_file_of_the_programs_with_such_a_name_tells_nothing() -> None:
    assert not compiles([("torch/_inductor/select_algorithm.py", "benchmark")])


def test_what_the_program_times_by_triton_is_its_own() -> None:
    assert not compiles([("<site-packages>/triton/testing.py", "do_bench")])
