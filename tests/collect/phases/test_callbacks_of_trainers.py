"""Steps that a trainer's callback tells are steps of its training."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, model, sgd  # noqa: E402

CALLS = """
def on_step_end(callbacks):
    call_event(callbacks)
def call_event(callbacks):
    for callback in callbacks:
        callback()
"""


@pytest.mark.parametrize(
    "file",
    ["transformers/trainer_callback.py", "lightning/pytorch/trainer/call.py", "pytorch_lightning/trainer/call.py"],
)
@pytest.mark.parametrize("accumulated", [1, 2])
def test_the_loop_over_callbacks_is_no_phase(run: Any, file: str, accumulated: int) -> None:
    library: dict[str, Any] = {}
    exec(compile(CALLS, f"/site-packages/{file}", "exec"), library)
    net = model()
    optimizer = sgd(net)
    for number in range(24):
        net(X).sum().backward()
        if number % accumulated == accumulated - 1:
            optimizer.step()
            library["on_step_end"]([int, run.signals.user_step])
    assert run.steps == {"train": 24 // accumulated}
    assert run.sequence == ["train"] and run.phase("train").source == "user"
