from __future__ import annotations

import msgspec
import pytest

from syncscope.schema.findings import Frame
from syncscope.schema.recording import RecordedFrame
from syncscope.timeline import Place, Timeline
from syncscope.timeline.annotations import name_annotation
from syncscope.timeline.places import recorded_site
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

MAIN = ("train.py", 40, "<module>", "step(x)")
STEP = ("train.py", 12, "step", "loss.item()")
LIBRARY = ("<site-packages>/lib/model.py", 7, "Model.forward", "x.item()")
ENGINE = 4999


def wait_places(builder: TraceBuilder) -> list[Place]:
    view = Timeline(builder.trace())
    return [view.places[place] for place in view.waits.place]


def test_a_warning_gives_the_very_line_and_expression():
    place = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, MAIN, STEP))[0]
    assert place.source == "hook"
    assert place.site is not None
    assert (place.site.line, place.site.function, place.site.expression) == (12, "step", "loss.item()")
    assert place.at == Frame(file="train.py", line=12, function="step")
    assert [frame.line for frame in place.chain] == [40, 12]


def test_the_site_is_the_innermost_user_frame_and_at_the_innermost_of_all():
    place = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, MAIN, STEP, LIBRARY))[0]
    assert place.site is not None
    assert place.at is not None
    assert (place.site.file, place.at.file) == ("train.py", "<site-packages>/lib/model.py")
    assert place.running == "x.item()"


@pytest.mark.parametrize(
    ("running", "line"), [("@torch.compile", 30), ("def step(x):", 30), ("read(x)", 31), (None, 31)]
)
def test_a_compiled_function_which_stays_at_its_head_has_the_line_that_calls_it(running: str | None, line: int):
    compiled = RecordedFrame(file="train.py", line=31, function="step", expression=running, user=True, first_line=31)
    caller = ("train.py", 30, "main", "step(x)")
    place = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, caller, compiled, LIBRARY))[0]
    assert place.site is not None
    assert place.site.line == line


def test_a_stack_of_library_code_has_its_outermost_frame_as_site():
    outer = ("<site-packages>/lib/cli.py", 3, "main")
    place = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, outer, LIBRARY))[0]
    assert place.site is not None
    assert place.site.file == "<site-packages>/lib/cli.py"


def test_python_frames_of_a_program_that_is_a_library_have_its_innermost_frame_as_site():
    builder = TraceBuilder().frame("<site-packages>/lib/cli.py", 3, "main", 0, 90).frame(*LIBRARY[:3], 2, 80)
    builder.frame("<site-packages>/einops/einops.py", 90, "reduce", 4, 60).stream_sync(10, 10)
    (place,) = wait_places(builder)
    assert place.site is not None and place.at is not None
    assert (place.site.file, place.at.file) == (LIBRARY[0], "<site-packages>/einops/einops.py")


def test_a_row_without_a_file_that_ends_early_cuts_nothing_off():
    """The profiler writes it of a function that runs when it begins, besides the row that has a file."""
    builder = TraceBuilder().frame("example.py", 27, "main", 0, 90)
    builder.unplaced("main", 1, 4).frame("model/attention.py", 284, "forward", 2, 88)
    (place,) = wait_places(builder.stream_sync(10, 10))
    assert place.site is not None
    assert (place.site.file, place.site.line) == ("model/attention.py", 284)
    assert [frame.file for frame in place.chain] == ["example.py", "model/attention.py"]


def test_code_that_a_compiler_wrote_is_not_the_programs():
    generated = ("/tmp/torchinductor_root/od/codwfmxh.py", 232, "call")
    cached = ("/root/.cache/vllm/torch_compile_cache/db06/rank_0_0/inductor_cache/lh/clhgqu5i.py", 428, "call")
    for compiled in (generated, cached):
        framed = TraceBuilder().frame(*LIBRARY[:3], 0, 50).frame(*compiled, 2, 40).stream_sync(10, 10)
        (place,) = wait_places(framed)
        assert place.site is not None
        assert place.site.file == LIBRARY[0]


def test_torchs_own_frames_are_a_librarys_site_only_where_there_are_no_others():
    torch = ("<site-packages>/torch/utils/_contextlib.py", 117, "decorate_context")
    python = ("<python>/threading.py", 900, "run")
    builder = TraceBuilder().recording().stream_sync(10, 10).warning(40, python, torch, LIBRARY)
    (within,) = wait_places(builder)
    (alone,) = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, python, torch))
    assert within.site is not None and alone.site is not None
    assert (within.site.file, alone.site.file) == (LIBRARY[0], python[0])
    framed = TraceBuilder().frame(*torch, 0, 50).frame(*LIBRARY[:3], 2, 40).stream_sync(10, 10)
    (place,) = wait_places(framed)
    assert place.site is not None
    assert place.site.file == LIBRARY[0]


def test_torchs_wrappers_of_functions_are_no_place():
    wrappers = [("<site-packages>/torch/overrides.py", 1630, "handle_torch_function", "func(*args)")]
    wrappers += [("<site-packages>/torch/utils/_device.py", 104, "DeviceContext.__torch_function__", "func(*args)")]
    wrappers += [("<site-packages>/monai/data/meta_tensor.py", 282, "MetaTensor.__torch_function__", "super()(*args)")]
    wrappers += [("<site-packages>/torch/_tensor.py", 1703, "Tensor.__torch_function__", "func(*args)")]
    recorded = TraceBuilder().recording().stream_sync(10, 10).warning(40, MAIN, STEP, LIBRARY, *wrappers)
    framed = TraceBuilder()
    for depth, (file, number, function, _) in enumerate([MAIN, STEP, LIBRARY, *wrappers]):
        framed.frame(file, number, function, depth, 60 - 2 * depth)
    for builder in (recorded, framed.stream_sync(10, 10)):
        (place,) = wait_places(builder)
        assert place.at is not None and place.site is not None
        assert (place.at.file, place.at.function, place.site.file) == (LIBRARY[0], LIBRARY[2], "train.py")
        assert place.chain[-1] == place.at
    assert wait_places(recorded)[0].running == "x.item()"
    (alone,) = wait_places(TraceBuilder().recording().stream_sync(10, 10).warning(40, *wrappers))
    assert alone.at is not None and alone.at.file == wrappers[-1][0]


def test_a_recorded_call_covers_its_wait():
    builder = TraceBuilder().recording(0, 100).entry("torch.cuda.synchronize", 8, 32, STEP).device_sync(10, 20)
    place = wait_places(builder)[0]
    assert (place.source, place.entry) == ("hook", "torch.cuda.synchronize")


def test_a_wait_both_warned_of_and_inside_a_call_has_the_warnings_place():
    inner = ("<site-packages>/torch/cuda/streams.py", 100, "Stream.synchronize", "super().synchronize()")
    builder = TraceBuilder().recording().entry("Stream.synchronize", 5, 45, STEP).stream_sync(10, 20)
    place = wait_places(builder.warning(40, STEP, inner))[0]
    assert place.at is not None
    assert place.at.function == "Stream.synchronize"


def test_warnings_of_device_and_event_syncs_do_not_exist_so_they_take_none():
    builder = TraceBuilder().recording(0, 500).stream_sync(10, 10).event_sync(25, 5).warning(60, STEP)
    assert [place.source for place in wait_places(builder)] == ["hook", "op"]


def test_a_wait_in_backward_has_the_line_that_called_it():
    backward = ("train.py", 13, "step", "loss.backward()")
    replay = ("<site-packages>/torch/autograd/graph.py", 800, "_engine_run_backward", "engine.run_backward()")
    builder = TraceBuilder().recording(0, 900).on(ENGINE)
    builder.op("autograd::engine::evaluate_function: ProdBackward0", 100, 60).stream_sync(120, 20)
    builder.on(4000).warning(300, MAIN, backward, replay)
    place = wait_places(builder)[0]
    assert place.site is not None
    assert place.site.expression == "loss.backward()"


def test_without_a_record_a_wait_of_our_recording_stays_without_a_line():
    builder = TraceBuilder().recording(0, 500).stream_sync(10, 10).stream_sync(100, 10).warning(140, STEP)
    assert [place.site is None for place in wait_places(builder)] == [True, False]


def test_expected_waits_carry_their_reason():
    builder = TraceBuilder().recording().stream_sync(10, 10).warning(40, STEP, expected="epoch metrics")
    assert wait_places(builder)[0].expected == "epoch metrics"


def test_equal_expressions_of_a_function_keep_their_ordinal():
    second = RecordedFrame(file="train.py", line=12, function="step", expression="x.item()", ordinal=1, user=True)
    builder = TraceBuilder().recording().stream_sync(10, 10).warning(40, second)
    assert wait_places(builder)[0].ordinal == 1


def test_python_frames_give_function_and_line_of_the_def():
    builder = (
        TraceBuilder()
        .frame("train.py", 5, "step", 0, 100)
        .frame("transformers/models/bert.py", 70, "forward", 5, 90)
        .builtin("item", 8, 60)
        .op("aten::item", 10, 50)
        .stream_sync(20, 30)
    )
    place = wait_places(builder)[0]
    assert place.source == "stack"
    assert place.site is not None
    assert (place.site.file, place.site.line, place.site.expression) == ("train.py", 5, None)
    assert place.at == Frame(file="<site-packages>/transformers/models/bert.py", line=70, function="forward")
    assert place.entry == "item"


def test_a_trace_with_ops_alone_has_no_line():
    assert wait_places(TraceBuilder().op("aten::item", 0, 50).stream_sync(20, 10)) == [Place()]


def test_a_copy_that_no_wait_completes_has_the_place_of_the_call_around_it():
    call = ("train.py", 9, "step", "x.to(device, non_blocking=True)")
    builder = TraceBuilder().recording().entry("Tensor.to", 5, 45, call).copy("HtoD", call=(10, 20), runs=(20, 15))
    view = Timeline(builder.trace())
    assert [view.places[place].entry for place in view.copies.place] == ["Tensor.to"]


def test_a_copy_shares_the_place_of_the_wait_that_completes_it():
    builder = TraceBuilder().recording().op("aten::copy_", 5, 40).copy("HtoD", call=(8, 5), runs=(14, 10))
    view = Timeline(builder.stream_sync(15, 20).warning(60, STEP).trace())
    assert view.copies.place.tolist() == view.waits.place.tolist()
    assert view.places[view.copies.place[0]].source == "hook"


def test_threads_known_by_another_number_are_matched_by_their_native_id():
    alias = 123456
    builder = TraceBuilder().recording(0, 500, thread_aliases={str(alias): 4000}).warning(60, STEP)
    assert wait_places(builder.on(alias).stream_sync(10, 10))[0].source == "hook"


def test_the_columns_of_a_site_count_from_1_and_end_on_its_own_line() -> None:
    frame = RecordedFrame(
        file="a.py", line=3, end_line=3, column=4, end_column=15, function="f", expression="loss.item()"
    )
    assert (recorded_site(frame).column, recorded_site(frame).end_column) == (5, 16)
    long = msgspec.structs.replace(frame, end_line=4)
    assert (recorded_site(long).column, recorded_site(long).end_column) == (5, None)
    assert recorded_site(msgspec.structs.replace(frame, column=None, end_column=None)).column is None


def test_without_frames_the_innermost_annotation_is_the_place():
    builder = TraceBuilder().annotation("train", 0, 100).annotation("## forward ##", 5, 50).stream_sync(20, 10)
    assert wait_places(builder.stream_sync(60, 10)) == [Place(annotation="## forward ##"), Place(annotation="train")]


def test_an_annotation_of_another_thread_is_no_place():
    assert wait_places(TraceBuilder().annotation("train", 0, 100).on(9).stream_sync(20, 10)) == [Place()]


def test_steps_and_collectives_are_no_places():
    builder = TraceBuilder().annotation("wait for it", 0, 90).step(1, 80).annotation("nccl:all_reduce", 2, 70)
    assert wait_places(builder.stream_sync(20, 10)) == [Place(annotation="wait for it")]


def test_an_annotation_has_one_name_in_each_step_and_on_each_machine():
    names = {
        "step 17": "step N", "iter_3": "iter_N", "step[DECODE bs=1]": "step[DECODE bs=N]", "all2all": "all2all",
        "## Call CompiledFxGraph fal3qqpx2ahi ##": "## Call CompiledFxGraph ##", "nccl:all_reduce": "",
        "_linear_float8_step_3": "_linear_float8_step_N", "to bf16": "to bf16", "checkpoint12": "checkpointN",
    }  # fmt: skip
    assert {name: name_annotation(name) for name in names} == names


def test_waits_in_different_annotations_are_different_findings_with_keys_of_their_own():
    builder = TraceBuilder()
    for number, name in enumerate(("load 1", "load 2", "log")):
        start = 100 * number
        builder.annotation(name, start, 90).op("aten::item", start + 1, 50)
        builder.copy("DtoH", call=(start + 5, 2), runs=(start + 8, 2)).stream_sync(start + 10, 20)
    load, log = findings(builder, "SYN102")
    assert (load.annotation, load.count, log.annotation, log.count) == ("load N", 2, "log", 1)
    assert load.site is None and load.fingerprint != log.fingerprint
