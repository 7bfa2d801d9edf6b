"""The function in which the host is while the device is idle."""

import pytest

from fixtures.repeat import BASE
from syncscope import load, rules
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from tests.builders import TraceBuilder
from tests.rules.scenes import findings


def test_places_of_a_library_have_the_innermost_function_in_common() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/run.py", 3, "serve", 0, 9000)
    builder.frame("<site-packages>/server/model.py", 9, "execute", 5, 8000)
    for number in range(4):
        start = 100 + 1500 * number
        builder.frame(f"<site-packages>/server/part{number}.py", 5, f"part{number}", start, 1000)
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "execute"


def test_a_function_that_only_passes_calls_on_is_no_place() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/run.py", 3, "serve", 0, 9000)
    builder.frame("<site-packages>/server/model.py", 9, "encode", 5, 8000)
    for number in range(4):
        start = 100 + 1500 * number
        builder.frame("<site-packages>/transformers/modeling_layers.py", 59, "__call__", start, 1000)
        builder.frame(f"<site-packages>/server/part{number}.py", 5, f"part{number}", start + 1, 990)
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "encode"


def test_the_annotation_in_which_the_host_is_for_most_of_a_bubble_is_named_though_it_ends_in_it() -> None:
    builder = TraceBuilder().launch("k", call=(0, 5), runs=(10, 20)).annotation("encode", 8, 900)
    builder.launch("k", call=(1000, 5), runs=(1010, 20))
    (found,) = findings(builder, "OVL303")
    assert found.annotation == "encode"


def marked(*names: str, around: float) -> TraceBuilder:
    """A step of ``around`` µs, marked in parts of 1 ms in which the device waits for the host, then as long without."""
    builder = TraceBuilder().annotation("run", 0, 10_000).annotation("step", 0, around)
    for number, name in enumerate(names):
        start = 10 + 1000 * number
        builder.annotation(name, start, 980).launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    return builder.launch("rest", call=(5000, 5), runs=(5010, 4990))


def test_of_marks_that_share_the_host_the_one_around_them_is_named() -> None:
    (found,) = findings(marked("read", "decode", "scale", "crop", around=4500), "OVL303")
    assert found.annotation == "step" and found.message.endswith("all of the host work in step")
    assert "with_stack=True" in found.fix and "record_function" not in found.fix


def test_a_mark_around_all_that_is_recorded_is_no_place() -> None:
    (found,) = findings(marked("read", "decode", "scale", "crop", around=9990), "OVL303")
    assert found.annotation is None and "record_function" in found.fix


def test_without_functions_and_annotations_the_op_is_named_that_takes_the_host() -> None:
    builder = TraceBuilder().launch("k", call=(0, 5), runs=(10, 20))
    builder.op("aten::randn", 100, 4000).op("aten::normal_", 110, 3900).op("aten::to", 4150, 50)
    builder.op("aten::square", 5000, 20).launch("square", call=(5005, 5), runs=(5015, 20))
    (found,) = findings(builder, "OVL303")
    assert found.message.endswith("80 % of the host work in aten::randn") and found.site is None


def test_no_op_is_named_that_takes_less_than_half() -> None:
    builder = TraceBuilder().launch("k", call=(0, 5), runs=(10, 20)).op("aten::randn", 100, 2000)
    builder.launch("square", call=(5005, 5), runs=(5015, 20))
    (found,) = findings(builder, "OVL303")
    assert "aten::randn" not in found.message


def test_an_op_does_not_answer_for_the_host_with_the_memory_that_it_asks_for() -> None:
    builder = TraceBuilder().launch("k", call=(0, 5), runs=(10, 20))
    builder.op("aten::clone", 100, 3000).call("cudaMalloc", 110, 2900)
    builder.launch("copy", call=(5005, 5), runs=(5015, 20))
    (found,) = findings(builder, "OVL303")
    assert "allocation 2.9 ms" in found.message and "aten::clone" not in found.message


def test_code_that_is_in_no_file_is_no_place() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/model.py", 9, "forward", 5, 8000)
    builder.frame("<string>", 144, "execution_fn", 6, 7990).frame("/tmp/torchinductor_me/ab/c.py", 9, "call", 7, 7980)
    for number in range(4):
        start = 100 + 1500 * number
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "forward"


def test_what_autograd_launches_in_its_own_thread_is_where_backward_is_called() -> None:
    builder = TraceBuilder().frame("train.py", 9, "train", 0, 9000)
    builder.frame("torch/autograd/graph.py", 800, "_engine_run_backward", 50, 8000).on(77)
    for number in range(4):
        start = 100 + 1500 * number
        builder.frame("torch/cuda/graphs.py", 500, "backward", start, 5)
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "train"


def test_most_of_many_bubbles_is_not_what_the_longest_of_them_are() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/run.py", 3, "serve", 0, 900_000)
    builder.frame("<site-packages>/server/model.py", 9, "layers", 1, 899_000)
    for number in range(4000):
        start = 100 + 200 * number
        name = "attention" if number % 3 == 0 else f"part{number % 7}"
        builder.frame(f"<site-packages>/server/{name}.py", 5, name, start, 190)
        builder.launch("k", call=(start + 180, 5), runs=(start + 187, 50 if number % 3 == 2 else 80))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "layers"


def test_a_bubble_is_looked_up_once_however_many_causes_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    look_up = Timeline.busiest_places

    def noted(self: Timeline, ts: Ints, end: Ints, tid: Ints) -> Ints:
        asked.extend(ts.tolist())
        return look_up(self, ts, end, tid)

    monkeypatch.setattr(Timeline, "busiest_places", noted)
    rules.find(Timeline(load(BASE)))
    assert asked
    assert len(asked) == len(set(asked))
