"""What torch.compile did is told with the lines that it is about."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.estimate.answers import NO_STEPS, deny_saving
from syncscope.rules import BY_CODE, find
from syncscope.rules.base.compile_rule import NOT_LOOKED_FOR
from syncscope.rules.graph_break import NO_ROW
from syncscope.rules.recompile import UNCOMPILED
from syncscope.schema.compiling import CompiledRegion, RecordedCompiling, RecordedRegions
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder, recorded_frame
from tests.rules.scenes import blind, findings, line, waiting

CALL = line(30, "model(x, n)")
ANOTHER_SIZE = "a new CUDA graph is recorded for each of the distinct sizes of its inputs"
SCALED = ("model.py", 5, "Net.forward", "x * n")
DEF = ("model.py", 3, "Net.forward", "def forward(self, x, n):")
MS = 1_000_000


def trained(steps: int = 100) -> TraceBuilder:
    """Two recorded steps of 1 ms of a training of ``steps``, with one kernel each."""
    builder = TraceBuilder().recording(0, 1000, 2000, phase="train").phase("start").phase("train", steps=steps)
    for step in range(2):
        builder.launch("k", call=(1000 * step + 10, 5), runs=(1000 * step + 20, 100))
    return builder.run().compiled()


def one(builder: TraceBuilder, code: str) -> Finding:
    (found,) = findings(builder, code)
    return found


def test_a_trace_that_does_not_say_is_not_checked() -> None:
    builder = TraceBuilder().recording(0, 100).launch("k", call=(1, 1), runs=(3, 3))
    assert {code: why for code, why in blind(builder).items() if code.startswith("CMP")} == {
        code: NOT_LOOKED_FOR for code in BY_CODE if code.startswith("CMP")
    }


def test_a_program_that_compiles_nothing_is_clean() -> None:
    assert not [code for code in blind(trained()) if code.startswith("CMP")]
    assert not [finding for finding in findings(trained()) if finding.rule.startswith("CMP")]


def test_what_this_pytorch_lacks_is_not_checked() -> None:
    builder = trained().run(compiled=RecordedCompiling(missing=("torch._inductor.cudagraph_trees.record_function",)))
    lacking = {code: why for code, why in blind(builder).items() if code.startswith("CMP")}
    assert lacking == {"CMP703": "this PyTorch lacks torch._inductor.cudagraph_trees.record_function"}


class TestRecompile:
    def test_it_names_the_guard_its_line_and_what_it_takes(self) -> None:
        builder = trained().compiled(
            "recompile", 1, CALL, SCALED, reason="n == 2", count=5, warm=4, time_ns=500 * MS, warm_ns=400 * MS,
            steps=(1, 20, 40, 60, 80), last_step=80,
        )  # fmt: skip
        found = one(builder, "CMP701")
        assert found.site is not None
        assert (found.site.file, found.site.line, found.site_source) == ("model.py", 5, "compile")
        assert [frame.line for frame in found.chain] == [30, 5]
        assert (found.phase, found.count, found.per_step) == ("train", 0, 0.0)
        assert (found.run_per_step, found.occurrences, found.run_steps) == (0.04, 4, (1, 80))
        assert found.run_stall_ms_per_step == found.run_saving_ms_per_step == 4.0
        assert found.message == (
            "Net.forward is compiled again because a guard failed (n == 2): 4 times in 100 steps of train after the "
            "first 3, 100 ms each"
        )
        assert found.fix.startswith("Pass a number that changes as a tensor")

    def test_compiling_in_the_first_steps_is_expected(self) -> None:
        assert not findings(trained().compiled("recompile", 1, CALL, SCALED, reason="n == 2", count=2), "CMP701")

    def test_in_a_recorded_step_it_counts_there_and_what_runs_meanwhile_is_warm_up(self) -> None:
        builder = trained().compiled("recompile", 1, CALL, SCALED, reason="n == 2", warm=1, warm_ns=MS)
        found = one(builder.compiling(200, 800), "CMP701")
        assert (found.count, found.per_step, found.stall_ms_per_step) == (1, 0.5, 0.3)
        assert Timeline(builder.trace()).warm_ups.name.tolist() == ["compilation"]

    def test_work_that_the_device_still_has_is_not_lost(self) -> None:
        builder = trained().recording(
            0, 1000, 2000, phase="train", bare_us=[1000, 1000]
        )  # fmt: skip
        bare = builder._recording["bare"]  # type: ignore[index]
        builder._recording["bare"] = msgspec.structs.replace(bare, drain_ns=30 * MS)  # type: ignore[index]
        builder.compiled("recompile", 1, CALL, SCALED, reason="n == 2", count=2, warm=2, warm_ns=400 * MS)
        found = one(builder, "CMP701")
        assert (found.run_stall_ms_per_step, found.run_saving_ms_per_step) == (4.0, 3.4)

    def test_guards_of_one_line_are_one_finding(self) -> None:
        builder = trained()
        for reason in ("tensor 'x' size mismatch at index 0. expected 4, actual 5", "len(caches) == 3"):
            builder.compiled("recompile", 1, CALL, DEF, reason=reason, warm=1, warm_ns=MS)
        found = one(builder, "CMP701")
        assert found.occurrences == 2
        assert "size mismatch at index 0. expected 4, actual 5; len(caches) == 3" in found.message

    def test_a_function_that_was_compiled_too_often_runs_uncompiled(self) -> None:
        builder = trained().compiled("recompile", 1, CALL, SCALED, reason="n == 9", warm=1, warm_ns=MS, uncompiled=1)
        found = one(builder, "CMP701")
        assert found.message.endswith("; then it runs uncompiled")
        assert "recompile_limit" in found.fix
        assert deny_saving(found).saving_null_why == UNCOMPILED

    def test_one_that_is_compiled_in_the_recorded_steps_is_told_apart(self) -> None:
        builder = trained().compiled("recompile", 1, CALL, SCALED, reason="n == 3", warm=1, warm_ns=MS)
        why = deny_saving(one(builder, "CMP701")).saving_null_why
        assert why is not None and why.startswith("a step in which the host compiles")

    @pytest.mark.parametrize(
        ("reason", "fix"),
        [
            ("tensor 'x' size mismatch at index 0. expected 4, actual 5", "Mark the dimension"),
            ("len(cache) == 3", "Keep the list"),
            ("GLOBAL_STATE changed: grad_mode", "Call it under one mode"),
            ("___check_obj_id(fn, 1234)", "Pass the same object"),
            ("tensor 'x' dtype mismatch. expected Float, actual Half", "Give the function tensors of one dtype"),
            ("something else", "Keep what the guard looks at"),
        ],
    )
    def test_the_fix_is_for_what_the_guard_looks_at(self, reason: str, fix: str) -> None:
        builder = trained().compiled("recompile", 1, CALL, DEF, reason=reason, warm=1, warm_ns=MS)
        assert one(builder, "CMP701").fix.startswith(fix)

    def test_a_block_that_expects_it_says_so(self) -> None:
        builder = trained().compiled("recompile", 1, CALL, DEF, reason="n", warm=1, warm_ns=MS, expected="two shapes")
        found = one(builder, "CMP701")
        assert (found.status, found.reason) == ("expected", "two shapes")


ITEM = ("model.py", 8, "Net.forward", "y.sum().item()")
UNSUPPORTED = "Unsupported Tensor.item() call with capture_scalar_outputs=False"


class TestGraphBreak:
    def test_a_break_of_the_first_step_is_one_of_the_training(self) -> None:
        found = one(trained().compiled("break", 0, CALL, ITEM, reason=UNSUPPORTED), "CMP702")
        assert (found.phase, found.site and found.site.line, found.severity) == ("train", 8, "warning")
        assert found.message == f"the compiled graph of Net.forward ends here ({UNSUPPORTED})"
        assert found.fix.startswith("Keep the value on the device")

    def test_a_wait_at_the_line_is_related(self) -> None:
        builder = waiting(trained(), 300, "aten::item").warning(390, CALL, ITEM)
        builder.compiled("break", 1, CALL, ITEM, reason=UNSUPPORTED)
        wait, broken = one(builder, "SYN102"), one(builder, "CMP702")
        assert broken.fingerprint in wait.related
        assert wait.fingerprint in broken.related

    def test_a_counted_wait_at_the_line_is_related_too(self) -> None:
        builder = trained().counted(1, 50, CALL, ITEM).compiled("break", 1, CALL, ITEM, reason=UNSUPPORTED)
        (wait,) = (hit.finding for hit in find(Timeline(builder.trace()))[0] if hit.finding.site_source == "count")
        assert wait.related == (one(builder, "CMP702").fingerprint,)

    def test_it_says_how_many_parts_a_step_runs(self) -> None:
        regions = tuple(CompiledRegion(compile_id=name, count=3, launches=6) for name in ("0/0", "1/0"))
        builder = trained().compiled("break", 1, CALL, ITEM, reason=UNSUPPORTED, compile_ids=("0/0",))
        builder._recording["regions"] = RecordedRegions(steps=3, regions=regions, launches_between=6)  # type: ignore[index]
        found = one(builder, "CMP702")
        assert (found.count, found.per_step) == (2, 1.0)
        assert found.message.endswith("; a step runs 2 compiled parts, with 2 launches between their graphs")

    def test_a_function_that_cannot_go_on_runs_uncompiled(self) -> None:
        builder = trained().compiled("break", 1, CALL, ITEM, reason="graph break in loop", uncompiled=1)
        assert one(builder, "CMP702").message.startswith("Net.forward runs uncompiled: Dynamo cannot go on")

    @pytest.mark.parametrize(
        ("reason", "fix"),
        [
            ("Data-dependent branching", "Compute both sides"),
            ("Dynamic shape operator", "Give the operator a fixed size"),
            ("Failed to trace builtin operator `print`", "Move printing"),
            ("Attempted to call function marked as skipped", "Move what Dynamo cannot trace"),
        ],
    )
    def test_the_fix_is_for_what_breaks_the_graph(self, reason: str, fix: str) -> None:
        assert one(trained().compiled("break", 1, CALL, ITEM, reason=reason), "CMP702").fix.startswith(fix)


class TestCudagraphSkipped:
    def test_it_gives_inductors_reason(self) -> None:
        builder = trained().compiled("skip", 1, CALL, SCALED, reason="mutated inputs (1 instances)")
        found = one(builder, "CMP703")
        assert found.message == "Inductor runs this without CUDA graphs: mutated inputs (1 instances)"
        assert found.fix.startswith("Return a new tensor")

    def test_recording_once_is_no_finding_and_recording_in_warm_steps_is(self) -> None:
        assert not findings(trained().compiled("record", 1, CALL, count=2), "CMP703")
        found = one(trained().compiled("record", 1, CALL, count=9, warm=7, warm_ns=70 * MS), "CMP703")
        assert found.message == "a CUDA graph is recorded 7 times in warm steps (for a shape not seen before)"
        assert (found.occurrences, found.run_stall_ms_per_step) == (7, 0.7)

    def test_sizes_that_never_come_again_have_no_graph(self) -> None:
        assert not findings(trained().compiled("warm", 1, CALL, count=1, warm=1), "CMP703")  # it runs first then
        found = one(trained().compiled("warm", 1, CALL, reason=ANOTHER_SIZE, count=97, warm=95), "CMP703")
        assert found.message == (
            "inputs have a size not seen before 95 times in warm steps, and run without a CUDA graph then "
            f"({ANOTHER_SIZE})"
        )
        assert (found.occurrences, found.run_per_step) == (95, 0.95)
        assert found.fix.startswith("Pad to a few sizes")

    def test_sizes_that_come_again_are_recorded_then(self) -> None:
        builder = trained().compiled("warm", 1, CALL, reason=ANOTHER_SIZE, count=9, warm=8)
        builder.compiled("record", 1, CALL, reason=ANOTHER_SIZE, count=9, warm=8, warm_ns=80 * MS)
        found = one(builder, "CMP703")
        assert "8 times in warm steps, and run without a CUDA graph then; one is recorded 8 times" in found.message
        assert found.run_stall_ms_per_step == 0.8

    def test_recording_again_for_the_same_size_is_told_apart(self) -> None:
        reason = "recorded again: it was recorded for other inputs, or behind other graphs"
        found = one(trained().compiled("record", 1, CALL, reason=reason, count=9, warm=8, warm_ns=MS), "CMP703")
        assert found.message == f"a CUDA graph is recorded 8 times in warm steps ({reason})"
        assert found.fix.startswith("Keep shapes and addresses")


def test_compiling_in_the_recorded_steps_is_said_once_and_costs_nothing() -> None:
    builder = trained().compiled("compile", 1, CALL, DEF).compiling(100, 400)
    builder.compiled("compile", 1, CALL, SCALED).compiling(500, 600)
    found = one(builder, "CMP704")
    assert (found.severity, found.count, found.stall_ms_per_step) == ("note", 2, 0.2)
    assert found.site is not None
    assert found.site.line == 3
    assert found.message.startswith("2 functions are compiled for the first time in the recorded steps, 0.4 ms")


def test_a_line_in_a_library_is_told_by_the_users_call() -> None:
    library = recorded_frame(("<site-packages>/models/net.py", 40, "Net.forward", "def forward(self, x):"))
    builder = trained().compiled("recompile", 1, CALL, library, reason="len(c) == 1", warm=1, warm_ns=MS)
    found = one(builder, "CMP701")
    assert found.site is not None
    assert found.at is not None
    assert (found.site.line, found.at.file) == (30, "<site-packages>/models/net.py")


def test_a_compiled_body_of_an_operator_breaks_no_graph() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000).launch("k", call=(10, 5), runs=(20, 100))
    for begin in (0, 1000):
        builder.op("Torch-Compiled Region: 0/0", begin + 100, 500).op("CompiledFunction", begin + 150, 400)
        builder.op("mine::mm", begin + 200, 300).op("Torch-Compiled Region: 1/0", begin + 250, 100)
    assert not findings(builder, "CMP702")


def test_a_trace_of_others_with_a_part_inside_of_a_part_has_a_break_without_a_line() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000).launch("k", call=(10, 5), runs=(20, 100))
    for begin in (0, 1000):
        builder.op("Torch-Compiled Region: 0/0", begin + 100, 500).op("Torch-Compiled Region: 1/0", begin + 200, 100)
    found = one(builder, "CMP702")
    assert (found.site, found.site_source, found.phase) == (None, "compile", None)
    assert (found.count, found.per_step) == (2, 1)
    assert found.message == (
        "the compiled function 0/0 runs in 2 parts, one inside of the other, since its graph breaks"
    )


def test_a_break_in_a_trace_of_others_has_what_the_host_does_outside_of_the_graphs() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000)
    for begin in (0, 1000):
        builder.op("Torch-Compiled Region: 0/0", begin + 100, 500).op("CompiledFunction", begin + 150, 100)
        builder.op("Torch-Compiled Region: 1/0", begin + 350, 200).op("CompiledFunction", begin + 400, 100)
        for at in (160, 300, 410):
            builder.launch("k", call=(begin + at, 5), runs=(begin + at + 10, 5))
    said = one(builder, "CMP702").message
    assert said.endswith("since its graph breaks; outside of its graphs the host takes 0.3 ms a run and makes 1 launch")


def test_a_break_without_steps_is_not_said_to_leave_the_device_waiting_for_nothing() -> None:
    builder = TraceBuilder().launch("k", call=(10, 5), runs=(20, 100))
    builder.op("Torch-Compiled Region: 0/0", 100, 500).op("Torch-Compiled Region: 1/0", 200, 100)
    found = one(builder.launch("k", call=(250, 5), runs=(260, 300)), "CMP702")
    assert deny_saving(found).saving_null_why == NO_STEPS


def test_graphs_alone_do_not_tell_a_break_in_a_trace_of_others() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000).launch("k", call=(10, 5), runs=(20, 100))
    for begin in (0, 500, 1000, 1500):
        builder.op("CompiledFunction", begin + 100, 100)
    assert blind(builder)["CMP702"] == (
        "a step runs 2 compiled graphs, and nothing says which of them are parts of one function: "
        "record with syncscope profile"
    )


def test_a_second_variant_that_a_trace_of_others_compiles_is_a_recompile() -> None:
    builder = TraceBuilder().step(0, 3000).step(3000, 1000).launch("k", call=(3010, 5), runs=(3020, 100))
    builder.op("_compile.compile_inner (dynamo_timed)", 100, 2000).op("Torch-Compiled Region: 2/1", 2200, 100)
    found = one(builder, "CMP701")
    assert (found.count, found.per_step, found.stall_ms_per_step, found.run_per_step) == (1, 0.5, 1.0, None)
    assert found.message == "the compiled function 2/1 is compiled again in the trace: 1 time, 2 ms each"


def test_a_trace_of_others_says_nothing_of_cuda_graphs_that_are_not_there() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000).launch("k", call=(10, 5), runs=(20, 100))
    builder.op("Torch-Compiled Region: 0/0", 100, 500).op("Pregraph bytecode", 110, 10)
    unchecked = {code: why for code, why in blind(builder).items() if code.startswith("CMP")}
    assert unchecked == {"CMP702": NO_ROW, "CMP703": NOT_LOOKED_FOR}


def test_a_trace_of_a_pytorch_that_does_not_mark_compilations_is_not_checked_for_them() -> None:
    builder = TraceBuilder().step(0, 1000).step(1000, 1000).launch("k", call=(10, 5), runs=(20, 100))
    builder.op("Torch-Compiled Region: 0/0", 100, 500)
    assert {code for code in blind(builder) if code.startswith("CMP")} == {"CMP701", "CMP702", "CMP703", "CMP704"}
