"""PyTorch's waits of its own account are told from those of the program that it runs."""

from __future__ import annotations

import pytest

from syncscope.schema.preparation import prepares, tunes

SYNCHRONIZE = "<site-packages>/torch/cuda/__init__.py"
TUNER = "<site-packages>/torch/_inductor/runtime/triton_heuristics.py"
GRAPH = "<site-packages>/torch/_inductor/output_code.py"
WRITTEN = "<torchinductor>/2g/c2g.py"
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
        ([], True, False),
    ],
    ids=["tunes", "captures", "compiles", "tunes Triton", "reads in its graph", "program", "library", "no frames"],
)
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
