"""What the power limit leaves of a saving."""

from __future__ import annotations

import numpy as np
import pytest

from syncscope import rules
from syncscope.estimate import Estimate, estimate_savings, prepare
from syncscope.estimate.clocks import LIKELY, MATRIX, MOVING, SCALAR, STRONG, WEAK, classify
from syncscope.estimate.power import BOTH, BY_KERNELS, SLOWED, UNKNOWN, Condition, Work, condition_of, settle
from syncscope.schema.recording import GpuWindow, RecordedGpu
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import line

CAPPED = GpuWindow(power_w=692, sm_clock_mhz=1800, throttled={"power cap": 1.0}, samples=20)
COOL = GpuWindow(power_w=400, sm_clock_mhz=1980, throttled={}, samples=20)


def gpu(window: GpuWindow | None, timed: GpuWindow | None = None) -> RecordedGpu:
    return RecordedGpu(power_limit_w=700, max_sm_clock_mhz=1980, bare=window, timed=timed)


def estimated(
    recorded: RecordedGpu | None, kernel: str = "nvjet_gemm", gap: int = 1000, device: str | None = None
) -> Estimate:
    """Steps of one long kernel and a wait, after which the host works for ``gap`` µs."""
    builder, at, marks = TraceBuilder(), 0, [0]
    for _ in range(4):
        builder.launch(kernel, call=(at + 5, 5), runs=(at + 12, 9000))
        builder.entry("torch.cuda.synchronize", at + 20, at + 9020, line(7, "torch.cuda.synchronize()"))
        builder.stream_sync(at + 21, 8995, record=True)
        at += 9020 + gap
        marks.append(at)
    bare = [float(marks[1])] * 8
    timeline = Timeline(builder.recording(*marks, drained=at, bare_us=bare, gpu=recorded, device=device).trace())
    return estimate_savings(prepare(timeline, rules.find(timeline)[0]))


def saving(estimate: Estimate) -> tuple[float, float, float]:
    found = next(finding for finding in estimate.findings if finding.rule == "SYN105")
    figures = found.saving_ms_per_step, found.saving_low_ms_per_step, found.saving_high_ms_per_step
    assert None not in figures
    return figures  # type: ignore[return-value]


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", (1, 0, MATRIX)),
            ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc", (1, 0, MATRIX)),
            ("fmha_cutlassF_f32_aligned_64x64_rf_sm80", (1, 0, MATRIX)),
            ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_align", (1, 0, SCALAR)),
            ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>", (0, 1, MOVING)),
            ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float", (0, 1, MOVING)),
            ("Memcpy DtoD (Device -> Device)", (0, 1, MOVING)),
        ],
    )
    def test_are_told_by_the_names(self, name: str, kind: tuple[float, float, float]) -> None:
        kinds = classify(np.array([name], dtype=object))
        assert (kinds.computes[0], kinds.moves[0], kinds.draws[0]) == kind

    def test_a_name_that_says_nothing_is_of_neither(self) -> None:
        kinds = classify(np.array(["my_kernel"], dtype=object))
        assert (kinds.computes[0], kinds.moves[0]) == (0, 0)


class TestCondition:
    def test_at_the_limit_the_budget_is_what_is_drawn(self) -> None:
        found = condition_of(gpu(CAPPED))
        assert found.at_limit and found.budget == 1.0
        assert found.ceiling == pytest.approx(1980 / 1800)

    def test_below_the_limit_some_is_left(self) -> None:
        found = condition_of(gpu(COOL))
        assert found.known and not found.at_limit
        assert found.budget == pytest.approx((693 - 105) / (400 - 105))

    @pytest.mark.parametrize(
        "recorded",
        [
            None,
            RecordedGpu(missing="no nvidia-ml-py"),
            gpu(GpuWindow(power_w=400)),
            gpu(GpuWindow(sm_clock_mhz=1980, samples=9)),
            gpu(GpuWindow(power_w=500, throttled={"thermal": 0.9}, samples=9)),
        ],
    )
    def test_without_samples_power_or_reasons_nothing_is_known(self, recorded: RecordedGpu | None) -> None:
        assert not condition_of(recorded).known

    def test_near_the_limit_below_its_clock_counts_where_no_reason_was_recorded(self) -> None:
        assert condition_of(gpu(GpuWindow(power_w=695, sm_clock_mhz=1700, samples=9))).at_limit
        assert not condition_of(gpu(GpuWindow(power_w=695, sm_clock_mhz=1980, samples=9))).at_limit

    def test_a_few_readings_tell_a_limit_and_no_power(self) -> None:
        early = GpuWindow(power_w=300, sm_clock_mhz=1980, samples=2)
        assert condition_of(gpu(early, GpuWindow(sm_clock_mhz=1950, throttled={"power cap": 1.0}, samples=2))).at_limit
        assert not condition_of(gpu(early)).known
        assert condition_of(gpu(early), "NVIDIA A100-SXM4-80GB").allowed is None

    def test_the_kernels_tell_the_power_of_a_chip_that_was_measured(self) -> None:
        found = condition_of(gpu(GpuWindow(power_w=300, samples=2)), "NVIDIA H200")
        assert found.of(0.9).at_limit
        assert found.of(0.35).budget == pytest.approx(2 * found.of(0.7).budget)
        assert found.of(0.35).doubted(0.9).budget == pytest.approx(0.9 * found.of(0.35).budget)
        assert condition_of(gpu(None), "NVIDIA H100 80GB HBM3").of(0.9).at_limit
        assert not condition_of(gpu(None), "NVIDIA H100 PCIe").known

    def test_kernels_are_as_long_as_at_the_clock_of_the_bare_steps(self) -> None:
        timed = GpuWindow(power_w=600, sm_clock_mhz=1980, samples=9)
        assert condition_of(gpu(CAPPED, timed)).timed == pytest.approx(1800 / 1980)
        strange = GpuWindow(power_w=600, sm_clock_mhz=900, samples=9)
        assert condition_of(gpu(CAPPED, strange)).timed == 1.0
        unsettled = GpuWindow(power_w=600, sm_clock_mhz=1800, samples=2)
        assert condition_of(gpu(unsettled, timed)).timed == 1.0


class TestSettle:
    def lengths(self, step: float, fixed: float, busy: float) -> tuple[Work, np.ndarray, np.ndarray]:
        """A step of matrix products, ``busy`` of it, before and after a fix."""
        work = Work(np.array([[busy], [busy]]), np.zeros((2, 1)))
        usual = np.array([[step], [fixed]])
        return work, usual, usual + busy * (SLOWED**-LIKELY.compute - 1)

    @pytest.mark.parametrize(
        ("step", "busy", "fixed", "measured"),
        [(9.186, 7.211, 7.345, 1.020), (9.186, 7.211, 8.263, 0.605), (11.082, 9.000, 9.300, 0.974)],
        ids=["TF32, all gaps", "TF32, half of them", "BF16, all gaps"],
    )
    def test_loops_with_gaps_give_back_what_was_measured(
        self, step: float, busy: float, fixed: float, measured: float
    ) -> None:
        work, usual, slowed = self.lengths(step, fixed, busy)

        def saved(response) -> float:
            part = settle(Condition(ceiling=1.1), work, usual, slowed, response)
            return step - float((usual + (slowed - usual) * part)[1, 0])

        assert saved(LIKELY) == pytest.approx(measured, rel=0.15)
        assert saved(STRONG) < measured < saved(WEAK)

    def test_nothing_changes_where_enough_is_left(self) -> None:
        work, usual, slowed = self.lengths(10.0, 9.0, 8.0)
        assert settle(Condition(budget=1.5), work, usual, slowed, LIKELY)[1, 0] == 0.0

    def test_less_work_lets_the_clock_rise_to_its_highest(self) -> None:
        _, usual, slowed = self.lengths(10.0, 9.0, 8.0)
        half = Work(np.array([[8.0], [2.0]]), np.zeros((2, 1)))
        part = settle(Condition(ceiling=1.05), half, usual, slowed, LIKELY)
        assert part[1, 0] == pytest.approx(np.log(1.05) / np.log(SLOWED))


class TestSavings:
    def test_at_the_limit_only_a_part_comes_back(self) -> None:
        free, low, _ = saving(estimated(gpu(COOL)))
        capped, least, most = saving(estimated(gpu(CAPPED)))
        assert 0.4 * free < capped < 0.7 * free
        assert least < capped < most < free
        assert low > 0.75 * free

    def test_work_that_moves_data_gives_back_nearly_all(self) -> None:
        free, _, _ = saving(estimated(gpu(COOL), "elementwise_kernel"))
        assert saving(estimated(gpu(CAPPED), "elementwise_kernel"))[0] > 0.7 * free

    def test_where_nothing_is_known_the_range_holds_both_and_says_so(self) -> None:
        free, low, high = saving(estimated(gpu(COOL)))
        unknown = estimated(None)
        assert saving(unknown)[0] == free
        assert saving(unknown)[1] < saving(estimated(gpu(CAPPED)))[0] < high
        assert unknown.replay is not None and BOTH in unknown.replay.assumptions
        assert low > saving(unknown)[1]

    def test_where_the_kernels_tell_the_power_the_range_is_narrower_and_says_so(self) -> None:
        capped, low, high = saving(estimated(gpu(CAPPED)))
        early = estimated(gpu(GpuWindow(power_w=300, samples=2)), device="NVIDIA H200")
        assert saving(early)[0] == pytest.approx(capped, rel=0.15)
        assert saving(early)[1] <= low and saving(early)[2] >= high
        assert early.replay is not None and BY_KERNELS.format(700) in early.replay.assumptions

    def test_a_device_that_has_little_to_do_is_not_at_its_limit(self) -> None:
        idle = estimated(None, gap=20_000)
        assert idle.replay is not None and BOTH not in idle.replay.assumptions
        assert not UNKNOWN.known

    def test_the_step_that_is_drawn_is_the_one_with_the_lower_clock(self) -> None:
        found = next(one for one in estimated(gpu(CAPPED)).findings if one.rule == "SYN105")
        before = estimated(gpu(CAPPED)).replay
        assert found.after is not None and before is not None and before.before is not None
        assert before.before.step_ms - found.after.step_ms == pytest.approx(found.saving_ms_per_step, abs=0.01)
