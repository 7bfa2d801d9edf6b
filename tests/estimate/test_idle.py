"""What leaves out a cause of idle time, and how much that saves."""

from __future__ import annotations

import pytest

from syncscope.estimate.edits import NOTHING
from syncscope.estimate.fit import find_misfit
from syncscope.estimate.idle import AT_MOST, QUESTIONS, WHY_NONE, cause_question, without_pauses
from syncscope.estimate.program import compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.schema.idle import BESIDE_THE_HOST
from syncscope.timeline import Timeline
from syncscope.timeline.tables import CAUSES
from tests.builders import TraceBuilder
from tests.estimate.test_questions import STEPS, each_step, saved_us, study
from tests.rules.scenes import line


def saved_without(cause: str, builder: TraceBuilder) -> float:
    one = study(builder)
    return saved_us(one, cause_question(one, cause))


def test_every_cause_has_a_question_or_a_reason_why_there_is_none() -> None:
    assert set(QUESTIONS) | set(WHY_NONE) == set(CAUSES)
    assert set(WHY_NONE) == BESIDE_THE_HOST and not set(QUESTIONS) & BESIDE_THE_HOST
    assert set(QUESTIONS) >= AT_MOST


def loader(builder: TraceBuilder, at: float) -> None:
    builder.entry("DataLoader", at + 10, at + 610, line(8, "DataLoader(data)"))
    builder.launch("k", call=(at + 620, 5), runs=(at + 630, 300)).stream_sync(at + 640, 300)


def test_a_batch_that_is_there_saves_what_loading_it_took() -> None:
    assert saved_without("data loading", each_step(loader)) == pytest.approx(600, abs=40)


@pytest.mark.parametrize("paced", [True, False])
def test_workers_that_keep_up_no_longer_set_the_pace(paced: bool) -> None:
    def fetch(builder: TraceBuilder, at: float) -> None:
        kind = "_MultiProcessingDataLoaderIter" if paced else "_SingleProcessDataLoaderIter"
        builder.annotation(f"enumerate(DataLoader)#{kind}.__next__", at + 10, 600)
        builder.launch("k", call=(at + 620, 5), runs=(at + 630, 300)).stream_sync(at + 640, 300)

    one = study(each_step(fetch))
    questions = [NOTHING, cause_question(one, "data loading")]
    ends = replay(one.program, questions, [Scenario(worker_paced=float(paced))], profiled=True).ends[:, :, 0]
    before, after = (ends[-1] - ends[0]) / (STEPS - 1) / 1000
    assert before - after == pytest.approx(600, abs=40)


def test_only_host_work_that_the_device_waits_for_is_left_out() -> None:
    def work(builder: TraceBuilder, at: float) -> None:
        builder.launch("k", call=(at + 300, 5), runs=(at + 310, 500))
        builder.launch("k", call=(at + 700, 5), runs=(at + 811, 100))  # queued while the device runs

    assert saved_without("host work", each_step(work)) == pytest.approx(1000 - 600, abs=60)
    assert saved_without("launching", each_step(work)) == 0


def test_a_wait_that_empties_the_queue_is_not_waited_for() -> None:
    def wait(builder: TraceBuilder, at: float) -> None:
        builder.launch("k", call=(at + 5, 5), runs=(at + 15, 500)).stream_sync(at + 20, 500)
        builder.launch("k", call=(at + 900, 5), runs=(at + 910, 80))

    assert 200 < saved_without("wait", each_step(wait)) < 500


def test_what_no_change_of_the_host_helps_has_no_question() -> None:
    one = study(each_step(loader))
    for cause in WHY_NONE:
        assert cause_question(one, cause) == NOTHING


def test_a_pause_of_one_step_is_no_part_of_the_program() -> None:
    """Five steps of 1,000 µs with 600 of work, behind 200 of the host's own; the third begins 9,000 µs later."""
    builder, begins = TraceBuilder(), [0, 1000, 2000, 12_000, 13_000, 14_000]
    builder.steps(*begins)
    for number, begin in enumerate(begins[:-1]):
        at = begin + (9000 if number == 2 else 0)
        builder.launch("k", call=(at + 200, 5), runs=(at + 210, 600)).stream_sync(at + 215, 600)
    timeline = Timeline(builder.trace())
    program = compile_program(timeline)
    assert program is not None
    left = without_pauses(timeline, program)
    assert program.host_ns - left.host_ns == pytest.approx(9_000_000, rel=0.05)
    assert abs(find_misfit(left)) < 0.05
    steady = study(each_step(lambda steps, at: steps.launch("k", call=(at + 200, 5), runs=(at + 210, 600))))
    assert without_pauses(steady.timeline, steady.program) is steady.program


def test_no_cause_saves_more_than_the_step() -> None:
    for cause in QUESTIONS:
        assert 0 <= saved_without(cause, each_step(loader)) <= 1000
    assert STEPS > 1


def test_host_work_before_a_kernel_whose_launch_is_not_in_the_trace_counts() -> None:
    def work(builder: TraceBuilder, at: float) -> None:
        builder.launch("k", call=(at + 5, 5), runs=(at + 15, 20)).kernel("triton", at + 600, 20)
        builder.launch("k", call=(at + 610, 5), runs=(at + 640, 100))

    one = study(each_step(work))
    left = [edit for edit in cause_question(one, "host work").by_item().values() if edit.pre < 0.1 and edit.own == 1]
    assert len(left) >= STEPS - 2  # the 565 µs before the kernel are left out of nearly every step
