"""The rules that take waits: each takes its own and leaves the others."""

from __future__ import annotations

import pytest

from tests.builders import TID, FrameSpec, TraceBuilder
from tests.rules.scenes import blind, chain, codes, findings, line, lines_of, waiting


class TestScalarRead:
    @pytest.mark.parametrize(
        "ops",
        [
            ("aten::item", "aten::_local_scalar_dense"),
            ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"),
            ("aten::one_hot", "aten::item", "aten::_local_scalar_dense"),
            ("aten::allclose", "aten::item", "aten::_local_scalar_dense"),
            ("autograd::engine::evaluate_function: MyBackward", "MyBackward", "aten::item"),
        ],
    )
    def test_takes_reads_of_one_value(self, ops: tuple[str, ...]):
        assert codes(chain(*ops)) == ["SYN102"]

    def test_says_how_often_how_long_and_how_much(self):
        found = findings(chain("aten::item", "aten::_local_scalar_dense", steps=4), "SYN102")[0]
        assert (found.count, found.per_step, found.bytes, found.op) == (4, 1, 16, "aten::item")
        assert found.stall_ms_per_step == pytest.approx(0.020)
        assert found.saving_ms_per_step is None
        assert found.saving_null_why

    @pytest.mark.parametrize(
        ("ops", "advice"),
        [
            (("aten::one_hot", "aten::item"), "num_classes"),
            (("aten::linalg_cholesky", "aten::item"), "_ex"),
            (("aten::is_nonzero", "aten::item"), "torch.where"),
            (("aten::item",), "non_blocking"),
        ],
    )
    def test_advice_fits_the_op(self, ops: tuple[str, ...], advice: str):
        assert advice in findings(chain(*ops), "SYN102")[0].fix

    def test_advice_fits_the_file(self):
        at = ("<site-packages>/torch/amp/grad_scaler.py", 450, "GradScaler._maybe_opt_step", "sum(v.item() for v in x)")
        builder = waiting(TraceBuilder().recording(0, 300), 10, "aten::item").warning(
            100, line(9, "scaler.step(o)"), at
        )
        assert "fused=True" in findings(builder, "SYN102")[0].fix

    def test_in_a_thread_without_ops_a_few_bytes_to_pinned_memory_are_a_read(self):
        builder = waiting(TraceBuilder().step(0, 900).op("aten::mm", 1, 2).on(TID + 1, "logger"), 100, size=4)
        (found,) = findings(builder, "SYN101", "SYN102")
        assert (found.rule, found.thread, found.bytes) == ("SYN102", "logger", 4)
        assert "4 bytes to pinned memory, as .item() makes" in found.message

    @pytest.mark.parametrize(("memory", "size"), [("pageable", 4), ("pinned", 400)])
    def test_a_copy_of_another_kind_there_is_a_copy(self, memory: str, size: int):
        builder = TraceBuilder().step(0, 900).op("aten::mm", 1, 2).on(TID + 1)
        assert [one.rule for one in findings(waiting(builder, 100, memory=memory, size=size), "SYN101", "SYN102")] == [
            "SYN101"
        ]

    def test_what_comes_right_behind_the_check_of_gradients_is_the_scalers_read(self):
        builder = TraceBuilder().step(0, 900)
        waiting(builder, 10, "aten::item", "aten::_local_scalar_dense")
        builder.op("aten::_amp_foreach_non_finite_check_and_unscale_", 100, 20)
        for at in (200, 300):  # one for each device
            waiting(builder, at, "aten::item", "aten::_local_scalar_dense")
        builder.op("aten::_fused_adam_", 400, 20)
        waiting(builder, 500, "aten::item", "aten::_local_scalar_dense")
        found = {one.count * (1 if "GradScaler" in one.message else -1): one.fix for one in findings(builder, "SYN102")}
        assert not any("inside torch.amp" in one.message for one in findings(builder, "SYN102"))
        assert "fused=True" in found[2]
        assert "loss.detach()" in found[-2]

    def test_a_read_where_nothing_trains_is_not_told_of_a_loss(self):
        read = chain("aten::item", "aten::_local_scalar_dense")
        assert "loss" not in findings(read, "SYN102")[0].fix
        read.annotation("Optimizer.step#SGD.step", 80, 5)
        assert "loss" in findings(read, "SYN102")[0].fix
        backward = chain("aten::item", "aten::_local_scalar_dense").op("autograd::engine::evaluate_function: X", 80, 5)
        assert "loss" in findings(backward, "SYN102")[0].fix


class TestDynamicShape:
    @pytest.mark.parametrize(
        ("ops", "advice"),
        [
            (("aten::nonzero",), "three arguments"),
            (("aten::index", "aten::nonzero"), "x[mask]"),
            (("aten::index_put_", "aten::_index_put_impl_", "aten::nonzero"), "masked_fill_"),
            (("aten::masked_select", "aten::nonzero"), "multiply by the mask"),
            (("aten::repeat_interleave", "aten::item"), "output_size"),
            (("aten::unique_consecutive",), "upper bound"),
        ],
    )
    def test_takes_shapes_that_depend_on_values(self, ops: tuple[str, ...], advice: str):
        found = findings(chain(*ops), "SYN101", "SYN102", "SYN103", "SYN109")
        assert [finding.rule for finding in found] == ["SYN103"]
        assert advice in found[0].fix

    def test_in_backward_it_says_so(self):
        engine = ("autograd::engine::evaluate_function: ProdBackward0", "ProdBackward0", "aten::nonzero")
        assert "in backward" in findings(chain(*engine), "SYN103")[0].message


class TestBlockingCopy:
    @pytest.mark.parametrize(
        "ops",
        [
            ("aten::to", "aten::_to_copy", "aten::copy_"),
            ("aten::copy_",),
            ("aten::index", "aten::to", "aten::_to_copy", "aten::copy_"),
            ("autograd::engine::evaluate_function: ToCopyBackward0", "ToCopyBackward0", "aten::to", "aten::copy_"),
        ],
    )
    def test_takes_copies_and_indices_shipped_to_the_device(self, ops: tuple[str, ...]):
        assert codes(chain(*ops, copy="HtoD")) == ["SYN101"]

    def test_a_copy_inside_an_op_of_another_kind_is_that_ops(self):
        assert codes(chain("aten::linalg_eig", "aten::to", "aten::copy_")) == ["SYN109"]

    def test_a_hip_copy_that_blocks_is_one(self):
        builder = TraceBuilder(vendor="hip").step(0, 100).op("aten::to", 8, 60).op("aten::copy_", 9, 50)
        builder.copy("HtoD", call=(10, 40), runs=(30, 10), memory="host", name="hipMemcpyWithStream")
        found = findings(builder, "SYN101")[0]
        assert (found.bytes, found.stall_ms) == (4096, pytest.approx(0.040))

    @pytest.mark.parametrize(
        ("direction", "memory", "advice"),
        [
            ("HtoD", "pageable", "pin_memory=True"),
            ("HtoD", "pinned", "pinned already"),
            ("DtoH", "pageable", "event"),
        ],
    )
    def test_advice_fits_direction_and_memory(self, direction: str, memory: str, advice: str):
        builder = chain("aten::to", "aten::copy_", copy=direction, memory=memory, size=1 << 20)
        assert advice in findings(builder, "SYN101")[0].fix

    def test_a_small_copy_that_no_loader_made_is_advised_on_as_none_of_a_batch(self):
        builder = chain("aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=16)
        assert "once outside the loop" in findings(builder, "SYN101")[0].fix
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 80, 5)
        assert "DataLoader" in findings(builder, "SYN101")[0].fix

    def test_a_small_copy_inside_of_a_module_is_none_of_a_batch(self):
        builder = chain("aten::to", "aten::copy_", steps=1, copy="HtoD", memory="pageable", size=82_944)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 80, 5)
        builder.frame("train.py", 5, "step", 0, 95).frame("torch/nn/modules/module.py", 1700, "_call_impl", 1, 90)
        assert "once outside the loop" in findings(builder, "SYN101")[0].fix

    def test_what_is_copied_where_a_batch_is_loaded_is_one_however_small(self):
        builder = chain("aten::to", "aten::copy_", steps=1, copy="HtoD", memory="pageable", size=16)
        assert "DataLoader" in findings(builder.annotation("## data_load ##", 5, 70), "SYN101")[0].fix

    def test_what_is_not_pinned_beside_batches_that_are_is_none_of_a_batch(self):
        builder = chain("aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=1 << 20)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 5)
        assert "DataLoader" in findings(builder, "SYN101")[0].fix
        builder.copy("HtoD", call=(8, 1), runs=(9, 1), memory="pinned")
        assert "once outside the loop" in findings(builder, "SYN101")[0].fix

    @pytest.mark.parametrize(("many", "size", "moved"), [(8, 1 << 20, True), (7, 1 << 20, False), (8, 1 << 10, False)])
    def test_many_copies_before_anything_is_computed_are_a_models_weights(self, many: int, size: int, moved: bool):
        builder = TraceBuilder().annotation("setup", 1, 100 * many)
        for number in range(many):
            waiting(builder, 100 * number + 10, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=size)
        builder.launch("gemm", call=(100 * many + 5, 5), runs=(100 * many + 12, 50))
        for found in findings(builder, "SYN101", "CPY201"):
            assert "DataLoader" not in found.fix or not moved
            assert ("weights are moved once" in found.fix) == moved
            assert (found.severity == "note") == moved

    def test_what_a_module_moves_are_its_weights(self):
        builder = chain("aten::to", "aten::copy_", steps=1, copy="HtoD", memory="pageable", size=1 << 20)
        builder.frame("train.py", 5, "setup", 0, 95).frame("torch/nn/modules/module.py", 950, "_apply", 1, 90)
        assert "weights are moved once" in findings(builder, "SYN101")[0].fix

    def test_the_pageable_copy_is_a_finding_of_its_own_and_both_know_each_other(self):
        wait, copy = findings(chain("aten::to", "aten::copy_", copy="HtoD", memory="pageable"), "SYN101", "CPY201")
        assert (wait.rule, copy.rule) == ("SYN101", "CPY201")
        assert copy.fingerprint in wait.related
        assert wait.fingerprint in copy.related
        assert copy.stall_ms is None  # the wait's finding has it


class TestTensorPrint:
    def test_one_finding_a_print_at_the_line_that_prints(self):
        formatter = "<site-packages>/torch/_tensor_str.py"
        text: FrameSpec = ("<site-packages>/torch/_tensor.py", 590, "Tensor.__repr__")
        stack: list[FrameSpec] = [line(14, "print(t)"), text, (formatter, 726, "_str")]
        builder = TraceBuilder().recording(0, 1000, 2000)
        for start in (0, 1000):
            for i, (inner, number) in enumerate([("_tensor_str", 343), ("_tensor_str", 350)]):
                waiting(builder, start + 100 * (i + 1), "aten::item").warning(
                    start + 100 * (i + 1) + 70, *stack, (formatter, number, inner)
                )
        found = findings(builder, "SYN102", "SYN104")
        assert [finding.rule for finding in found] == ["SYN104"]
        assert (found[0].count, found[0].per_step) == (2, 1)
        assert found[0].at is not None
        assert found[0].at.line == 14
        assert found[0].stall_ms == pytest.approx(0.080)
        assert "2 waits a print" in found[0].message

    def test_a_print_is_one_finding_whatever_memory_its_values_go_to(self):
        builder = TraceBuilder().step(0, 900)
        for number, op in enumerate(("isfinite", "ne", "__and__")):
            builder.op(f"aten::{op}", 10 * number + 1, 5)
        waiting(builder, 100, "aten::masked_select", "aten::nonzero", memory="pageable")
        for number in range(2):
            waiting(builder, 200 + 100 * number, "aten::item", memory="pinned")
        (found,) = findings(builder, "SYN102", "SYN103", "SYN104")
        assert (found.rule, found.count) == ("SYN104", 1)
        assert "3 waits a print" in found.message

    def test_formatting_one_value_is_a_scalar_read(self):
        at = ("<site-packages>/torch/_tensor.py", 1100, "Tensor.__format__", "self.item()")
        builder = waiting(TraceBuilder().recording(0, 300), 10, "aten::item").warning(100, line(9, "f'{loss:.3f}'"), at)
        assert codes(builder) == ["SYN102"]


class TestExplicitSync:
    def test_takes_device_and_event_syncs_outside_ops(self):
        builder = (
            TraceBuilder().step(0, 900).device_sync(10, 20).event_sync(50, 5).launch("k", call=(60, 2), runs=(70, 2))
        )
        assert codes(builder) == ["SYN105", "SYN105"]

    def test_a_device_sync_inside_an_op_is_the_librarys(self):
        builder = TraceBuilder().step(0, 900).op("aten::linalg_eig", 5, 60).device_sync(10, 20)
        assert codes(builder) == ["SYN109"]

    def test_the_line_is_that_of_the_recorded_call(self):
        builder = TraceBuilder().recording(0, 900).op("aten::mm", 1, 2)
        builder.entry("torch.cuda.synchronize", 8, 32, line(25, "torch.cuda.synchronize()")).device_sync(10, 20)
        found = findings(builder, "SYN105")
        assert lines_of(found) == [25]
        assert found[0].message == "torch.cuda.synchronize() makes the host wait for everything on the device"

    def test_a_stream_synchronize_is_known_by_its_frame_even_right_behind_a_copy(self):
        at = ("<site-packages>/torch/cuda/streams.py", 105, "Stream.synchronize", "super().synchronize()")
        builder = TraceBuilder().recording(0, 900).copy("HtoD", call=(10, 5), runs=(16, 10)).stream_sync(17, 20)
        builder.warning(60, line(23, "stream.synchronize()"), at)
        assert codes(builder) == ["SYN105"]

    def test_a_warned_wait_of_an_unknown_kind_was_not_asked_for(self):
        builder = TraceBuilder().recording(0, 300).stream_sync(10, 10).warning(50, line(9, "compiled(x)"))
        assert codes(builder) == ["SYN109"]

    def test_a_wait_on_an_empty_queue_is_a_note(self):
        builder = TraceBuilder().recording(0, 900).launch("k", call=(1, 2), runs=(4, 30))
        for start, length in ((10, 30), (60, 5)):
            stack = line(start, "torch.cuda.synchronize()")
            builder.entry("torch.cuda.synchronize", start - 1, start + length + 1, stack).device_sync(start, length)
        found = {lines_of([finding])[0]: finding for finding in findings(builder, "SYN105")}
        assert {number: finding.severity for number, finding in found.items()} == {10: "error", 60: "note"}
        assert "nothing was queued" in found[60].message
        assert found[60].per_step == 1  # a note by what it costs, and still one more wait

    @pytest.mark.parametrize(("runs", "takes", "severity"), [(30, 10, "note"), (300, 10, "note"), (300, 90, "error")])
    def test_an_event_that_has_happened_is_a_note_also_where_its_stream_is_unknown(
        self, runs: float, takes: float, severity: str
    ):
        builder = TraceBuilder().recording(0, 900).launch("k", call=(1, 2), runs=(4, runs))
        (found,) = findings(builder.event_sync(100, takes), "SYN105")
        assert (found.severity, "had happened" in found.message) == (severity, severity == "note")

    def test_the_last_wait_of_a_trace_without_steps_is_a_note(self):
        def waits_twice() -> TraceBuilder:
            builder = TraceBuilder().launch("k", call=(1, 2), runs=(4, 300)).device_sync(10, 290)
            builder.on(8, "profiler").device_sync(950, 5)
            return builder

        (last,) = findings(waits_twice(), "SYN105")
        assert (last.severity, last.message.endswith("nothing follows it in the trace")) == ("note", True)
        assert findings(waits_twice().launch("k", call=(400, 2), runs=(404, 9)), "SYN105")[0].severity == "error"
        assert findings(waits_twice().step(0, 500), "SYN105")[0].severity == "error"

    def test_several_waits_one_after_the_other_end_a_trace_as_one_does(self):
        builder = TraceBuilder().launch("k", call=(1, 2), runs=(4, 316)).frame("train.py", 3, "main", 0, 900)
        builder.frame("<site-packages>/torch/cuda/__init__.py", 1098, "synchronize", 5, 400)
        builder.device_sync(10, 290).device_sync(310, 1)
        (last,) = findings(builder, "SYN105")
        assert (last.count, last.severity) == (2, "note") and "nothing follows it" in last.message
        (held,) = findings(builder.launch("k", call=(305, 2), runs=(309, 300)), "SYN105")
        assert held.severity != "note"

    def test_a_wait_that_found_nothing_to_wait_for_does_not_keep_the_last_one_from_ending_a_trace(self):
        builder = TraceBuilder().device_sync(20, 2).launch("k", call=(30, 2), runs=(34, 300)).device_sync(40, 294)
        (last,) = findings(builder.on(8, "profiler").device_sync(950, 5), "SYN105")
        assert (last.count, last.severity) == (2, "note") and "nothing follows it" in last.message

    def test_a_long_wait_for_nothing_that_is_known_stays_an_error(self):
        builder = TraceBuilder().recording(0, 900).launch("k", call=(1, 2), runs=(4, 5))
        builder.entry("torch.cuda.synchronize", 19, 401, line(9, "torch.cuda.synchronize()")).device_sync(20, 380)
        assert findings(builder, "SYN105")[0].severity == "error"

    def test_a_copy_on_an_empty_queue_still_costs_the_copy(self):
        assert (
            findings(chain("aten::to", "aten::copy_", copy="HtoD", memory="pageable"), "SYN101")[0].severity == "error"
        )


class TestLibrarySync:
    def test_takes_what_no_other_rule_explains(self):
        found = findings(chain("aten::mode", copy=None), "SYN109")
        assert found[0].op == "aten::mode"
        assert "aten::mode" in found[0].message

    @pytest.mark.parametrize("inner", ["aten::masked_select", "aten::item", "aten::to"])
    def test_what_an_operator_of_another_library_does_inside_is_its_own(self, inner: str):
        found = findings(chain("torchvision::nms", inner), "SYN101", "SYN102", "SYN103", "SYN109")
        assert [finding.rule for finding in found] == ["SYN109"]
        assert "torchvision::nms" in found[0].message
        assert "batched_nms" in found[0].fix

    def test_an_operator_that_nobody_knows_is_named_in_what_to_do(self):
        assert "Call mylib::op less often" in findings(chain("mylib::op", "aten::item"), "SYN109")[0].fix

    def test_an_operator_called_from_python_is_known_by_its_call_where_ops_are_missing(self):
        builder = TraceBuilder().recording(0, 300).copy("DtoH", call=(10, 4), runs=(16, 2)).stream_sync(16, 10)
        assert codes(builder.entry("torch.ops", 5, 60, line(9, "detector(x)"))) == ["SYN109"]

    def test_a_wait_that_a_python_operators_own_line_was_warned_for_is_found_there(self):
        builder = waiting(TraceBuilder().recording(0, 300), 10, "mylib::op", "aten::item")
        assert codes(builder.warning(100, line(9, "mylib.op(x)"), ("mylib.py", 4, "op", "x.item()"))) == ["SYN102"]

    def test_a_sparse_tensor_is_to_be_coalesced_once(self):
        found = findings(chain("aten::matmul", "aten::addmm", "aten::coalesce", "aten::_coalesce"), "SYN109")[0]
        assert "Coalesce what stays the same once" in found.fix


class TestWithoutOps:
    def test_a_wait_behind_a_copy_is_a_blocking_copy_and_the_others_say_they_cannot_see(self):
        builder = TraceBuilder().copy("DtoH", call=(10, 4), runs=(16, 2)).stream_sync(18, 10)
        assert codes(builder) == ["SYN101"]
        assert {"SYN102", "SYN103", "SYN104", "SYN109", "SYN110"} <= set(blind(builder))
        assert {"SYN101", "SYN105"}.isdisjoint(blind(builder))

    def test_a_trace_without_waits_but_the_profilers_own_is_clean(self):
        builder = TraceBuilder().launch("k", call=(10, 4), runs=(16, 2)).device_sync(20, 5)
        assert codes(builder) == []
        assert not [code for code in blind(builder) if code.startswith("SYN")]

    def test_a_trace_without_runtime_calls_cannot_be_checked(self):
        assert {"SYN101", "SYN102", "SYN103", "SYN104", "SYN105", "SYN109", "CPY201"} <= set(
            blind(TraceBuilder().kernel("k", 10, 5))
        )


def reading(times: int, *, launches: bool) -> TraceBuilder:
    """Two steps in which a value is read so many times, after a launch each time or after one alone."""
    builder = TraceBuilder().steps(0, 1000, 2000)
    for at in (0, 1000):
        builder.launch("k", call=(at + 1, 2), runs=(at + 4, 3))
        for number in range(times):
            waiting(builder, at + 20 + 80 * number, "aten::item", "aten::_local_scalar_dense")
            if launches:
                builder.launch("k", call=(at + 82 + 80 * number, 2), runs=(at + 86 + 80 * number, 3))
    return builder


def test_values_that_are_read_in_a_row_are_to_be_read_at_once() -> None:
    for times, launches, said in ((6, False, True), (3, False, False), (6, True, False)):
        (found,) = findings(reading(times, launches=launches), "SYN102")
        assert found.fix.startswith("Bring all its values to the host at once") == said
