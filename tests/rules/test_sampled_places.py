"""Samples of the host name the line at which it works while the device is idle."""

from __future__ import annotations

import pytest

from syncscope.schema.findings import Finding
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

STEP = 40_000
"""µs a step: 30 of them without a kernel."""

MAIN = ("train.py", 30, "<module>", "main()")
LOOP = ("train.py", 10, "main", "prepare(batch)")
LAUNCH = ("train.py", 11, "main", "model(batch)")


def starved(*, steps: int = 2) -> TraceBuilder:
    """In each step the host works for 30 ms, then launches a kernel of 10 ms."""
    builder = TraceBuilder().recording(*range(0, (steps + 1) * STEP, STEP))
    builder.launch("k", call=(-10, 5), runs=(-4, 4))
    for step in range(steps):
        begin = step * STEP
        builder.launch("k", call=(begin + 29_990, 5), runs=(begin + 30_000, 10_000))
    return builder


def moments(begin: float, *, every: float = 1000, times: int = 20, steps: int = 2) -> list[float]:
    return [step * STEP + begin + number * every for step in range(steps) for number in range(times)]


def judge(builder: TraceBuilder) -> Finding:
    (found,) = findings(builder, "OVL303")
    return found


def test_the_line_that_has_most_of_the_samples_in_idle_time_is_the_place():
    work = ("data.py", 5, "decode", "image.load()")
    builder = starved().sampled(moments(1000), MAIN, LOOP, work).sampled(moments(31_000, times=8), MAIN, LAUNCH)
    found = judge(builder)
    assert found.site is not None and (found.site.file, found.site.line) == ("data.py", 5)
    assert found.site.expression == "image.load()" and found.site_source == "hook"
    assert "of the host work in decode (data.py:5)" in found.message
    assert "out of the thread that launches" in found.fix and not found.asks_for_more
    (cause,) = [one for one in found.causes if one.cause == "host work"]
    assert cause.site is not None and (cause.site.file, cause.site.line) == ("data.py", 5)


def test_the_function_of_a_library_below_it_is_named():
    library = ("<site-packages>/PIL/ImageFile.py", 300, "load")
    torch = ("<site-packages>/torch/nn/functional.py", 9, "pad")
    work = ("data.py", 5, "decode", "image.load()")
    found = judge(starved().sampled(moments(1000), MAIN, LOOP, work, library, torch))
    assert found.at is not None and (found.at.file, found.at.function) == (library[0], "load")


@pytest.mark.parametrize(
    ("expression", "below", "of_step"),
    [
        ("loss.backward()", None, True),
        ("p.grad.detach()", None, True),
        ("optimizer.step()", ("<site-packages>/torch/optim/adam.py", 9, "step"), True),
        ("model(batch)", ("<site-packages>/torch/nn/modules/module.py", 9, "_call_impl"), True),
        ("next(batches)", ("<site-packages>/torch/utils/data/dataloader.py", 9, "__next__"), False),
        ("writer.add_scalar('norm', p.grad.norm())", None, False),
        ("env.step(action)", ("env.py", 9, "step"), False),
    ],
)
def test_python_of_the_step_itself_is_for_no_other_thread(
    expression: str, below: tuple[str, int, str] | None, *, of_step: bool
) -> None:
    line = ("train.py", 10, "main", expression)
    found = judge(starved().sampled(moments(1000), MAIN, line, *([below] if below else [])))
    assert ("which no other thread can run" in found.fix) == of_step
    assert ("out of the thread that launches" in found.fix) != of_step


@pytest.mark.parametrize(
    ("expression", "on_host"), [("torch.ones(shape) * -1", True), ("torch.ones(shape, device=x.device)", False)]
)
def test_a_tensor_that_the_host_fills_in_forward_is_made_on_the_device(expression: str, *, on_host: bool) -> None:
    module = ("<site-packages>/torch/nn/modules/module.py", 9, "_call_impl")
    found = judge(starved().sampled(moments(1000), MAIN, module, ("losses.py", 90, "forward", expression)))
    assert found.fix.startswith("Make the new tensor on the device") == on_host
    assert ("this is Python of the model itself" in found.fix) != on_host


@pytest.mark.parametrize(
    ("expression", "walks"), [("self.module.state_dict()", True), ("model.named_parameters()", True), ("f(x)", False)]
)
def test_a_walk_through_the_parts_of_a_model_is_to_be_done_once(expression: str, *, walks: bool) -> None:
    inside = ("<site-packages>/torch/nn/modules/module.py", 2270, "Module._save_to_state_dict")
    update = ("ema.py", 220, "Average.update", expression)
    found = judge(starved().sampled(moments(1000), MAIN, LOOP, update, inside))
    assert found.fix.startswith("Collect the tensors once, before the loop") == walks


@pytest.mark.parametrize(
    ("file", "function", "of_dataset"),
    [
        ("data.py", "Images.__getitem__", True),
        ("<site-packages>/torchvision/datasets/folder.py", "ImageFolder.__getitem__", True),
        ("<site-packages>/pandas/core/frame.py", "DataFrame.__getitem__", False),
        ("data.py", "Images.read", False),
    ],
)
def test_a_sample_that_the_launching_thread_makes_is_for_the_workers_of_a_loader(
    file: str, function: str, *, of_dataset: bool
) -> None:
    get, resize = (file, 69, function, "self.transform(x)"), ("data.py", 5, "Resize.__call__", "resize(image)")
    found = judge(starved().sampled(moments(1000), MAIN, LOOP, get, resize))
    assert found.site is not None and found.site.line == 5
    assert found.fix.startswith("Get the samples through a DataLoader with workers") == of_dataset


@pytest.mark.parametrize(
    ("direction", "memory", "prepares"),
    [("HtoD", "pageable", True), ("HtoD", "pinned", False), ("DtoH", "pageable", False)],
)
def test_work_at_a_call_that_copies_to_the_device_prepares_the_copy(
    direction: str, memory: str, *, prepares: bool
) -> None:
    copy = ("train.py", 12, "main", "inputs.to(device)")
    builder = starved().sampled(moments(1000), MAIN, copy)
    for at in (29_900, STEP + 29_900):
        builder.copy(direction, call=(at + 1, 30), runs=(at + 5, 20), memory=memory, bytes=1_000_000)
        builder.entry("Tensor.to", at, at + 40, MAIN, copy)
    found = judge(builder)
    assert found.fix.startswith("Copy from pinned memory") == prepares
    assert found.fix.startswith("Move the work that the host does") != prepares


def test_a_tensor_that_is_made_and_moved_is_made_on_the_device() -> None:
    found = judge(starved().sampled(moments(1000), MAIN, ("x.py", 19, "onehot", "torch.zeros(64, 9).to(device)")))
    assert found.fix.startswith("Make the new tensor on the device")


@pytest.mark.parametrize(("function", "ends"), [("_shutdown_workers", True), ("_get_data", False)])
def test_a_loader_whose_workers_end_is_to_keep_them_and_is_no_work_to_be_moved(function: str, *, ends: bool) -> None:
    loader = "<site-packages>/torch/utils/data/dataloader.py"
    inside = (loader, 1580, f"_MultiProcessingDataLoaderIter.{function}", "w.join(timeout=5.0)")
    join = ("<python>/multiprocessing/process.py", 149, "BaseProcess.join", "self._popen.wait(timeout)")
    found = judge(starved().sampled(moments(1000), MAIN, LOOP, inside, join))
    assert found.site is not None and found.site.line == LOOP[1]
    assert found.fix.startswith("Keep the loader's workers (persistent_workers=True)") == ends


def test_lines_that_share_the_work_are_named_by_the_line_that_calls_them():
    one, other = ("data.py", 5, "decode", "a()"), ("data.py", 9, "crop", "b()")
    builder = starved().sampled(moments(1000, times=9), MAIN, LOOP, one)
    builder.sampled(moments(10_000, times=10), MAIN, LOOP, other).sampled(moments(20_000, times=3), MAIN, LAUNCH)
    builder.sampled(moments(31_000, times=8), MAIN, LAUNCH)
    found = judge(builder)
    assert found.site is not None and (found.site.file, found.site.line) == ("train.py", 10)
    assert found.fix.endswith(" Of this work: 45 % crop (data.py:9), 41 % decode (data.py:5), 14 % main (train.py:11).")


def test_where_only_the_program_itself_is_around_all_of_it_the_lines_are_listed():
    lines = [("data.py", 5 + number, f"part_{number}", "x()") for number in range(4)]
    builder = starved()
    for number, (line, begin) in enumerate(zip(lines, (1000, 7000, 12_000, 16_000), strict=True)):
        builder.sampled(moments(begin, times=6 - number), MAIN, line)
    found = judge(builder)
    assert found.site is None
    named = "33 % part_0 (data.py:5), 28 % part_1 (data.py:6), 22 % part_2 (data.py:7)"
    assert found.fix.startswith("Take the host's work out of the thread that launches (")
    assert f", most of which is {named}; or" in found.fix and "{op}" not in found.fix


def shared(*expressions: str, below: tuple[str, int, str] | None = None) -> Finding:
    """Host work that lines with these expressions share, the first with what it runs ``below``."""
    builder = starved()
    times = {2: (15, 13), 3: (10, 9, 9)}[len(expressions)]
    begin = 1000
    for number, (expression, many) in enumerate(zip(expressions, times, strict=True)):
        line = ("train.py", 10 + number, "main", expression)
        builder.sampled(moments(begin, times=many), MAIN, line, *([below] if below and not number else []))
        begin += 1000 * many
    return judge(builder)


def test_lines_of_the_step_itself_that_share_the_work_are_for_no_other_thread() -> None:
    adam = ("<site-packages>/torch/optim/adam.py", 9, "step")
    found = shared("optimizer.step()", "d_loss.backward()", "g_loss.backward()", below=adam)
    assert found.site is None and found.fix.startswith("Launch less (foreach or fused optimizers and functions), or")
    assert "no other thread can run it" in found.fix and found.fix.endswith(", 32 % main (train.py:12).")


def test_of_lines_that_share_the_work_those_are_to_be_moved_that_can_be() -> None:
    found = shared("d_loss.backward()", "next(batches)", "g_loss.backward()")
    assert found.fix.startswith("Take 32 % main (train.py:11) of the host's work out of the thread that launches (")
    assert "the rest is Python of the step itself" in found.fix and "train.py:10" not in found.fix


def test_a_line_that_works_for_nearly_all_of_the_time_is_named_all_the_same():
    found = judge(starved().sampled(moments(1000), MAIN).sampled(moments(31_000, times=8), MAIN))
    assert found.site is not None and (found.site.file, found.site.line) == ("train.py", 30)


@pytest.mark.parametrize("times", [1, 2])
def test_few_samples_name_nothing(times: int):
    found = judge(starved().sampled(moments(1000, times=times), MAIN, LOOP))
    assert found.site is None


def test_samples_while_the_device_works_name_nothing():
    found = judge(starved().sampled(moments(31_000, times=8), MAIN, LAUNCH))
    assert found.site is None


def test_a_sample_stands_for_the_time_since_the_one_before():
    """Where code keeps Python to itself, no sample comes meanwhile."""
    often, long = ("data.py", 5, "often", "a()"), ("data.py", 9, "long", "b()")
    builder = starved().sampled(moments(1000, times=8), MAIN, often).sampled(moments(29_000, times=1), MAIN, long)
    found = judge(builder)
    assert found.site is not None and found.site.line == 9


def test_the_line_that_makes_a_batch_is_told_below_that_of_the_loader():
    loop = ("train.py", 10, "main", "batch in loader")
    read = ("data.py", 5, "Images.__getitem__", "Image.open(path)")
    builder = starved()
    for step in range(2):
        builder.entry("DataLoader", step * STEP + 100, step * STEP + 29_000, MAIN, loop)
    found = judge(builder.sampled(moments(1000, times=25), MAIN, loop, read))
    assert found.site is not None and (found.site.file, found.site.line) == ("train.py", 10)
    assert found.at is not None and (found.at.file, found.at.line) == ("data.py", 5)
    assert "DataLoader workers" in found.fix
    assert "of the data loading in Images.__getitem__ (data.py:5)" in found.message


def test_the_lines_that_share_the_making_of_a_batch_are_told_in_its_fix() -> None:
    loop = ("train.py", 10, "main", "batch in loader")
    read, crop = (
        ("data.py", 5, "Images.__getitem__", "Image.open(path)"),
        ("data.py", 6, "Images.__getitem__", "crop(x)"),
    )
    builder = starved()
    for step in range(2):
        builder.entry("DataLoader", step * STEP + 100, step * STEP + 29_000, MAIN, loop)
    builder.sampled(moments(1000, times=15), MAIN, loop, read).sampled(moments(16_000, times=5), MAIN, loop, crop)
    found = judge(builder)
    assert found.fix.startswith("Load ahead")
    assert found.fix.endswith("Of this work: 75 % Images.__getitem__ (data.py:5), 25 % Images.__getitem__ (data.py:6).")
