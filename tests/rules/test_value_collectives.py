"""What is said of collectives of which only the stack tells what they are part of."""

from __future__ import annotations

import pytest

from tests.builders import TraceBuilder
from tests.rules.scenes import findings, line
from tests.rules.test_sharded_advice import ALL_GATHER, REDUCE_SCATTER

TORCH = "<site-packages>/torch"
ENGINE = (f"{TORCH}/autograd/__init__.py", 381, "backward", "_engine_run_backward()")
UNIT = (f"{TORCH}/distributed/fsdp/_fully_shard/_fsdp_collectives.py", 300, "all_gather", "dist.all_gather()")
LAYER = (f"{TORCH}/distributed/tensor/_redistribute.py", 90, "redistribute_local_tensor", "all_gather_tensor()")
STARTS = (f"{TORCH}/distributed/distributed_c10d.py", 4186, "all_gather_into_tensor", "group._allgather_base()")
CLIPS = (f"{TORCH}/nn/utils/clip_grad.py", 231, "clip_grad_norm_", "_get_total_norm()")
GATHERS = ("<site-packages>/accelerate/utils/operations.py", 348, "_gpu_gather_one", "gather_op()")
CASTS = ("<site-packages>/accelerate/utils/operations.py", 823, "ConvertOutputsToFp32.__call__", "forward()")
Frames = tuple[tuple[str, int, str, str], ...]


def program(*parts: tuple[str, str, Frames]) -> dict[int, str]:
    """The fix at each line of a step of which the stacks are known, and no ops: of each part the entry, the kernel of
    the collective, which runs alone, and the frames below the part's line."""
    builder = TraceBuilder(rank=0, world_size=2).recording(0, 1000).step(0, 1000)
    builder.launch("gemm", call=(1, 5), runs=(10, 290))
    for number, (entry, kernel, frames) in enumerate(parts):
        at = 20 + 20 * number
        builder.entry(entry, at, at + 10, line(number + 1, f"part{number}()"), *frames)
        builder.launch(kernel, call=(at + 2, 3), runs=(310 + 100 * number, 60), stream=13)
        builder.launch("gemm", call=(at + 12, 1), runs=(375 + 100 * number, 20))
    return {one.site.line or 0: one.fix for one in findings(builder, "OVL302") if one.site}


def forward(*frames: tuple[str, int, str, str]) -> tuple[str, str, Frames]:
    return "ProcessGroup._allgather_base", ALL_GATHER, (*frames, STARTS)


@pytest.mark.parametrize("kernel", [ALL_GATHER, REDUCE_SCATTER])
@pytest.mark.parametrize(
    ("frame", "fix"), [(UNIT, "reduce_dtype|one unit is fetched ahead"), (LAYER, "_micro_pipeline_tp")]
)
def test_backward_repeats_what_the_stacks_of_the_forward_name(
    kernel: str, frame: tuple[str, int, str, str], fix: str
) -> None:
    said = program(forward(frame), forward(frame), ("backward", kernel, (ENGINE,)))
    assert any(words in said[3] for words in fix.split("|"))


def test_backward_of_a_forward_that_gathers_parameters_and_activations_may_be_of_either() -> None:
    said = program(forward(UNIT), forward(LAYER), ("backward", ALL_GATHER, (ENGINE,)))
    assert said[3].startswith("Fetch ahead: start the next layer's")


def test_the_norm_of_gradients_is_no_activation_of_a_layer() -> None:
    said = program(("torch.ops", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", (CLIPS, LAYER)))
    assert said[1].startswith("Nothing hides it: the optimizer needs this one number")


def test_what_a_program_gathers_to_log_it_is_no_weight_to_fetch_ahead() -> None:
    assert program(forward(GATHERS))[1].startswith("Gather what is only logged every so many steps")


def test_the_forward_that_accelerate_casts_the_outputs_of_is_no_gather_of_its_own() -> None:
    assert "only logged" not in program(forward(CASTS, UNIT), forward(CASTS, UNIT))[1]


def test_gradients_are_not_fetched_ahead() -> None:
    said = program(("backward", REDUCE_SCATTER, (ENGINE,)), ("backward", ALL_GATHER, (ENGINE,)))
    assert said[1].startswith("Start each with async_op=True as soon as its gradients are there")
    assert said[2].startswith("Fetch ahead")
